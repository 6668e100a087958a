// Owns the choice of the instruction set that kernels run with; it is made once per process.
#pragma once

#include <cstdint>

namespace rushlight {

// The x86-64 psABI levels: v3 = AVX2 + FMA, v4 = AVX-512. Other processors are `baseline`.
enum class Isa : uint8_t { baseline, v3, v4 };

const char* isa_name(Isa isa);

// The best set that the processor and the operating system support, or RUSHLIGHT_CPU
// (baseline, v3, v4) when that is lower. Raises when RUSHLIGHT_CPU is another word.
Isa active_isa();

// Whether the processor sums products of bytes exactly (VNNI). Others add two of them in 16 bits,
// which overflow where bytes above 128 meet large weights.
bool multiplies_bytes();

}  // namespace rushlight
