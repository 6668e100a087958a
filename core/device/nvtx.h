// Owns marks for NVIDIA's profilers (NVTX), which name parts of a program on its time line.
//
// The library (nvidia-nvtx, or a toolkit's) is opened at the first mark; without it marks do
// nothing. RUSHLIGHT_NVTX names its file.
#pragma once

#include <cstdint>
#include <string>

namespace rushlight::nvtx {

// Whether the library is there.
bool is_available();
// Begins a range inside the last one of this thread; its depth, from 0, or -1 without the library.
int push(const std::string& message);
// Ends the last one; its depth, or a negative number when there is none.
int pop();
// A range that may overlap others; end() takes what it returned, on any thread.
uint64_t start(const std::string& message);
void end(uint64_t range);
void mark(const std::string& message);

}  // namespace rushlight::nvtx
