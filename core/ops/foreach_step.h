// Owns what a step of SGD or Adam does to one element. The same text serves every instruction set
// and CUDA; formula.h or formula.cuh comes before it. The formulas, with their sources, are in
// rushlight/optim.
#pragma once

#include "core/ops/foreach_args.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// The numbers of a step in the type of the computation. update(arrays, i) updates element i.
template <class T>
struct Sgd {
  T sign, decay, lr, momentum, share;
  bool decays, keeps, nesterov, first;

  explicit Sgd(const SgdStep& step)
      : sign(step.maximize ? T(-1) : T(1)),
        decay(T(step.weight_decay)),
        lr(T(step.lr)),
        momentum(T(step.momentum)),
        share(T(1 - step.dampening)),
        decays(step.weight_decay != 0),
        keeps(step.momentum != 0),
        nesterov(step.nesterov),
        first(step.first) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* buffer, T*, T*, int64_t i) const {
    T g = sign * grad[i];
    if (decays) g += decay * param[i];
    if (keeps) {
      T running = first ? g : momentum * buffer[i] + share * g;
      buffer[i] = running;
      g = nesterov ? g + momentum * running : running;
    }
    param[i] -= lr * g;
  }
};

template <class T>
struct Adam {
  T sign, eps, decay, shrink, beta1, rest1, beta2, rest2, rate, root;
  bool decays, amsgrad;

  explicit Adam(const AdamStep& step)
      : sign(step.maximize ? T(-1) : T(1)),
        eps(T(step.eps)),
        decay(T(step.weight_decay)),
        shrink(step.decoupled ? T(1 - step.lr * step.weight_decay) : T(1)),
        beta1(T(step.beta1)),
        rest1(T(1 - step.beta1)),
        beta2(T(step.beta2)),
        rest2(T(1 - step.beta2)),
        rate(T(step.lr / step.correction1)),
        root(T(sqrt(step.correction2))),
        decays(step.weight_decay != 0 && !step.decoupled),
        amsgrad(step.amsgrad) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* mean, T* square, T* largest,
                                     int64_t i) const {
    T g = sign * grad[i], p = param[i] * shrink;
    if (decays) g += decay * p;
    T m = beta1 * mean[i] + rest1 * g;
    T v = beta2 * square[i] + rest2 * g * g;
    mean[i] = m;
    square[i] = v;
    if (amsgrad) {
      v = max(largest[i], v);
      largest[i] = v;
    }
    param[i] = p - rate * m / (sqrt(v) / root + eps);
  }
};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
