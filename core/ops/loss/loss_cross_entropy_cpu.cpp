// Owns the walk of cross_entropy over rows of logits; loss_isa.cpp has the loops inside a row.
#include <vector>

#include "core/device/threads.h"
#include "core/ops/loss/loss.h"
#include "core/ops/loss/loss_loops.h"
#include "core/ops/operands.h"

namespace rushlight {

ISA_TABLES(CrossEntropyLoops, cross_entropy_loops)

namespace {

constexpr int64_t kGrain = 16384;  // logits that are worth a thread

template <class T>
const CrossEntropyLoopsOf<T>& loops() {
  return active_of<T>(cross_entropy_loops_sets);
}

// The rows and what they are compared with.
template <class T>
struct Rows {
  const T* x;
  const T* weight;  // null for ones
  const int64_t* target;
  int64_t count, classes, grain;
  T own_share, other_share;  // of the target, and of every class in the smoothed part

  Rows(const Tensor& input, const Tensor& targets, const Tensor& weights, const CrossEntropy& how)
      : x(input.data<T>()),
        weight(weights.defined() ? weights.data<T>() : nullptr),
        target(targets.data<int64_t>()),
        count(input.size(0)),
        classes(input.size(1)),
        grain(std::max<int64_t>(kGrain / classes, 1)),
        own_share(T(1 - how.smoothing)),
        other_share(T(how.smoothing / double(classes))) {}

  T weight_of(int64_t c) const { return weight ? weight[c] : T(1); }
};

}  // namespace

void cross_entropy_cpu(const Tensor& input, const Tensor& target, const Tensor& weight,
                       const CrossEntropy& how, const Tensor& output, const Tensor& normalizer,
                       const Tensor& total_weight) {
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
    Rows<T> rows(input, target, weight, how);
    const CrossEntropyLoopsOf<T>& loop = loops<T>();
    T *largest = normalizer.data<T>(), *log_total = largest + rows.count;
    bool is_whole = how.reduction != LossReduction::none;
    std::vector<T> kept(is_whole ? size_t(rows.count) : 0);
    T* losses = is_whole ? kept.data() : output.data<T>();
    auto loss_of_row = [&](int64_t r) {
      int64_t c = rows.target[r];
      if (!is_class(c, rows.classes, how.ignore_index)) return T(0);
      const T* x = rows.x + r * rows.classes;
      T own = rows.weight_of(c) * (log_total[r] - (x[c] - largest[r])) * rows.own_share;
      if (how.smoothing == 0) return own;
      return own + rows.other_share *
                       loop.smoothed(x, rows.weight, rows.classes, largest[r], log_total[r]);
    };
    parallel_for(0, rows.count, rows.grain, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end; first += kCrossEntropyRows) {
        int64_t last = std::min(first + kCrossEntropyRows, end);
        loop.normalize(rows.x + first * rows.classes, last - first, rows.classes, largest + first,
                       log_total + first);
        for (int64_t r = first; r < last; ++r) losses[r] = loss_of_row(r);
      }
    });
    double loss = 0, total = 0;
    for (int64_t r = 0; r < rows.count; ++r) {
      int64_t c = rows.target[r];
      if (!is_class(c, rows.classes, how.ignore_index)) continue;
      loss += double(losses[r]);
      total += double(rows.weight_of(c));
    }
    *total_weight.data<T>() = T(total);
    // The mean over nothing is 0 / 0 = NaN, as in PyTorch.
    if (is_whole) *output.data<T>() = T(how.reduction == LossReduction::mean ? loss / total : loss);
  });
}

void cross_entropy_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& normalizer,
                                const Tensor& target, const Tensor& weight,
                                const Tensor& total_weight, const CrossEntropy& how,
                                const Tensor& grad_input) {
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
    Rows<T> rows(input, target, weight, how);
    const CrossEntropyLoopsOf<T>& loop = loops<T>();
    const T *largest = normalizer.data<T>(), *log_total = largest + rows.count, *g = grad.data<T>();
    T divisor = how.reduction == LossReduction::mean ? *total_weight.data<T>() : T(1);
    T all = T(rows.classes);  // the weights of all classes
    if (rows.weight) {
      double sum = 0;
      for (int64_t c = 0; c < rows.classes; ++c) sum += double(rows.weight[c]);
      all = T(sum);
    }
    parallel_for(0, rows.count, rows.grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        T* out = grad_input.data<T>() + r * rows.classes;
        int64_t c = rows.target[r];
        if (!is_class(c, rows.classes, how.ignore_index)) {
          std::fill(out, out + rows.classes, T(0));
          continue;
        }
        T slope = (how.reduction == LossReduction::none ? g[r] : *g) / divisor;
        T own = slope * rows.weight_of(c) * rows.own_share, share = slope * rows.other_share;
        loop.gradient(rows.x + r * rows.classes, rows.weight, rows.classes, largest[r],
                      log_total[r], own + share * all, share, out);
        out[c] -= own;
      }
    });
  });
}

}  // namespace rushlight
