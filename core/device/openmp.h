// Declares what we call of GCC's OpenMP library, libgomp: oneDNN's packages are built on it, and
// there should be one pool of threads, whichever compiler makes us. Clang would bring its own.
#pragma once

extern "C" {
// Runs body(context) on a team of so many threads, or of as many as the library chooses for 0.
void GOMP_parallel(void (*body)(void*), void* context, unsigned threads, unsigned flags);

int omp_in_parallel() noexcept;
int omp_get_max_threads() noexcept;
int omp_get_num_threads() noexcept;
int omp_get_thread_num() noexcept;
void omp_set_num_threads(int count) noexcept;
int omp_get_initial_device() noexcept;
// Ends the pool of the calling thread; kind 1 (soft) keeps the settings.
int omp_pause_resource(int kind, int device) noexcept;
}
