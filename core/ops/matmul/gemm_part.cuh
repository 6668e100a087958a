// Owns how a block brings parts of the operands of gemm.cuh into shared memory.
#pragma once

#include "core/ops/matmul/gemm_args.h"
#include "core/ops/mma.cuh"
#include "core/tensor/convert.h"
#include "core/tensor/pack.cuh"

namespace rushlight::on_cuda {

// The operands by their side.
template <bool is_left, class Problem>
auto line_of(const Problem& problem, int64_t i) {
  if constexpr (is_left) return problem.line_of_left(i);
  else return problem.line_of_right(i);
}
template <bool is_left, class Problem, class Line, class At>
auto address_of(const Problem& problem, const Line& line, const At& at) {
  if constexpr (is_left) return problem.left(line, at);
  else return problem.right(line, at);
}

// What lies in shared memory at a time: `tile` lines, `depth` long. Each thread fetches a few runs
// of neighbors along the inner index, from lines at one place or from places of one line, so that
// neighbors in memory go to neighbors among the threads.
template <class Problem, bool is_left, int tile, int depth>
class Part {
 public:
  using Element = typename Problem::Element;

  Part(const Problem& problem, int64_t first) : problem_(problem), first_(first) {
#pragma unroll
    for (int r = 0; r < kLines; ++r) lines_[r] = line_of<is_left>(problem, first + line(r));
  }

  // Loads what has an inner index from `from` on and before `end`.
  void fetch(int64_t from, int64_t end) {
    decltype(problem_.at(0)) at[kPlaces];
#pragma unroll
    for (int r = 0; r < kPlaces; ++r) at[r] = problem_.at(from + place(r));
    int64_t lines = is_left ? problem_.rows : problem_.columns;
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      runs_[r] = {};
      if (first_ + line(r) >= lines || from + place(r) >= end) continue;
      const Element* source = address_of<is_left>(problem_, lines_[r % kLines], at[r % kPlaces]);
      if (source) runs_[r] = *reinterpret_cast<const Run*>(source);
    }
  }

  // For tensor cores.
  template <int length>
  void write_lines(Element (&to)[tile][length]) const {
    if constexpr (kInner) {
#pragma unroll
      for (int r = 0; r < kRuns; ++r)
        *reinterpret_cast<Run*>(&to[line(r)][place(r)]) = as_factors(runs_[r]);
    } else {
      Pack<Element, kCount> all;
#pragma unroll
      for (int r = 0; r < kRuns; ++r) all.at[r] = __builtin_bit_cast(Element, as_factors(runs_[r]));
      *reinterpret_cast<Pack<Element, kCount>*>(&to[line(0)][place(0)]) = all;
    }
  }
  template <class Sum, int length>
  void write_across(Sum (&to)[depth][length]) const {
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      auto run = __builtin_bit_cast(Elements, runs_[r]);
#pragma unroll
      for (int e = 0; e < kRun; ++e) to[place(r) + e][line(r)] = convert<Sum>(run.at[e]);
    }
  }

 private:
  static constexpr int kMost = is_left ? Problem::kLeftRun : Problem::kRightRun;
  static constexpr int kCount = tile * depth / kGemmThreads;  // elements of a thread
  static constexpr bool kInner = kMost > 0;
  static constexpr int kRun = kMost < 2 ? 1 : kMost < kCount ? kMost : kCount;
  static constexpr int kRuns = kCount / kRun;
  static constexpr int kLines = kInner ? kRuns : 1, kPlaces = kInner ? 1 : kRuns;
  static constexpr int kLineThreads = depth / kRun;  // that share a line

  using Elements = Pack<Element, kRun>;
  static auto make_run() {
    if constexpr (sizeof(Elements) < sizeof(uint32_t)) return Elements();
    else return Words<Element, kRun>();
  }
  using Run = decltype(make_run());

  // Where in the part run r of this thread begins.
  static int line(int r) {
    int thread = int(threadIdx.x);
    return kInner ? thread / kLineThreads + r * (kGemmThreads / kLineThreads) : thread % tile;
  }
  static int place(int r) {
    int thread = int(threadIdx.x);
    return kInner ? thread % kLineThreads * kRun : thread / tile * kCount + r;
  }

  // As tensor cores take it.
  static Run as_factors(const Run& run) {
    if constexpr (detail::kSame<Element, float>) {
      auto elements = __builtin_bit_cast(Elements, run);
#pragma unroll
      for (int e = 0; e < kRun; ++e) elements.at[e] = round_to_tf32(elements.at[e]);
      return __builtin_bit_cast(Run, elements);
    } else {
      return run;
    }
  }

  const Problem& problem_;
  int64_t first_;
  Run runs_[kRuns];
  decltype(line_of<is_left>(problem_, 0)) lines_[kLines];
};

// Those of both operands.
template <class Problem, int tile, int depth>
struct Parts {
  Part<Problem, true, tile, depth> left;
  Part<Problem, false, tile, depth> right;

  Parts(const Problem& problem, int64_t first_row, int64_t first_column)
      : left(problem, first_row), right(problem, first_column) {}
  void fetch(int64_t from, int64_t end) {
    left.fetch(from, end);
    right.fetch(from, end);
  }
};

}  // namespace rushlight::on_cuda
