// Owns what the walks of the normalizations over memory share: runs, rows and their statistics.
// channel_norm_cpu.cpp and layer_norm_cpu.cpp have the walks, norm_isa.cpp the inner loops, which
// see half types as float.
//
// Partial sums are cut by the shape alone, never by the number of threads.
#pragma once

#include <algorithm>

#include "core/ops/norm/norm_loops.h"
#include "core/ops/operands.h"
#include "core/tensor/staged.h"
#include "core/tensor/tensor.h"

namespace rushlight {

ISA_TABLES(NormLoops, norm_loops)

namespace norm_cpu_detail {

inline constexpr int64_t kGrain = 16384;  // elements that are worth a thread

template <class T>
const NormLoopsOf<T>& loops() {
  return active_of<T>(norm_loops_sets);
}

// For elements of a dtype that is computed in T.
template <class T>
const ChangeLoops<T>& change_loops(DType dtype) {
  const NormLoops& all = active(norm_loops_sets);
  if constexpr (std::is_same_v<T, double>) return all.of_double;
  else if (dtype == DType::float32) return all.of_float;
  else return dtype == DType::float16 ? all.of_half : all.of_bfloat16;
}

// The elements of a tensor as they lie in memory.
struct Elements {
  char* data;
  int64_t item;

  explicit Elements(const Tensor& tensor)
      : data(static_cast<char*>(tensor.data())), item(int64_t(tensor.itemsize())) {}

  void* at(int64_t i) const { return data + i * item; }
};

template <class T>
constexpr DType kStatistics = std::is_same_v<T, float> ? DType::float32 : DType::float64;

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

// Calls f(offset, length) for runs that cover [begin, begin + n).
template <class F>
void for_each_run(int64_t begin, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; i += kNormRun) f(begin + i, std::min(kNormRun, n - i));
}

// The mean and variance of parts whose sums of squares are taken about centers of their own. The
// first center is subtracted from all, so that merging loses no digits.
struct Moments {
  double count = 0, shift = 0, sum = 0, squares = 0;

  void add(int64_t n, double center, double squares_about_it) {
    if (count == 0) shift = center;
    double distance = center - shift;
    count += double(n);
    sum += double(n) * distance;
    squares += squares_about_it + double(n) * distance * distance;
  }
  template <class T>
  void add_run(const T* x, int64_t n) {
    T center = loops<T>().sum(x, n) / T(n);
    add(n, double(center), double(loops<T>().squares(x, center, n)));
  }
  double mean() const { return shift + sum / count; }
  double var() const {
    double distance = sum / count, value = squares / count - distance * distance;
    return value < 0 ? 0 : value;
  }
};

inline int64_t grain_of(int64_t elements) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
}

// Calls f(row, rows) for pieces of [begin, end): as many rows of n as make a run.
template <class F>
void for_each_row_piece(int64_t begin, int64_t end, int64_t n, F&& f) {
  int64_t most = std::max<int64_t>(1, kStagedRun / std::max<int64_t>(1, n));
  for (int64_t row = begin; row < end; row += most) f(row, std::min(most, end - row));
}

}  // namespace norm_cpu_detail
}  // namespace rushlight
