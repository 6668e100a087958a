// Owns the switch that makes the processor take denormal numbers, below about 1e-38, for zero.
#pragma once

namespace rushlight {

// Sets it for all threads of ours; false when the processor has no such switch.
bool set_flush_denormal(bool mode);

}  // namespace rushlight
