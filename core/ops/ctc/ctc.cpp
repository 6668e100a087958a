// Owns ctc_loss: its forms, its checks, and the private ops around the kernels.
#include "core/ops/ctc/ctc.h"

#include "core/autograd/needs.h"
#include "core/ops/joined_samples.h"
#include "core/ops/loss/loss.h"
#include "core/ops/no_derivative.h"
#include "core/ops/op.h"
#include "core/ops/same_device.h"

namespace rushlight {
namespace {

inline constexpr DTypeSet single_or_double([](DType t) {
  return t == DType::float32 || t == DType::float64;
});

constexpr int64_t kMany = std::numeric_limits<int64_t>::max() / 4;  // more than memory holds

// A tensor where its numbers can be read: those on CUDA are waited for.
Tensor readable(const Tensor& t) { return t.device().is_cuda() ? needs::to_device(t, {}) : t; }

// The numbers of a tensor, none on meta.
std::vector<int64_t> numbers_of(const Tensor& lengths) {
  if (lengths.device().is_meta()) return {};
  Tensor flat = to_contiguous(to_dtype(readable(lengths), DType::int64));
  return {flat.data<int64_t>(), flat.data<int64_t>() + flat.numel()};
}

// As a vector for each sample, on the CPU, unless they are on meta.
Tensor checked_lengths(const Tensor& given, const Tensor& x, const char* name) {
  int64_t samples = x.size(1);
  CHECK(given.device().is_cpu() || given.device() == x.device(), name, " is on ", given.device(),
        ", but log_probs on ", x.device(), ". Use ", name, ".cpu().");
  Tensor lengths = readable(given);
  CHECK(is_integral(lengths.dtype()), name, " must be integral, got ", dtype_name(lengths.dtype()),
        ".");
  CHECK(lengths.numel() == samples, name, " must be of size batch_size ", samples, ", got ",
        lengths.sizes(), ".");
  return reshape(to_dtype(lengths, DType::int64), Shape{samples});
}

Tensor copy_of(const Tensor& contiguous) {
  Tensor result = empty(contiguous.sizes(), DType::int64);
  std::copy_n(contiguous.data<int64_t>(), contiguous.numel(), result.data<int64_t>());
  return result;
}

void check_range(const std::vector<int64_t>& lengths, int64_t most, const char* name) {
  for (int64_t length : lengths) {
    CHECK(length >= 0, "Expected ", name, " to have value at least 0, but got value ", length, ".");
    CHECK(length <= most, "Expected ", name, " to have value at most ", most, ", but got value ",
          length, ".");
  }
}

// Classes on CUDA would have to be waited for.
void check_classes(const CtcBatch& batch) {
  std::vector<int64_t> starts = batch.starts();
  for (size_t n = 0; n < starts.size(); ++n)
    for (int64_t s = 0; s < batch.target_lengths[n]; ++s) {
      int64_t c = batch.targets.data<int64_t>()[starts[n] + s];
      CHECK(c >= 0 && c < batch.classes(), "target ", c, " at position ", s, " of sample ", n,
            " is out of range for ", batch.classes(), " classes.");
    }
}

// What the kernels rely on: numbers that nobody else can reach, checked for each direction anew.
CtcBatch checked_batch(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank) {
  CtcBatch batch{to_contiguous(log_probs), to_contiguous(targets), numbers_of(input_lengths),
                 numbers_of(target_lengths), blank};
  check_range(batch.input_lengths, batch.times(), "input_lengths");
  check_range(batch.target_lengths, kMany, "target_lengths");
  if (log_probs.device().is_meta()) return batch;
  int64_t samples = batch.samples(), total = 0;
  for (int64_t length : batch.target_lengths)
    total = std::min(total + length, kMany);  // so that it cannot overflow
  if (targets.dim() == 2)
    CHECK(targets.size(0) == samples && targets.size(1) >= batch.longest(), "targets has shape ",
          targets.sizes(), ", expected (", samples, ", ", batch.longest(),
          ") or longer rows for these target_lengths.");
  else
    CHECK(targets.numel() == total, "targets has ", targets.numel(),
          " elements, expected the sum of target_lengths, ", total, ".");
  if (targets.device().is_cpu()) {
    batch.targets = copy_of(batch.targets);
    check_classes(batch);
  }
  return batch;
}

// The batches of vmap's samples as one: (B, T, N, C) as (T, B * N, C). Targets that stand one after
// the other still do when their samples are joined.
Tensor joined_times(const Tensor& t) {
  return reshape(transpose(t, 0, 1), Shape{t.size(1), t.size(0) * t.size(2), t.size(3)});
}

using CtcResult = std::tuple<Tensor, Tensor>;

Tensor ctc(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
           const Tensor& target_lengths, int64_t blank, std::string_view reduction,
           bool zero_infinity) {
  LossReduction how = parse_reduction(reduction);
  CHECK(log_probs.dim() == 2 || log_probs.dim() == 3,
        "Expected 3-dimensional tensor (T, N, C) or 2-dimensional (T, C) for log_probs, got ",
        log_probs.sizes(), ".");
  CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty, got ", log_probs.sizes(), ".");
  bool batched = log_probs.dim() == 3;
  Tensor x = batched ? log_probs : unsqueeze(log_probs, 1);  // (T, N, C)
  CHECK(targets.dim() == 1 || targets.dim() == 2,
        "Expected 1 to 2 dimensions for targets, got shape ", targets.sizes(), ".");
  check_same_device(x, targets, "targets", "log_probs");
  CHECK(blank >= 0 && blank < x.size(2), "blank must be in label range: 0 to ", x.size(2) - 1,
        ", got ", blank, ".");
  // Copies, so that a program may reuse its memory before backward.
  Tensor labels = clone(to_dtype(detach(targets), DType::int64));
  Tensor times = checked_lengths(clone(input_lengths), x, "input_lengths");
  Tensor lengths = checked_lengths(clone(target_lengths), x, "target_lengths");
  Tensor losses = std::get<0>(
      call<"ctc_loss_kernel", CtcResult>(x, labels, times, lengths, blank, zero_infinity));
  if (zero_infinity) {
    Tensor none = losses == Scalar(std::numeric_limits<double>::infinity());
    losses = select(none, 0.0, losses);
  }
  if (how == LossReduction::mean) {
    Tensor divisors = call<"clamp_min", Tensor>(lengths, wrapped_number(int64_t(1)));
    if (divisors.device() != x.device())
      divisors = copy_(empty(divisors.sizes(), DType::int64, x.device()), divisors);
    return mean(losses / divisors);
  }
  if (how == LossReduction::sum) return sum(losses);
  return batched ? losses : squeeze(losses, 0);
}

Tensor tensor_of(ShapeRef numbers) {
  Tensor result = empty(Shape{int64_t(numbers.size())}, DType::int64);
  std::copy(numbers.begin(), numbers.end(), result.data<int64_t>());
  return result;
}

}  // namespace

OP(ctc_loss_kernel,
   "_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
   "int blank=0, bool zero_infinity=False) -> (Tensor neg_log_likelihood, Tensor log_alpha)", {
  .home    = "core",
  .doc     = R"(ctc_loss of each sample, with what its gradient needs.)",
  .dtypes  = single_or_double,
  .seen    = Seen::never,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                int64_t blank, bool zero_infinity) {
    Tensor log_probs = batch.full("log_probs");
    auto all = [&](const char* arg) { return joined_samples(batch.full(arg)); };
    auto [losses, log_alpha] = call<"ctc_loss_kernel", CtcResult>(
        joined_times(log_probs), all("targets"), all("input_lengths"), all("target_lengths"),
        blank, zero_infinity);
    auto parted = [&](const Tensor& t) {
      return parted_samples(t, batch.size(), log_probs.size(2));
    };
    return std::tuple(parted(losses), parted(log_alpha));
  },
  .forward = [](const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, bool) {
    CtcBatch batch = checked_batch(log_probs, targets, input_lengths, target_lengths, blank);
    Device device = log_probs.device();
    int64_t longest = device.is_meta() ? targets.size(-1) : batch.longest();
    Tensor losses = empty(Shape{batch.samples()}, log_probs.dtype(), device);
    Tensor log_alpha =
        empty(Shape{batch.samples(), batch.times(), 2 * longest + 1}, log_probs.dtype(), device);
    if (!device.is_meta())
      (device.is_cuda() ? ctc_loss_cuda : ctc_loss_cpu)(batch, losses, log_alpha);
    return std::tuple(losses, log_alpha);
  },
  .saves   = saves<"log_probs", "targets", "input_lengths", "target_lengths",
                   "neg_log_likelihood", "log_alpha">,
  .grads   = grads(
      d<"log_probs">([](TensorList grads, const Tensor& log_probs, const Tensor& targets,
                        const Tensor& input_lengths, const Tensor& target_lengths,
                        const Tensor& losses, const Tensor& log_alpha, int64_t blank,
                        bool zero_infinity) {
        return call<"ctc_loss_backward", Tensor>(grads[0], log_probs, targets, input_lengths,
                                                 target_lengths, losses, log_alpha, blank,
                                                 zero_infinity);
      }),
      no_grad<"targets">, no_grad<"input_lengths">, no_grad<"target_lengths">),
})

OP(ctc_loss_backward,
   "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, "
   "Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, "
   "bool zero_infinity) -> Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of ctc_loss; see ctc.h for what of. As in PyTorch it has none.)",
  .dtypes  = single_or_double,
  .seen    = Seen::never,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                const Tensor&, const Tensor&, const Tensor&, int64_t blank, bool zero_infinity) {
    Tensor log_probs = batch.full("log_probs");  // (B, T, N, C)
    auto all = [&](const char* arg) { return joined_samples(batch.full(arg)); };
    Tensor result = call<"ctc_loss_backward", Tensor>(
        all("grad"), joined_times(log_probs), all("targets"), all("input_lengths"),
        all("target_lengths"), all("neg_log_likelihood"), all("log_alpha"), blank, zero_infinity);
    Shape parts{log_probs.size(1), batch.size(), log_probs.size(2), log_probs.size(3)};
    return transpose(reshape(result, parts), 0, 1);
  },
  .forward = [](const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& losses,
                const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
    CtcBatch batch = checked_batch(log_probs, targets, input_lengths, target_lengths, blank);
    Tensor grad_input = empty(log_probs.sizes(), log_probs.dtype(), log_probs.device());
    if (log_probs.device().is_meta()) return grad_input;
    CHECK(log_alpha.size(2) == 2 * batch.longest() + 1,
          "target_lengths has changed since ctc_loss was computed.");
    auto run = log_probs.device().is_cuda() ? ctc_loss_backward_cuda : ctc_loss_backward_cpu;
    run(batch, to_contiguous(grad), to_contiguous(losses), to_contiguous(log_alpha),
        zero_infinity, grad_input);
    return grad_input;
  },
  .saves   = saves<"log_probs", "targets", "input_lengths", "target_lengths",
                   "neg_log_likelihood", "log_alpha">,
  .grads   = grads(
      // Linear in grad: the gradients of losses of 1, summed over a sample.
      d<"grad">([](const Tensor& g, const Tensor& log_probs, const Tensor& targets,
                   const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& losses,
                   const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
        Tensor slopes = call<"ctc_loss_backward", Tensor>(ones_like(losses), log_probs, targets,
                                                          input_lengths, target_lengths, losses,
                                                          log_alpha, blank, zero_infinity);
        return sum(g * slopes, Shape{0, 2});
      }),
      d<"log_probs">(uses<>, [](const Tensor&, int64_t, bool) {
        return no_derivative("log_probs");
      }),
      no_grad<"targets">, no_grad<"input_lengths">, no_grad<"target_lengths">,
      no_grad<"neg_log_likelihood">, no_grad<"log_alpha">),
})

OP(ctc_loss,
   "(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
   "str reduction='mean', bool zero_infinity=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The negative log likelihood of labels of unknown alignment (Graves et al. 2006).

log_probs: (T, N, C) or (T, C), from log_softmax; targets: classes (N, S), or those of all samples
one after the other; lengths: (N) or (), of the samples and their targets, as tensors or tuples.
The mean is over losses divided by the lengths of the targets. zero_infinity counts samples that are
too short for their target as 0.

Example:
    >>> log_probs = torch.zeros(3, 1, 2).log_softmax(2)
    >>> lengths = torch.tensor([3]), torch.tensor([1])
    >>> loss = torch.nn.functional.ctc_loss(log_probs, torch.tensor([[1]]), *lengths)
    >>> round(loss.exp().item(), 4)  # 6 of 8 sequences read so
    1.3333)",
  .dtypes  = single_or_double,
  .autocast = autocast::single,
  .forward = [](const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, std::string_view reduction,
                bool zero_infinity) {
    return ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction,
               zero_infinity);
  },
})

OP(ctc_loss_of_ints,
   "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
   "int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The same with lengths as numbers.)",
  .dtypes  = single_or_double,
  .autocast = autocast::single,
  .forward = [](const Tensor& log_probs, const Tensor& targets, ShapeRef input_lengths,
                ShapeRef target_lengths, int64_t blank, std::string_view reduction,
                bool zero_infinity) {
    return ctc(log_probs, targets, tensor_of(input_lengths), tensor_of(target_lengths), blank,
               reduction, zero_infinity);
  },
})

}  // namespace rushlight
