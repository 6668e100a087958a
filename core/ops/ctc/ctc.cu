// Owns ctc_loss on CUDA: the forward-backward algorithm on logarithms (Graves et al. 2006). The
// times of a sample come one after the other, so a block has a sample and its threads the states;
// the gradient then takes all times at once. A label outside the classes gives NaN.
//   COMPUTE   float or double; CHUNK is 1, see row.cuh
#include "core/ops/row.cuh"

#include "core/ops/ctc/ctc_args.h"

namespace rushlight::on_cuda {

constexpr int kWalkThreads = 1024;
constexpr Compute kNothing = -Compute(kInfinity);  // the logarithm of the probability 0

inline Compute larger(Compute a, Compute b) { return a > b ? a : b; }

// log(exp(a) + exp(b) + exp(c))
inline Compute log_sum(Compute a, Compute b, Compute c) {
  Compute most = larger(larger(a, b), c);
  Compute shift = most == kNothing ? Compute(0) : most;
  return shift + log(quick_exp(a - shift) + quick_exp(b - shift) + quick_exp(c - shift));
}

struct State {
  int64_t label;
  bool skips;  // whether the state two before may come last
};

// A sample, whose states are counted from the start, or from the end if it is reversed.
struct Sample {
  const CtcArgs& args;
  int64_t index, length, times;
  const int64_t* target;

  Sample(const CtcArgs& args_in, int64_t n)
      : args(args_in),
        index(n),
        length(args_in.target_lengths[n]),
        times(args_in.input_lengths[n]),
        target(args_in.targets + args_in.starts[n]) {}

  int64_t count() const { return 2 * length + 1; }
  State state(int64_t s, bool reversed) const {
    if (s % 2 == 0 || s >= count()) return {args.blank, false};
    int64_t i = reversed ? length - 1 - s / 2 : s / 2;
    return {target[i], s >= 3 && target[i] != target[reversed ? i + 1 : i - 1]};
  }
  Compute emission(int64_t time, int64_t label) const {
    if (label < 0 || label >= args.classes) return Compute(kNaN);
    int64_t row = (time * args.samples + index) * args.classes;
    return static_cast<const Compute*>(args.log_probs)[row + label];
  }
};

// Writes the logarithms of the probabilities of all ways to each state at each time (samples,
// times, width), from the start, or from the end if it is reversed; and the losses, unless it is.
// `spare` has room for two rows of each sample, or is null if shared memory has it.
extern "C" __global__ void __launch_bounds__(kWalkThreads)
    walk(CtcArgs args, bool reversed, Compute* rows, Compute* spare, Compute* losses) {
  extern __shared__ Compute memory[];
  Sample sample(args, blockIdx.x);
  if (sample.times == 0) {
    if (!reversed && threadIdx.x == 0)
      losses[sample.index] = sample.length == 0 ? Compute(0) : -kNothing;
    return;
  }
  Compute* last = spare ? spare + sample.index * 2 * args.width : memory;
  Compute* now = last + args.width;
  auto time_of = [&](int64_t step) { return reversed ? sample.times - 1 - step : step; };
  // What the thread's first state is about is fetched a step ahead.
  State first = sample.state(threadIdx.x, reversed);
  Compute ahead = sample.emission(time_of(0), first.label);
  for (int64_t step = 0; step < sample.times; ++step) {
    Compute fetched = ahead;
    if (step + 1 < sample.times) ahead = sample.emission(time_of(step + 1), first.label);
    int64_t time = time_of(step);
    Compute* row = rows + (sample.index * args.times + time) * args.width;
    for (int64_t s = threadIdx.x; s < sample.count(); s += blockDim.x) {
      bool is_first = s == threadIdx.x;
      State state = is_first ? first : sample.state(s, reversed);
      Compute here = is_first ? fetched : sample.emission(time, state.label);
      // One begins in the first blank or at the first label.
      if (step > 0)
        here +=
            log_sum(last[s], s > 0 ? last[s - 1] : kNothing, state.skips ? last[s - 2] : kNothing);
      else if (s >= 2) here = kNothing;
      now[s] = here;
      row[s] = here;
    }
    __syncthreads();
    Compute* written = now;
    now = last;
    last = written;
  }
  if (reversed || threadIdx.x != 0) return;
  const Compute* end = last + sample.count() - 1;
  losses[sample.index] = -log_sum(end[0], sample.length == 0 ? kNothing : end[-1], kNothing);
}

// Writes for each label of a target at which position the same one comes next, the length of the
// target if nowhere; and ~that, a negative number, if it has come before: (samples, longest).
extern "C" __global__ void __launch_bounds__(kRowThreads) link(CtcArgs args, int64_t* next) {
  int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t n = at / args.longest(), i = at % args.longest();
  if (n >= args.samples) return;
  Sample sample(args, n);
  if (i >= sample.length) return;
  int64_t before = 0, after = i + 1;
  while (before < i && sample.target[before] != sample.target[i]) ++before;
  while (after < sample.length && sample.target[after] != sample.target[i]) ++after;
  next[at] = before < i ? ~after : after;
}

// The gradient of a row of classes, one sample at one time, in each block. A class sums its states
// in their order, so that no order of threads shows.
extern "C" __global__ void __launch_bounds__(kRowThreads)
    grad(CtcArgs args, const Compute* ahead, const Compute* behind, const int64_t* next,
         const Compute* losses, const Compute* grads, bool zero_infinity, Compute* grad_input) {
  int64_t time = blockIdx.x / args.samples;
  Sample sample(args, blockIdx.x % args.samples);
  int64_t first_class = int64_t(blockIdx.x) * args.classes;
  Compute* to = grad_input + first_class;
  Compute loss = losses[sample.index], scale = grads[sample.index];
  bool is_past = time >= sample.times;
  if (is_past || loss == -kNothing) {  // no way leads to the target
    Compute fill = is_past || zero_infinity ? Compute(0) : Compute(kNaN);
    for (int64_t c = threadIdx.x; c < args.classes; c += blockDim.x) to[c] = fill;
    return;
  }
  const Compute* log_probs = static_cast<const Compute*>(args.log_probs) + first_class;
  for (int64_t c = threadIdx.x; c < args.classes; c += blockDim.x)
    to[c] = scale * quick_exp(log_probs[c]);

  int64_t row = (sample.index * args.times + time) * args.width;
  ahead += row;
  behind += row + sample.count() - 1;
  // The probability of a state given the target; both ways count the emission.
  auto posterior = [&](int64_t s, int64_t label) {
    Compute both = ahead[s] + behind[-s];
    return both == kNothing ? Compute(0) : quick_exp(both - sample.emission(time, label) + loss);
  };
  Sums blanks = Sums::none();
  for (int64_t s = 2 * int64_t(threadIdx.x); s < sample.count(); s += 2 * int64_t(blockDim.x))
    blanks.first += posterior(s, args.blank);
  blanks = merged(blanks, int(blockDim.x));
  __syncthreads();
  if (threadIdx.x == 0) to[args.blank] -= scale * blanks.first;
  __syncthreads();
  next += sample.index * args.longest();
  for (int64_t i = threadIdx.x; i < sample.length; i += blockDim.x) {
    int64_t label = sample.target[i], after = next[i];
    if (after < 0 || label < 0 || label >= args.classes) continue;
    Compute sum = posterior(2 * i + 1, label);
    for (; after < sample.length; after = ~next[after]) sum += posterior(2 * after + 1, label);
    to[label] -= scale * sum;
  }
}

}  // namespace rushlight::on_cuda
