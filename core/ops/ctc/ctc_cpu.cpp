// Defines ctc_loss on the CPU: the forward-backward algorithm on logarithms (Graves et al. 2006).
// Threads share the samples of a batch.
#include "core/ops/ctc/ctc.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/device/threads.h"
#include "core/ops/ctc/ctc_loops.h"
#include "core/ops/operands.h"

namespace rushlight {

ISA_TABLES(CtcLoops, ctc_loops)

namespace {

constexpr int64_t kGrain = 4096;  // states at all times that are worth a thread

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <class T>
const CtcLoopsOf<T>& loops() {
  return active_of<T>(ctc_loops_sets);
}

// The states of one sample, forwards or from the end.
template <class T>
struct States {
  std::vector<int64_t> classes;
  std::vector<T> skip;  // 0 where the state two before may come last, -infinity elsewhere
  std::vector<T> emit;  // the log-probabilities at one time

  void set(const int64_t* target, int64_t length, int64_t blank, bool reversed) {
    size_t n = size_t(2 * length + 1);
    classes.assign(n, blank);
    skip.assign(n, -kInfinity<T>);
    emit.resize(n);
    for (size_t s = 1; s < n; s += 2) {
      size_t label = s / 2;
      classes[s] = target[reversed ? size_t(length) - 1 - label : label];
      if (s >= 3 && classes[s] != classes[s - 2]) skip[s] = 0;
    }
  }
  int64_t count() const { return int64_t(classes.size()); }
  void read(const T* row) {
    for (size_t s = 0; s < classes.size(); ++s) emit[s] = row[classes[s]];
  }
  // One begins in the first blank or at the first label.
  void begin(T* at) const {
    for (size_t s = 0; s < classes.size(); ++s) at[s] = s < 2 ? emit[s] : -kInfinity<T>;
  }
};

// Calls f(sample, its target, the length of that, its own length) for all samples.
template <class F>
void for_each_sample(const CtcBatch& batch, int64_t states, F&& f) {
  std::vector<int64_t> starts = batch.starts();
  int64_t work = std::max<int64_t>(batch.times() * states, 1);
  parallel_for(0, batch.samples(), std::max<int64_t>(kGrain / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t n = begin; n < end; ++n)
                   f(n, batch.targets.data<int64_t>() + starts[size_t(n)],
                     batch.target_lengths[size_t(n)], batch.input_lengths[size_t(n)]);
               });
}

}  // namespace

std::vector<int64_t> CtcBatch::starts() const {
  std::vector<int64_t> result;
  int64_t next = 0;
  for (size_t n = 0; n < target_lengths.size(); ++n) {
    result.push_back(next);
    next += targets.dim() == 2 ? targets.size(1) : target_lengths[n];
  }
  return result;
}

int64_t CtcBatch::longest() const {
  int64_t result = 0;
  for (int64_t length : target_lengths) result = std::max(result, length);
  return result;
}

void ctc_loss_cpu(const CtcBatch& batch, const Tensor& losses, const Tensor& log_alpha) {
  by_type(batch.log_probs.dtype(), [&]<class T>(Tag<T>) {
    const CtcLoopsOf<T>& loop = loops<T>();
    const T* x = batch.log_probs.data<T>();
    int64_t width = log_alpha.size(2), row = batch.classes(), time = batch.samples() * row;
    for_each_sample(
        batch, width, [&](int64_t n, const int64_t* target, int64_t length, int64_t times) {
          T* loss = losses.data<T>() + n;
          if (times == 0) {
            *loss = length == 0 ? T(0) : kInfinity<T>;
            return;
          }
          States<T> states;
          states.set(target, length, batch.blank, false);
          T* at = log_alpha.data<T>() + n * batch.times() * width;
          for (int64_t t = 0; t < times; ++t, at += width) {
            states.read(x + t * time + n * row);
            if (t == 0) states.begin(at);
            else loop.step(at - width, states.skip.data(), states.emit.data(), at, states.count());
          }
          const T* last = at - width + states.count() - 1;
          T other = length == 0 ? -kInfinity<T> : last[-1], most = std::max(*last, other);
          T shift = most == -kInfinity<T> ? T(0) : most;
          *loss = -(shift + std::log(std::exp(*last - shift) + std::exp(other - shift)));
        });
  });
}

void ctc_loss_backward_cpu(const CtcBatch& batch, const Tensor& grad, const Tensor& losses,
                           const Tensor& log_alpha, bool zero_infinity, const Tensor& grad_input) {
  by_type(batch.log_probs.dtype(), [&]<class T>(Tag<T>) {
    const CtcLoopsOf<T>& loop = loops<T>();
    const T* x = batch.log_probs.data<T>();
    int64_t width = log_alpha.size(2), row = batch.classes(), time = batch.samples() * row;
    for_each_sample(
        batch, width, [&](int64_t n, const int64_t* target, int64_t length, int64_t times) {
          T* out = grad_input.data<T>() + n * row;
          T loss = losses.data<T>()[n], scale = grad.data<T>()[n];
          for (int64_t t = times; t < batch.times(); ++t) std::fill_n(out + t * time, row, T(0));
          // No way leads to the target.
          if (loss == kInfinity<T>) {
            T fill = zero_infinity ? T(0) : std::numeric_limits<T>::quiet_NaN();
            for (int64_t t = 0; t < times; ++t) std::fill_n(out + t * time, row, fill);
            return;
          }
          States<T> ahead, behind;
          ahead.set(target, length, batch.blank, false);
          behind.set(target, length, batch.blank, true);
          int64_t count = ahead.count();
          std::vector<T> beta(2 * size_t(count)), posterior(size_t(count), T(0));
          T *now = beta.data(), *later = now + count;
          for (int64_t t = times - 1; t >= 0; --t, std::swap(now, later)) {
            const T* row_at = x + t * time + n * row;
            ahead.read(row_at);
            behind.read(row_at);
            if (t == times - 1) behind.begin(now);
            else loop.step(later, behind.skip.data(), behind.emit.data(), now, count);
            const T* alpha = log_alpha.data<T>() + (n * batch.times() + t) * width;
            loop.posterior(alpha, now, ahead.emit.data(), loss, posterior.data(), count);
            T* to = out + t * time;
            loop.scaled_exp(row_at, scale, to, row);
            for (int64_t s = 0; s < count; ++s)
              to[ahead.classes[size_t(s)]] -= scale * posterior[size_t(s)];
          }
        });
  });
}

}  // namespace rushlight
