// Owns the loops of nll_loss, where one element is picked per position, so that there is nothing to
// vectorize, and of multilabel_margin_loss.
#include <vector>

#include "core/base/ceil_div.h"
#include "core/device/threads.h"
#include "core/ops/loss/loss.h"

namespace rushlight {
namespace {

// Positions summed in one piece; fixed, so that sums do not depend on the number of threads.
constexpr int64_t kBlock = 4096;

// Calls f(type of the elements, type of the sums).
template <class F>
void by_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64: return f(Tag<double>{}, Tag<double>{});
    case DType::float16: return f(Tag<Half>{}, Tag<float>{});
    case DType::bfloat16: return f(Tag<BFloat16>{}, Tag<float>{});
    default: ASSERT(dtype == DType::float32); return f(Tag<float>{}, Tag<float>{});
  }
}
template <class T, class E>
T number(E x) {
  if constexpr (std::is_same_v<T, E>) return x;
  else return to_float(x);
}
template <class E, class T>
E element(T x) {
  if constexpr (std::is_same_v<T, E>) return x;
  else return from_float<E>(x);
}

// Calls f(i, n, s) for positions i = n * inner + s, of which dividing each would take longest.
template <class F>
void for_each_position(int64_t begin, int64_t end, int64_t inner, F&& f) {
  int64_t n = begin / inner, s = begin % inner;
  for (int64_t i = begin; i < end; ++i) {
    f(i, n, s);
    if (++s < inner) continue;
    s = 0;
    ++n;
  }
}

}  // namespace

void label_margins_cpu(const Tensor& input, const Tensor& targets, const Tensor& others,
                       int64_t count, const Tensor& losses) {
  by_element(input.dtype(), [&]<class E, class T>(Tag<E>, Tag<T>) {
    int64_t rows = input.size(0), classes = input.size(1);
    parallel_for(0, rows, kBlock / classes + 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const E* scores = input.data<E>() + n * classes;
        const int64_t* target = targets.data<int64_t>() + n * classes;
        const bool* counts = others.data<bool>() + n * classes;
        double loss = 0;
        for (int64_t t = 0; t < count && target[t] >= 0; ++t) {
          T least = 1 - number<T>(scores[target[t]]);
          for (int64_t c = 0; c < classes; ++c) {
            T excess = least + number<T>(scores[c]);
            loss += counts[c] && !(excess <= 0) ? double(excess) : 0.0;  // NaN stays
          }
        }
        losses.data<E>()[n] = element<E>(T(loss));
      }
    });
  });
}

void nll_loss_cpu(const Tensor& input, const Tensor& target, const Tensor& weight, NllShape shape,
                  int64_t ignore_index, LossReduction reduction, const Tensor& output,
                  const Tensor& total_weight) {
  by_element(input.dtype(), [&]<class E, class T>(Tag<E>, Tag<T>) {
    const E* x = input.data<E>();
    const T* w = weight.defined() ? weight.data<T>() : nullptr;
    const int64_t* classes = target.data<int64_t>();
    int64_t positions = shape.batch * shape.inner, blocks = ceil_div(positions, kBlock);
    std::vector<double> losses(static_cast<size_t>(blocks)), weights(static_cast<size_t>(blocks));
    parallel_for(0, blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        int64_t first = b * kBlock, last = std::min(positions, first + kBlock);
        double loss_of_block = 0, weight_of_block = 0;
        for_each_position(first, last, shape.inner, [&](int64_t i, int64_t n, int64_t s) {
          int64_t c = classes[i];
          bool ignored = !is_class(c, shape.classes, ignore_index);
          T scale = ignored ? T(0) : w ? w[c] : T(1);
          int64_t at = (n * shape.classes + c) * shape.inner + s;
          T loss = ignored ? T(0) : -number<T>(x[at]) * scale;
          if (reduction == LossReduction::none) output.data<E>()[i] = element<E>(loss);
          loss_of_block += double(loss);
          weight_of_block += double(scale);
        });
        losses[size_t(b)] = loss_of_block;
        weights[size_t(b)] = weight_of_block;
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
      *output.data<E>() = element<E>(T(reduction == LossReduction::mean ? loss / total : loss));
  });
}

void nll_loss_backward_cpu(const Tensor& grad, const Tensor& target, const Tensor& weight,
                           const Tensor& total_weight, NllShape shape, int64_t ignore_index,
                           LossReduction reduction, const Tensor& grad_input) {
  by_element(grad_input.dtype(), [&]<class E, class T>(Tag<E>, Tag<T>) {
    E* out = grad_input.data<E>();
    const E* g = grad.data<E>();
    const T* w = weight.defined() ? weight.data<T>() : nullptr;
    const int64_t* classes = target.data<int64_t>();
    T divisor = reduction == LossReduction::mean ? *total_weight.data<T>() : T(1);
    parallel_for(0, shape.batch * shape.inner, 4 * kBlock, [&](int64_t begin, int64_t end) {
      for_each_position(begin, end, shape.inner, [&](int64_t i, int64_t n, int64_t s) {
        int64_t c = classes[i];
        if (!is_class(c, shape.classes, ignore_index)) return;
        T slope = number<T>(reduction == LossReduction::none ? g[i] : *g) * (w ? w[c] : T(1));
        out[(n * shape.classes + c) * shape.inner + s] = element<E>(-slope / divisor);
      });
    });
  });
}

}  // namespace rushlight
