// Owns softmax and log_softmax. Their backward ops are fused and have gradients of their own.
#include "core/ops/softmax/softmax.h"

#include "core/ops/op.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

DType softmax_dtype(const Tensor& input, std::optional<DType> dtype) {
  DType to = dtype.value_or(input.dtype());
  CHECK(is_floating(to), ErrorKind::kNotImplemented, "not implemented for ", dtype_name(to),
        ". Use input.float(), or pass dtype=float32.");
  return to;
}

// The dim to normalize along; without one PyTorch's rule holds: 0 for 0, 1 or 3 dims, else 1.
int64_t softmax_dim(std::optional<int64_t> dim, int64_t ndim) {
  if (dim) return wrap_dim(*dim, ndim);
  return ndim <= 1 || ndim == 3 ? 0 : 1;
}

// The softmax of floating-point numbers along `dim`, row-major in `dtype`.
Tensor softmax_kernel(SoftmaxKind kind, const Tensor& input, int64_t dim, DType dtype) {
  Tensor result = empty(input.sizes(), dtype, input.device());
  if (result.numel() == 0 || input.device().is_meta()) return result;
  auto run = input.device().is_cuda() ? softmax_cuda : softmax_cpu;
  run(kind, to_contiguous(input), AroundDim(input.sizes(), dim), result);
  return result;
}

Tensor softmax_backward_kernel(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                               int64_t dim) {
  Tensor grad_input = empty(result.sizes(), grad.dtype(), grad.device());
  if (grad_input.numel() == 0 || grad.device().is_meta()) return grad_input;
  auto run = grad.device().is_cuda() ? softmax_backward_cuda : softmax_backward_cpu;
  run(kind, to_contiguous(grad), to_contiguous(result), AroundDim(result.sizes(), dim), grad_input);
  return grad_input;
}

// The dim of a call, which the program should name.
int64_t asked_dim(SoftmaxKind kind, std::optional<int64_t> dim, int64_t ndim) {
  if (!dim && warn_user) [[unlikely]]
    warn_user("Implicit dimension choice for " +
              std::string(kind == SoftmaxKind::softmax ? "softmax" : "log_softmax") +
              " has been deprecated. Change the call to include dim=X as an argument.");
  return softmax_dim(dim, ndim);
}

Tensor softmax_of(SoftmaxKind kind, const Tensor& input, std::optional<int64_t> dim,
                  std::optional<DType> dtype) {
  DType to = softmax_dtype(input, dtype);
  return softmax_kernel(kind, is_floating(input.dtype()) ? input : to_dtype(input, to),
                        asked_dim(kind, dim, input.dim()), to);
}

// f(samples, dim) where dim counts the dims of one sample.
template <class F>
Tensor softmax_samples(SoftmaxKind kind, const Batch& batch, const Tensor& samples,
                       std::optional<int64_t> dim, const F& f) {
  int64_t rank = batch.rank("input");
  int64_t along = asked_dim(kind, dim, rank);
  if (rank == 0) return squeeze(f(unsqueeze(samples, 1), 1), 1);
  return f(samples, Batch::dim(along, rank));
}

}  // namespace

OP(softmax, "(Tensor input, int? dim=None, dtype? dtype=None, int _stacklevel=3) -> Tensor", {
  .home    = "torch nn.functional special",
  .doc     = R"(exp(input) / sum(exp(input)) along dim, without overflow: numbers that add up to 1.

dtype converts the elements first, which keeps digits of half types. Without dim PyTorch's old rule
holds: dim 0 for 0, 1 or 3 dims, else 1, with a warning. _stacklevel has no effect.

Example:
    >>> torch.tensor([0.0, 0.0]).softmax(0)
    tensor([0.5000, 0.5000]))",
  .variants = function | method,
  .autocast = autocast::on_cuda(autocast::single),
  .batch   = [](const Batch& batch, const Tensor& input, std::optional<int64_t> dim,
                std::optional<DType> dtype, int64_t level) {
    return softmax_samples(SoftmaxKind::softmax, batch, input, dim,
                           [&](const Tensor& samples, int64_t d) {
      return call<"softmax", Tensor>(samples, std::optional(d), dtype, level);
    });
  },
  .forward = [](const Tensor& input, std::optional<int64_t> dim, std::optional<DType> dtype,
                int64_t) { return softmax_of(SoftmaxKind::softmax, input, dim, dtype); },
  .saves   = saves<"result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& result, std::optional<int64_t> dim,
                                 std::optional<DType>, int64_t) {
                     return call<"_softmax_backward", Tensor>(g, result,
                                                              softmax_dim(dim, result.dim()));
                   })),
})

OP(log_softmax, "(Tensor input, int? dim=None, dtype? dtype=None, int _stacklevel=3) -> Tensor", {
  .home    = "torch nn.functional special",
  .doc     = R"(log(softmax(input)) along dim, computed as input - logsumexp(input).

The arguments are those of softmax.)",
  .variants = function | method,
  .autocast = autocast::on_cuda(autocast::single),
  .batch   = [](const Batch& batch, const Tensor& input, std::optional<int64_t> dim,
                std::optional<DType> dtype, int64_t level) {
    return softmax_samples(SoftmaxKind::log_softmax, batch, input, dim,
                           [&](const Tensor& samples, int64_t d) {
      return call<"log_softmax", Tensor>(samples, std::optional(d), dtype, level);
    });
  },
  .forward = [](const Tensor& input, std::optional<int64_t> dim, std::optional<DType> dtype,
                int64_t) { return softmax_of(SoftmaxKind::log_softmax, input, dim, dtype); },
  .saves   = saves<"result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& result, std::optional<int64_t> dim,
                                 std::optional<DType>, int64_t) {
                     return call<"_log_softmax_backward", Tensor>(g, result,
                                                                  softmax_dim(dim, result.dim()));
                   })),
})

OP(_softmax_backward, "(Tensor grad, Tensor result, int dim) -> Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of softmax: result * (grad - sum(grad * result)).)",
  .dtypes  = floating,
  .batch   = by_dims,
  .forward = [](const Tensor& grad, const Tensor& result, int64_t dim) {
    return softmax_backward_kernel(SoftmaxKind::softmax, grad, result, dim);
  },
  .saves   = saves<"grad", "result">,
  .grads   = grads(d<"grad">(uses<"result">, [](const Tensor& g, const Tensor& result,
                                                int64_t dim) {
                     return call<"_softmax_backward", Tensor>(g, result, dim);
                   }),
                   d<"result">([](const Tensor& g, const Tensor& grad, const Tensor& result,
                                  int64_t dim) {
                     Shape dims{dim};
                     return g * (grad - sum(grad * result, dims, true)) -
                            grad * sum(g * result, dims, true);
                   })),
})

OP(_log_softmax_backward, "(Tensor grad, Tensor result, int dim) -> Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of log_softmax: grad - exp(result) * sum(grad).)",
  .dtypes  = floating,
  .batch   = by_dims,
  .forward = [](const Tensor& grad, const Tensor& result, int64_t dim) {
    return softmax_backward_kernel(SoftmaxKind::log_softmax, grad, result, dim);
  },
  .saves   = saves<"grad", "result">,
  .grads   = grads(d<"grad">(uses<"result">, [](const Tensor& g, const Tensor& result,
                                                int64_t dim) {
                     return g - sum(g * exp(result), Shape{dim}, true);
                   }),
                   d<"result">([](const Tensor& g, const Tensor& grad, const Tensor& result,
                                  int64_t dim) {
                     return -(g * exp(result) * sum(grad, Shape{dim}, true));
                   })),
})

}  // namespace rushlight
