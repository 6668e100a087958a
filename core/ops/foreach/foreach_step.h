// Owns what a step of each optimizer does to one element. The same text serves every instruction
// set and CUDA, where T is a number, and differentiable steps, where it is a Tensor; the vocabulary
// (formula.h, formula.cuh or ops.h) comes before it. The formulas' sources are in rushlight/optim.
//
// A further optimizer has its numbers and its name in foreach_args.h, its formula here, an OP block
// in optim.cpp, and a file in rushlight/optim.
#pragma once

#include "core/ops/foreach/foreach_args.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// update(arrays, i) of a method updates element i. S is the type of the step's numbers, T itself
// where that is a number.

// What most methods begin with: the gradient, turned round to go up, with the L2 penalty.
template <class S>
struct Slope {
  S sign, decay;
  bool decays;

  Slope(bool maximize, double weight_decay)
      : sign(maximize ? S(-1) : S(1)), decay(S(weight_decay)), decays(weight_decay != 0) {}

  template <class T>
  [[gnu::always_inline]] T at(const T& grad, const T& param) const {
    T g = sign * grad;
    if (decays) g = g + decay * param;
    return g;
  }
};

// A running mean: mean = keep * mean + (1 - keep) * value.
template <class S>
struct Running {
  S keep, rest;

  explicit Running(double keep) : keep(S(keep)), rest(S(1 - keep)) {}

  template <class T>
  [[gnu::always_inline]] T mean(const T& old, const T& value) const {
    return keep * old + rest * value;
  }
  template <class T>
  [[gnu::always_inline]] T mean_square(const T& old, const T& value) const {
    return keep * old + rest * value * value;
  }
};

template <class T, class S = T>
struct Sgd {
  Slope<S> slope;
  S lr, momentum, share;
  bool keeps, nesterov, first;

  explicit Sgd(const SgdStep& step)
      : slope(step.maximize, step.weight_decay),
        lr(S(step.lr)),
        momentum(S(step.momentum)),
        share(S(1 - step.dampening)),
        keeps(step.momentum != 0),
        nesterov(step.nesterov),
        first(step.first) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* buffer, T*, T*, int64_t i) const {
    T g = slope.at(grad[i], param[i]);
    if (keeps) {
      T running = first ? g : momentum * buffer[i] + share * g;
      buffer[i] = running;
      g = nesterov ? g + momentum * running : running;
    }
    param[i] = param[i] - lr * g;
  }
};

template <class T, class S = T>
struct Adam {
  Slope<S> slope;
  Running<S> first, second;
  S eps, shrink, rate, root;
  bool amsgrad;

  explicit Adam(const AdamStep& step)
      : slope(step.maximize, step.weight_decay),
        first(step.beta1),
        second(step.beta2),
        eps(S(step.eps)),
        shrink(S(step.shrink)),
        rate(S(step.rate)),
        root(S(step.root)),
        amsgrad(step.amsgrad) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* mean, T* square, T* largest,
                                     int64_t i) const {
    T p = shrink * param[i];
    T g = slope.at(grad[i], p);
    T m = first.mean(mean[i], g);
    T v = second.mean_square(square[i], g);
    mean[i] = m;
    square[i] = v;
    if (amsgrad) {
      v = max(largest[i], v);
      largest[i] = v;
    }
    param[i] = p - rate * m / (sqrt(v) / root + eps);
  }
};

template <class T, class S = T>
struct Rmsprop {
  Slope<S> slope;
  Running<S> second;
  S lr, eps, momentum;
  bool keeps, centered;

  explicit Rmsprop(const RmspropStep& step)
      : slope(step.maximize, step.weight_decay),
        second(step.alpha),
        lr(S(step.lr)),
        eps(S(step.eps)),
        momentum(S(step.momentum)),
        keeps(step.momentum != 0),
        centered(step.centered) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* square, T* buffer, T* mean,
                                     int64_t i) const {
    T g = slope.at(grad[i], param[i]);
    T v = second.mean_square(square[i], g);
    square[i] = v;
    if (centered) {
      T m = second.mean(mean[i], g);
      mean[i] = m;
      v = v - m * m;
    }
    T change = g / (sqrt(v) + eps);
    if (keeps) {
      change = momentum * buffer[i] + change;
      buffer[i] = change;
    }
    param[i] = param[i] - lr * change;
  }
};

template <class T, class S = T>
struct Adagrad {
  Slope<S> slope;
  S rate, eps;

  explicit Adagrad(const AdagradStep& step)
      : slope(step.maximize, step.weight_decay), rate(S(step.rate)), eps(S(step.eps)) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* sum, T*, T*, int64_t i) const {
    T g = slope.at(grad[i], param[i]);
    T total = sum[i] + g * g;
    sum[i] = total;
    param[i] = param[i] - rate * g / (sqrt(total) + eps);
  }
};

template <class T, class S = T>
struct Adadelta {
  Slope<S> slope;
  Running<S> mean;
  S lr, eps;

  explicit Adadelta(const AdadeltaStep& step)
      : slope(step.maximize, step.weight_decay), mean(step.rho), lr(S(step.lr)), eps(S(step.eps)) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* square, T* changes, T*,
                                     int64_t i) const {
    T g = slope.at(grad[i], param[i]);
    T v = mean.mean_square(square[i], g);
    T change = sqrt(changes[i] + eps) / sqrt(v + eps) * g;
    square[i] = v;
    changes[i] = mean.mean_square(changes[i], change);
    param[i] = param[i] - lr * change;
  }
};

template <class T, class S = T>
struct Adamax {
  Slope<S> slope;
  Running<S> first;
  S beta2, eps, rate;

  explicit Adamax(const AdamaxStep& step)
      : slope(step.maximize, step.weight_decay),
        first(step.beta1),
        beta2(S(step.beta2)),
        eps(S(step.eps)),
        rate(S(step.rate)) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* mean, T* largest, T*,
                                     int64_t i) const {
    T g = slope.at(grad[i], param[i]);
    T m = first.mean(mean[i], g);
    T u = max(beta2 * largest[i], abs(g) + eps);
    mean[i] = m;
    largest[i] = u;
    param[i] = param[i] - rate * m / u;
  }
};

template <class T, class S = T>
struct Nadam {
  Slope<S> slope;
  Running<S> first, second;
  S grad_rate, mean_rate, root, eps, shrink;

  explicit Nadam(const NadamStep& step)
      : slope(step.maximize, step.weight_decay),
        first(step.beta1),
        second(step.beta2),
        grad_rate(S(step.grad_rate)),
        mean_rate(S(step.mean_rate)),
        root(S(step.root)),
        eps(S(step.eps)),
        shrink(S(step.shrink)) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* mean, T* square, T*,
                                     int64_t i) const {
    T p = shrink * param[i];
    T g = slope.at(grad[i], p);
    T m = first.mean(mean[i], g);
    T v = second.mean_square(square[i], g);
    mean[i] = m;
    square[i] = v;
    param[i] = p - (grad_rate * g + mean_rate * m) / (sqrt(v) / root + eps);
  }
};

template <class T, class S = T>
struct Radam {
  Slope<S> slope;
  Running<S> first, second;
  S rate, eps, shrink;
  bool rectified;

  explicit Radam(const RadamStep& step)
      : slope(step.maximize, step.weight_decay),
        first(step.beta1),
        second(step.beta2),
        rate(S(step.rate)),
        eps(S(step.eps)),
        shrink(S(step.shrink)),
        rectified(step.rectified) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* mean, T* square, T*,
                                     int64_t i) const {
    T p = shrink * param[i];
    T g = slope.at(grad[i], p);
    T m = first.mean(mean[i], g);
    T v = second.mean_square(square[i], g);
    mean[i] = m;
    square[i] = v;
    T change = rate * m;
    if (rectified) change = change / (sqrt(v) + eps);
    param[i] = p - change;
  }
};

template <class T, class S = T>
struct Asgd {
  Slope<S> slope;
  S eta, shrink, mu;
  bool averages;

  explicit Asgd(const AsgdStep& step)
      : slope(step.maximize, step.weight_decay),
        eta(S(step.eta)),
        shrink(S(1 - step.lambd * step.eta)),
        mu(S(step.mu)),
        averages(step.mu != 1) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* average, T*, T*, int64_t i) const {
    T g = slope.at(grad[i], param[i]);
    T p = shrink * param[i] - eta * g;
    param[i] = p;
    average[i] = averages ? average[i] + mu * (p - average[i]) : p;
  }
};

template <class T, class S = T>
struct Rprop {
  Slope<S> slope;
  S eta_minus, eta_plus, step_min, step_max;

  explicit Rprop(const RpropStep& step)
      : slope(step.maximize, 0),
        eta_minus(S(step.eta_minus)),
        eta_plus(S(step.eta_plus)),
        step_min(S(step.step_min)),
        step_max(S(step.step_max)) {}

  [[gnu::always_inline]] void update(T* param, const T* grad, T* last, T* sizes, T*,
                                     int64_t i) const {
    T g = slope.at(grad[i], param[i]);
    T product = g * last[i];
    T size = select(product > 0, eta_plus * sizes[i],
                    select(product < 0, eta_minus * sizes[i], sizes[i]));
    size = clamp(size, step_min, step_max);
    g = select(product < 0, S(0), g);  // a sign that has just changed does not count
    param[i] = param[i] - size * sign(g);
    last[i] = g;
    sizes[i] = size;
  }
};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
