// Owns the search for races in a kernel: who has touched each byte of shared and of device memory
// since the launch began, and whether a barrier or __syncwarp() lies between two who did.
//
// Kernels call it for every access when RUSHLIGHT_SHIM_RACES is set: the compiler adds the calls,
// those of its thread sanitizer. What it finds does not depend on the order of threads.
#pragma once

#include <cstddef>
#include <string>

namespace shim {

enum class Touch : int { kRead, kWrite, kAtomic };

bool watches_races();

// Memory that all threads of a block share, or all of a launch.
void watch_launch();
void watch_block(const char* static_shared, size_t static_bytes, const char* dynamic_shared,
                 size_t dynamic_bytes);
// All threads of the block, or of a warp, have met: what they did before comes before what follows.
void order_block();
void order_warp(unsigned warp);

// What a thread of the block is about to do; "" or what is wrong, to go on from its name. Threads
// may write what lies there already, which shows in the next call.
std::string touch(const void* address, size_t size, Touch how, unsigned thread);
// The same for the last call of a launch.
std::string last_touch();

}  // namespace shim
