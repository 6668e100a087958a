// Owns the ends of the ranges of the types that kernels compute in: NVRTC has no <limits>.
#pragma once

namespace rushlight::on_cuda {

template <class T>
inline constexpr T kLowest = T(-kInfinity);
template <>
inline constexpr int64_t kLowest<int64_t> = -0x7fffffffffffffff - 1;
template <>
inline constexpr uint64_t kLowest<uint64_t> = 0;
template <class T>
inline constexpr T kHighest = T(kInfinity);
template <>
inline constexpr int64_t kHighest<int64_t> = 0x7fffffffffffffff;
template <>
inline constexpr uint64_t kHighest<uint64_t> = ~uint64_t(0);

}  // namespace rushlight::on_cuda
