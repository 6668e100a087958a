// Owns nll_loss on CUDA, and its gradient. A target outside the classes gives NaN: raising would
// have to wait for the GPU. Macros say which dtypes:
//   INPUT    that of input, losses and gradient
//   COMPUTE  that of weights and sums; see row.cuh
#include "core/ops/row.cuh"

namespace rushlight::on_cuda {

// The sums of losses and of weights.
using Totals = Sums;

struct Positions {
  const int64_t* targets;
  const Compute* weights;  // null for ones
  int64_t count, classes, inner, ignore_index;

  bool is_valid(int64_t c) const { return c >= 0 && c < classes; }
  Compute weight(int64_t c) const { return weights ? weights[c] : Compute(1); }
  int64_t offset(int64_t position, int64_t c) const {
    return (position / inner * classes + c) * inner + position % inner;
  }
  // The loss at a position, and its weight.
  Totals at(int64_t position, const INPUT* input) const {
    int64_t c = targets[position];
    if (c == ignore_index) return {0, 0};
    if (!is_valid(c)) return {Compute(kNaN), Compute(kNaN)};
    Compute scale = weight(c);
    return {-convert<Compute>(input[offset(position, c)]) * scale, scale};
  }
};

inline void write_totals(const Totals& all, bool mean, INPUT* output, Compute* total_weight) {
  // The mean over nothing is 0 / 0 = NaN, as in PyTorch.
  if (output) *output = convert<INPUT>(mean ? all.first / all.second : all.first);
  *total_weight = all.second;
}

// Writes the losses unless that is null, and the totals: a single block at once, several as pieces.
extern "C" __global__ void __launch_bounds__(kRowThreads)
    take(const INPUT* input, const int64_t* targets, const Compute* weights, int64_t count,
         int64_t classes, int64_t inner, int64_t ignore_index, bool mean, INPUT* losses,
         INPUT* output, Compute* total_weight, Totals* pieces) {
  Positions positions{targets, weights, count, classes, inner, ignore_index};
  Totals own = Totals::none();
  int64_t step = int64_t(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    Totals here = positions.at(i, input);
    if (losses) losses[i] = convert<INPUT>(here.first);
    own = merge(own, here);
  }
  own = merged(own, int(blockDim.x));
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) write_totals(own, mean, output, total_weight);
  else pieces[blockIdx.x] = own;
}
extern "C" __global__ void __launch_bounds__(kRowThreads)
    merge_pieces(const Totals* pieces, int64_t count, bool mean, INPUT* output,
                 Compute* total_weight) {
  Totals own = Totals::none();
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) own = merge(own, pieces[i]);
  own = merged(own, int(blockDim.x));
  if (threadIdx.x == 0) write_totals(own, mean, output, total_weight);
}

// Writes the gradients of the elements that targets name; the others are 0 before. `grad` has one
// element, or one for each position. `divisor` is null for 1.
extern "C" __global__ void __launch_bounds__(kRowThreads)
    place(const INPUT* grad, const int64_t* targets, const Compute* weights, int64_t count,
          int64_t classes, int64_t inner, int64_t ignore_index, bool is_single,
          const Compute* divisor, INPUT* grad_input) {
  Positions positions{targets, weights, count, classes, inner, ignore_index};
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int64_t c = targets[i];
  if (c == ignore_index || !positions.is_valid(c)) return;
  Compute slope = convert<Compute>(grad[is_single ? 0 : i]) * positions.weight(c);
  if (divisor) slope = slope / *divisor;
  grad_input[positions.offset(i, c)] = convert<INPUT>(-slope);
}

}  // namespace rushlight::on_cuda
