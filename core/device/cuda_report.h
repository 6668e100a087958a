// Owns the news that work which is queued on a GPU failed without an error of the driver: what a
// collective of NCCL that was given up leaves behind is no result. Whoever waits for the GPU next
// raises it.
#pragma once

#include <atomic>
#include <string>

namespace rushlight::cuda {

inline std::atomic<bool> has_report{false};

void report(const std::string& text);
// Raises what was reported, once.
void raise_report();
// Called after waiting.
inline void heed_report() {
  if (has_report.load(std::memory_order_relaxed)) [[unlikely]]
    raise_report();
}

}  // namespace rushlight::cuda
