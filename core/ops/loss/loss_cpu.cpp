// Owns the loops of nll_loss: one element picked per position, so there is nothing to vectorise.
#include <vector>

#include "core/device/threads.h"
#include "core/ops/loss/loss.h"
#include "core/ops/operands.h"

namespace rushlight {
namespace {

// Positions summed in one piece; fixed, so that sums do not depend on the number of threads.
constexpr int64_t kBlock = 4096;

}  // namespace

void nll_loss_cpu(const Tensor& input, const Tensor& target, const Tensor& weight, NllShape shape,
                  int64_t ignore_index, LossReduction reduction, const Tensor& output,
                  const Tensor& total_weight) {
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const T* x = input.data<T>();
    const T* w = weight.defined() ? weight.data<T>() : nullptr;
    const int64_t* classes = target.data<int64_t>();
    int64_t positions = shape.batch * shape.inner, blocks = (positions + kBlock - 1) / kBlock;
    std::vector<double> losses(static_cast<size_t>(blocks)), weights(static_cast<size_t>(blocks));
    parallel_for(0, blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t i = b * kBlock; i < std::min(positions, (b + 1) * kBlock); ++i) {
          int64_t c = classes[i], n = i / shape.inner, s = i % shape.inner;
          bool ignored = !is_class(c, shape.classes, ignore_index);
          T scale = ignored ? T(0) : w ? w[c] : T(1);
          T loss = ignored ? T(0) : -x[(n * shape.classes + c) * shape.inner + s] * scale;
          if (reduction == LossReduction::none) output.data<T>()[i] = loss;
          losses[size_t(b)] += double(loss);
          weights[size_t(b)] += double(scale);
        }
    });
    double loss = 0, total = 0;
    for (size_t b = 0; b < losses.size(); ++b) {
      loss += losses[b];
      total += weights[b];
    }
    *total_weight.data<T>() = T(total);
    // The mean over nothing is 0 / 0 = NaN, as in PyTorch.
    if (reduction != LossReduction::none)
      *output.data<T>() = T(reduction == LossReduction::mean ? loss / total : loss);
  });
}

void nll_loss_backward_cpu(const Tensor& grad, const Tensor& target, const Tensor& weight,
                           const Tensor& total_weight, NllShape shape, int64_t ignore_index,
                           LossReduction reduction, const Tensor& grad_input) {
  by_type(grad_input.dtype(), [&]<class T>(Tag<T>) {
    T* out = grad_input.data<T>();
    std::fill(out, out + grad_input.numel(), T(0));
    const T* g = grad.data<T>();
    const T* w = weight.defined() ? weight.data<T>() : nullptr;
    const int64_t* classes = target.data<int64_t>();
    T divisor = reduction == LossReduction::mean ? *total_weight.data<T>() : T(1);
    parallel_for(0, shape.batch * shape.inner, 4 * kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t c = classes[i], n = i / shape.inner, s = i % shape.inner;
        if (!is_class(c, shape.classes, ignore_index)) continue;
        T slope = (reduction == LossReduction::none ? g[i] : *g) * (w ? w[c] : T(1)) / divisor;
        out[(n * shape.classes + c) * shape.inner + s] = -slope;
      }
    });
  });
}

}  // namespace rushlight
