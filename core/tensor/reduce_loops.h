// Owns the list of reductions and the shape of their compiled kernels.
//
// Shared by host code and by reduce_isa.cpp, so it defines no code (see loops.h).
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// "first" and "second" are the results, as reduce.h returns them.
enum class Reduction : uint8_t {
  sum,
  mean,
  nan_sum,  // NaN counts as 0
  product,
  maximum,  // NaN wins
  minimum,
  indexed_maximum,  // second: the position of the first maximum, int64
  indexed_minimum,
  variance,   // divided by count - parameter; second: the mean
  deviation,  // its square root
  norm_1,     // the sum of magnitudes
  norm_2,     // the root of the sum of squares
  norm_p,     // the root `parameter` of the sum of powers `parameter`
  norm_max,   // the largest magnitude
  norm_min,   // the smallest
  log_sum_exp,
  count,  // of the elements that are not zero, int64; on the CPU only
};
inline constexpr int kReductionCount = int(Reduction::count) + 1;

// The state of n results in the making: n * accumulator_bytes, laid out as the kernels like.

// Reduces a matrix of rows * columns elements whose rows are contiguous and `stride` elements
// apart: `columns` to one accumulator per row, or `rows` to one per column.
using MatrixReduction = void (*)(const void* matrix, int64_t stride, int64_t rows, int64_t columns,
                                 double parameter, void* accumulators);
// Appends n accumulators over other_count elements each to n over count elements each.
using MergeAccumulators = void (*)(void* accumulators, int64_t count, const void* other,
                                   int64_t other_count, int64_t n);
// Writes the results of n accumulators over count elements each.
using FinishAccumulators = void (*)(const void* accumulators, int64_t count, int64_t n,
                                    double parameter, void* first, void* second);

struct Reducer {
  int64_t accumulator_bytes;
  MatrixReduction columns_of_each_row;  // null where the reduction has no meaning
  MatrixReduction rows_of_each_column;
  MergeAccumulators merge;
  FinishAccumulators finish;
};
struct ReduceLoops {
  Reducer of[kReductionCount][kComputeCount];
  // Those of narrow integers, see kNarrowCount, which need no conversion.
  Reducer narrow_maximum[kNarrowCount], narrow_minimum[kNarrowCount];
  // Those that read bfloat16 as it is, and give floats; some are null.
  Reducer of_bfloat16[kReductionCount];
};

}  // namespace rushlight
