// Owns what the pooling loops share: the walk through windows, and vectors along the channels where
// those lie side by side, or along rows in single planes. For files that are compiled once per
// instruction set.
#pragma once

#include "core/ops/pool/pool_loops.h"
#include "core/tensor/vectors.h"

#include "core/tensor/convert.h"  // after vectors.h
#include "core/tensor/half_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// ---- windows -----------------------------------------------------------------------------------

// An output, or where its window begins.
struct Place {
  int64_t plane, row, column;
};

// Calls f(pixel) for the pixels of a window, row by row.
template <class F>
[[gnu::always_inline]] inline void for_window(const PoolVolume& volume, Place at, F f) {
  const PoolAxis &planes = volume.planes, &rows = volume.rows, &columns = volume.columns;
  for (int64_t z = planes.begin[at.plane]; z < planes.end[at.plane]; z += planes.dilation)
    for (int64_t y = rows.begin[at.row]; y < rows.end[at.row]; y += rows.dilation)
      for (int64_t x = columns.begin[at.column]; x < columns.end[at.column]; x += columns.dilation)
        f((z * rows.size + y) * columns.size + x);
}

// The number of an output, and of the first pixel of its window.
[[gnu::always_inline]] inline int64_t number_of(const PoolVolume& volume, Place at) {
  return (at.plane * volume.rows.out + at.row) * volume.columns.out + at.column;
}
[[gnu::always_inline]] inline int64_t first_pixel(const PoolVolume& volume, Place at) {
  int64_t row = volume.planes.begin[at.plane] * volume.rows.size + volume.rows.begin[at.row];
  return row * volume.columns.size + volume.columns.begin[at.column];
}

// Calls f(plane, row) for all rows of outputs.
template <class F>
[[gnu::always_inline]] inline void for_rows(const PoolVolume& volume, F f) {
  for (int64_t plane = 0; plane < volume.planes.out; ++plane)
    for (int64_t row = 0; row < volume.rows.out; ++row) f(plane, row);
}

// ---- vectors -----------------------------------------------------------------------------------

template <size_t bytes>
struct IntegerOfSize {
  using type = int32_t;
};
template <>
struct IntegerOfSize<8> {
  using type = int64_t;
};

// What vectors hold of an element in memory: the number or the bits of a half.
template <class Memory>
struct LaneOf {
  using type = Memory;
};
template <>
struct LaneOf<Half> {
  using type = uint16_t;
};
template <>
struct LaneOf<BFloat16> {
  using type = uint16_t;
};
template <class E, int kCount>
struct VectorsOf {
  typedef E Lanes __attribute__((vector_size(kCount * sizeof(E))));
  typedef E Loose __attribute__((vector_size(kCount * sizeof(E)), aligned(sizeof(E)), may_alias));
};

// Vectors of values, and of integers of the same size: kVectorBytes, or kPoolRowBytes along short
// rows of planes.
template <class T, int kBytes>
struct Vectors {
  static constexpr int kCount = kBytes / int(sizeof(T));
  using Element = typename IntegerOfSize<sizeof(T)>::type;
  typedef T Value __attribute__((vector_size(kBytes)));
  typedef Element Index __attribute__((vector_size(kBytes)));
  template <class E>
  using Lanes = typename VectorsOf<E, kCount>::Lanes;
  template <class E>
  using Loose = typename VectorsOf<E, kCount>::Loose;  // in memory, of any alignment

  template <class Memory>
  [[gnu::always_inline]] static Value load(const Memory* p, int64_t stride) {
    using Lane = typename LaneOf<Memory>::type;
    if (stride == 1) return widened<Memory>(*reinterpret_cast<const Loose<Lane>*>(p));
    if (stride == 2)
      return widened<Memory>(every_second<Lane>(p, p + kCount - 1,  // not past the last element
                                                detail::IndicesTo<size_t(kCount)>{}));
    Value value;
    for (int i = 0; i < kCount; ++i) value[i] = convert<T>(p[i * stride]);
    return value;
  }
  // What the memory holds exactly.
  template <class Memory>
  [[gnu::always_inline]] static void store(Memory* p, Value value) {
    *reinterpret_cast<Loose<typename LaneOf<Memory>::type>*>(p) = narrowed<Memory>(value);
  }
  [[gnu::always_inline]] static void store(int32_t* p, Index index) {
    *reinterpret_cast<Loose<int32_t>*>(p) = __builtin_convertvector(index, Lanes<int32_t>);
  }
  // 0, step, 2 * step, ...
  [[gnu::always_inline]] static Index steps(int64_t step) {
    Index index;
    for (int i = 0; i < kCount; ++i) index[i] = Element(i * step);
    return index;
  }

 private:
  template <class Lane, size_t... I>
  [[gnu::always_inline]] static Lanes<Lane> every_second(const void* first, const void* second,
                                                         detail::Indices<I...>) {
    Lanes<Lane> low = *static_cast<const Loose<Lane>*>(first);
    Lanes<Lane> high = *static_cast<const Loose<Lane>*>(second);
    return __builtin_shufflevector(low, high,
                                   (2 * int(I) < kCount ? 2 * int(I) : 2 * int(I) + 1)...);
  }
  template <class Memory>
  [[gnu::always_inline]] static Value widened(Lanes<typename LaneOf<Memory>::type> lanes) {
    if constexpr (detail::kSame<Memory, T>) {
      return lanes;
#if RUSHLIGHT_ISA >= 3
    } else if constexpr (kCount == kHalves) {
      return detail::kSame<Memory, Half> ? to_floats(Halves(lanes))
                                         : upper_to_floats(Halves(lanes));
    } else if constexpr (detail::kSame<Memory, Half>) {
      return __builtin_ia32_vcvtph2ps256(Lanes<int16_t>(lanes));
#endif
    } else if constexpr (detail::kSame<Memory, BFloat16>) {
      return Value(__builtin_convertvector(lanes, Lanes<uint32_t>) << 16);
    } else {
      Value value;
      for (int i = 0; i < kCount; ++i) value[i] = to_float(Memory{lanes[i]});
      return value;
    }
  }
  template <class Memory>
  [[gnu::always_inline]] static Lanes<typename LaneOf<Memory>::type> narrowed(Value value) {
    using Lane = typename LaneOf<Memory>::type;
    if constexpr (detail::kSame<Memory, T>) {
      return value;
#if RUSHLIGHT_ISA >= 3
    } else if constexpr (kCount == kHalves) {
      return Lanes<Lane>(detail::kSame<Memory, Half> ? to_halves(value)
                                                     : upper_halves(FloatBits(value)));
    } else if constexpr (detail::kSame<Memory, Half>) {
      return Lanes<Lane>(__builtin_ia32_vcvtps2ph256(value, kNearest));
#endif
    } else if constexpr (detail::kSame<Memory, BFloat16>) {
      return __builtin_convertvector(Lanes<uint32_t>(value) >> 16, Lanes<Lane>);
    } else {
      Lanes<Lane> lanes;
      for (int i = 0; i < kCount; ++i) lanes[i] = from_float<Memory>(value[i]).bits;
      return lanes;
    }
  }
};

// Vectors that share the walk through their windows, as many as the registers hold.
inline constexpr int kTogether = 4;
// A number that is known when the loop is compiled.
template <int n>
struct Count {
  constexpr operator int64_t() const { return n; }
};
// Calls f with the stride of windows, in the usual cases as a Count.
template <class F>
[[gnu::always_inline]] inline void with_stride(int64_t stride, F f) {
  if (stride == 1) f(Count<1>());
  else if (stride == 2) f(Count<2>());
  else f(stride);
}

// Calls one(i) for single lanes of [0, n) and some(V(), Count(), i) for vectors of lanes from begin
// to below end; the last vector may overlap the one before.
template <class V, class One, class Some>
[[gnu::always_inline]] inline void for_lanes(int64_t n, int64_t begin, int64_t end, One one,
                                             Some some) {
  constexpr int64_t kMany = kTogether * V::kCount;
  if (end - begin < V::kCount) begin = end = n;
  for (int64_t i = 0; i < begin; ++i) one(i);
  int64_t i = begin;
  for (; i + kMany <= end; i += kMany) some(V(), Count<kTogether>(), i);
  for (; i < end; i += V::kCount) some(V(), Count<1>(), i + V::kCount <= end ? i : end - V::kCount);
  for (i = end; i < n; ++i) one(i);
}

// Calls one(c) for single channels of [0, n) or some(V(), Count(), c) for vectors from c on; the
// last vector may overlap the one before.
template <class V, class One, class Some>
[[gnu::always_inline]] inline void for_channels(int64_t n, One one, Some some) {
  constexpr int64_t kMany = kTogether * V::kCount;
  int64_t c = 0;
  for (; c + kMany <= n; c += kMany) some(V(), Count<kTogether>(), c);
  for (; c + V::kCount <= n; c += V::kCount) some(V(), Count<1>(), c);
  if (c < n && n >= V::kCount) return some(V(), Count<1>(), n - V::kCount);
  for (; c < n; ++c) one(c);
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
