// Owns the ways to sum products over an inner index, for matrix products and convolutions alike.
//
// What is multiplied is a Problem, which holds
//   rows, columns, inner               the sizes
//   Element, Sum                       the types in memory, and of the sums of products
//   line_of_left(i), line_of_right(j)  what the elements of a row of the left operand, of a column
//                                      of the right operand have in common
//   at(p)                              what both operands need to know of the inner index p, which
//                                      may be past the end
//   left(line, at), right(line, at)    where an element is, or null where it counts as zero
//   kLeftRun, kRightRun                how many neighbors along the inner index lie side by side,
//                                      from multiples of that on, and may be read at once; 0 if
//                                      neighbors in memory are in other lines
//   kTensorCores                       whether tensor cores multiply, which take Element
//   place(j), store(i, place, sum)     take a finished sum of column j
// Sums are taken in one order, whatever the device does.
#pragma once

#include "core/tensor/formula.cuh"

#include "core/ops/matmul/gemm_args.h"
#include "core/ops/matmul/gemm_mma.cuh"
#include "core/ops/matmul/gemm_part.cuh"
#include "core/tensor/convert.h"
#include "core/tensor/pack.cuh"

namespace rushlight::on_cuda {

// ---- sums --------------------------------------------------------------------------------------

template <class T>
struct SumOf {
  using type = T;
};
template <>
struct SumOf<Half> {
  using type = float;
};
template <>
struct SumOf<BFloat16> {
  using type = float;
};
// Unsigned integers stand for signed ones too; small ones must not become int, which may overflow.
template <>
struct SumOf<uint8_t> {
  using type = uint32_t;
};
template <>
struct SumOf<uint16_t> {
  using type = uint32_t;
};

inline uint32_t multiply_add(uint32_t x, uint32_t y, uint32_t z) { return x * y + z; }
inline uint64_t multiply_add(uint64_t x, uint64_t y, uint64_t z) { return x * y + z; }
template <class T>
inline Complex<T> multiply_add(Complex<T> x, Complex<T> y, Complex<T> z) {
  return {multiply_add(-x.imag(), y.imag(), multiply_add(x.real(), y.real(), z.real())),
          multiply_add(x.imag(), y.real(), multiply_add(x.real(), y.imag(), z.imag()))};
}

// The sum over all threads of the block, for thread 0.
template <class Sum>
Sum sum_of_block(Sum sum) {
  __shared__ Sum sums[kGemmThreads];
  int thread = int(threadIdx.x);
  sums[thread] = sum;
  for (int half = kGemmThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] = sums[thread] + sums[thread + half];
  }
  return thread == 0 ? sums[0] : sum;
}

// ---- one thread or one block for a sum ---------------------------------------------------------

template <class Sum, class Element>
Sum read(const Element* at) {
  return at ? convert<Sum>(*at) : Sum(0);
}

// sum + left * right, of line `left` and line `right` at one inner index.
template <class Problem, class Left, class Right, class At>
auto add_product(const Problem& problem, const Left& left, const Right& right, const At& at,
                 typename Problem::Sum sum) {
  using Sum = typename Problem::Sum;
  return multiply_add(read<Sum>(problem.left(left, at)), read<Sum>(problem.right(right, at)), sum);
}

template <class Problem>
void multiply_by_thread(const Problem& problem, int64_t i, int64_t j) {
  typename Problem::Sum sum(0);
  auto left = problem.line_of_left(i);
  auto right = problem.line_of_right(j);
  for (int64_t p = 0; p < problem.inner; ++p)
    sum = add_product(problem, left, right, problem.at(p), sum);
  problem.store(i, problem.place(j), sum);
}

template <class Problem>
void multiply_by_block(const Problem& problem, int64_t i, int64_t j, int64_t begin, int64_t end) {
  typename Problem::Sum sum(0);
  auto left = problem.line_of_left(i);
  auto right = problem.line_of_right(j);
  for (int64_t p = begin + threadIdx.x; p < end; p += kGemmThreads)
    sum = add_product(problem, left, right, problem.at(p), sum);
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) problem.store(i, problem.place(j), sum);
}

// ---- one block for a tile ----------------------------------------------------------------------

constexpr int kSide = 16;  // threads along each side of a tile
static_assert(kSide * kSide == kGemmThreads);

// Sums `per` x `per` elements in each thread, over the inner indices from begin to below end.
template <int per, class Problem>
void multiply_tile_by_threads(const Problem& problem, int64_t first_row, int64_t first_column,
                              int64_t begin, int64_t end) {
  using Sum = typename Problem::Sum;
  constexpr int kDepth = 16;  // of the inner index, what lies in shared memory at a time
  constexpr int kTile = kSide * per, kPack = per < 4 ? per : 4, kPacks = per / kPack;
  constexpr int kPad = sizeof(Sum) < 16 ? int(16 / sizeof(Sum)) : 1;
  alignas(16) __shared__ Sum lefts[kDepth][kTile + kPad];
  alignas(16) __shared__ Sum rights[kDepth][kTile + kPad];
  Parts<Problem, kTile, kDepth> parts(problem, first_row, first_column);

  Sum sums[per][per];
#pragma unroll
  for (int i = 0; i < per; ++i)
#pragma unroll
    for (int j = 0; j < per; ++j) sums[i][j] = Sum(0);
  int row = int(threadIdx.x) / kSide * kPack, column = int(threadIdx.x) % kSide * kPack;

  parts.fetch(begin, end);
  for (int64_t from = begin; from < end; from += kDepth) {
    parts.left.write_across(lefts);
    parts.right.write_across(rights);
    __syncthreads();
    // On its way while this part is multiplied.
    if (from + kDepth < end) parts.fetch(from + kDepth, end);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      Pack<Sum, kPack> left[kPacks], right[kPacks];
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        left[k] = *reinterpret_cast<const Pack<Sum, kPack>*>(&lefts[d][row + k * kSide * kPack]);
        right[k] =
            *reinterpret_cast<const Pack<Sum, kPack>*>(&rights[d][column + k * kSide * kPack]);
      }
#pragma unroll
      for (int i = 0; i < per; ++i)
#pragma unroll
        for (int j = 0; j < per; ++j)
          sums[i][j] = multiply_add(left[i / kPack].at[i % kPack], right[j / kPack].at[j % kPack],
                                    sums[i][j]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < per; ++j) {
    int64_t to_column = first_column + column + j / kPack * kSide * kPack + j % kPack;
    if (to_column >= problem.columns) continue;
    auto to = problem.place(to_column);
#pragma unroll
    for (int i = 0; i < per; ++i) {
      int64_t to_row = first_row + row + i / kPack * kSide * kPack + i % kPack;
      if (to_row < problem.rows) problem.store(to_row, to, sums[i][j]);
    }
  }
}

template <int per, class Problem>
void multiply_tile(const Problem& problem, int64_t first_row, int64_t first_column, int64_t begin,
                   int64_t end) {
  if constexpr (Problem::kTensorCores)
    multiply_tile_by_tensor_cores<kSide * per>(problem, first_row, first_column, begin, end);
  else multiply_tile_by_threads<per>(problem, first_row, first_column, begin, end);
}

// How many sums along each side of a tile a thread has. Those of 8 bytes and more would take too
// many registers for the largest tile.
#ifdef SMALL_TILES
template <class Sum>
constexpr int kSumsPerThread = 2;
#else
template <class Sum>
constexpr int kSumsPerThread = sizeof(Sum) > 4 ? 4 : 8;
#endif

// ---- grids -------------------------------------------------------------------------------------

// What a block of a grid works on; see GemmGrid.
struct GemmPlace {
  int64_t row, column;  // of tiles
  int64_t batch, piece;
  int64_t begin, end;  // of the inner index

  GemmPlace(const GemmGrid& grid, int64_t block, int64_t inner) {
    row = block % grid.rows;
    block /= grid.rows;
    column = block % grid.columns;
    block /= grid.columns;
    piece = block % grid.pieces;
    batch = block / grid.pieces;
    begin = piece * grid.piece;
    end = begin + grid.piece < inner ? begin + grid.piece : inner;
  }
};

}  // namespace rushlight::on_cuda
