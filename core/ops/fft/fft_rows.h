// Owns FftRows: transforms of contiguous rows of complex numbers by a plan, a few at a time.
//
// How a row is transformed depends on its plan and the number of rows, never on threads.
#pragma once

#include <array>

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/threads.h"
#include "core/ops/fft/fft_plan.h"

namespace rushlight {

template <class T>
const FftLoopsOf<T>& fft_loops();

template <class T>
class FftRows {
 public:
  // For `count` rows in all, which run() gets in groups of up to group().
  FftRows(const FftPlan<T>& plan, int64_t count);

  static int64_t group(const FftPlan<T>& plan, int64_t count);

  // `in` may be `out`. A long transform runs on several threads, unless they are in use.
  void run(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride, int64_t count);

  // The same for pairs of real numbers, to the first n + 1 numbers of their own transforms, with
  // the plan's half_turns; and back. False where there is no kernel for both steps.
  bool run_to_half(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                   int64_t count);
  bool run_from_half(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                     int64_t count);

 private:
  bool has_square_rows() const { return by_columns_ && 2 * plan_.n >= fft_loops<T>().lanes; }
  static bool by_columns(const FftPlan<T>& plan, int64_t count);
  void run_columns(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                   int64_t count);
  void run_split(T scale, const T* in, T* out);
  void run_chirp(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                 int64_t count);
  size_t scratch_bytes(int64_t count) const;

  const FftPlan<T>& plan_;
  bool by_columns_;
  std::unique_ptr<FftRows> padded_;
  CpuBuffer scratch_;
};

// Numbers that are worth a thread, and the length from which on one transform is worth several.
inline constexpr int64_t kFftGrain = 8192;
inline constexpr int64_t kFftLong = 4 * kFftGrain;

inline constexpr size_t kFftMostLanes = 16;
using FftLaneOffsets = std::array<int64_t, kFftMostLanes>;

// Copies columns of elements of `item` numbers between memory, where column l begins at at[l], and
// rows of `lanes` elements. The lanes without a column repeat the first.
template <class T>
void gather_columns(const T* from, const FftLaneOffsets& at, int64_t stride, int64_t item,
                    int64_t rows, int64_t count, int64_t lanes, T* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t l = 0; l < lanes; ++l, to += item) {
      const T* element = from + (at[size_t(l < count ? l : 0)] + i * stride) * item;
      to[0] = element[0];
      if (item == 2) to[1] = element[1];
    }
}
template <class T>
void scatter_columns(const T* from, int64_t lanes, int64_t item, int64_t rows, int64_t count, T* to,
                     const FftLaneOffsets& at, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t l = 0; l < count; ++l) {
      const T* element = from + (i * lanes + l) * item;
      T* place = to + (at[size_t(l)] + i * stride) * item;
      place[0] = element[0];
      if (item == 2) place[1] = element[1];
    }
}

// Calls body(rows, first, number) for all groups of `count` rows, on several threads.
template <class T, class Body>
void for_each_group(const FftPlan<T>& plan, int64_t count, Body&& body) {
  int64_t group = FftRows<T>::group(plan, count);
  int64_t grain = std::max<int64_t>(1, kFftGrain / (group * plan.n));
  parallel_for(0, ceil_div(count, group), grain, [&](int64_t begin, int64_t end) {
    FftRows<T> rows(plan, count);
    for (int64_t g = begin; g < end; ++g) body(rows, g * group, std::min(group, count - g * group));
  });
}

}  // namespace rushlight
