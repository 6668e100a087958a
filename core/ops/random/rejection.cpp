// Owns the ops that draw by rejection, whose numbers take more or fewer words of the stream:
// poisson, binomial, gamma and Dirichlet numbers, the latter two with gradients.
//
// See Note [Random numbers] and rejection_draws.h.
#include "core/ops/random/rejection.h"

#include "core/ops/op.h"
#include "core/ops/same_device.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// float64 tensors of the sizes that both broadcast to. Each number takes one counter.
Tensor rejected(Rejection what, const Tensor& a, const Tensor& b, Generator* generator) {
  Shape sizes = b.defined() ? broadcast_shapes(a.sizes(), b.sizes()) : Shape(a.sizes());
  auto prepared = [&](const Tensor& t) {
    if (!t.defined()) return t;
    Tensor wide = to_dtype(t, DType::float64);
    return to_contiguous(wide.sizes() == sizes ? wide : expand(wide, sizes));
  };
  Tensor out = empty(sizes, DType::float64, a.device());
  if (out.device().is_meta()) return out;
  Tensor first = prepared(a), second = prepared(b);
  Generator::Draw draw{};
  if (what != Rejection::log_gamma_slope)
    draw = (generator ? *generator : default_generator()).take(uint64_t(out.numel()), out.device());
  if (out.numel() > 0)
    (out.device().is_cuda() ? reject_cuda : reject_cpu)(out, what, first, second, draw);
  return out;
}

// The least normal number: what takes the place of gamma numbers that are too small.
double smallest_normal(DType dtype) {
  if (dtype == DType::float16) return 0x1p-14;
  return dtype == DType::float64 ? 0x1p-1022 : 0x1p-126;
}

// The largest number below 1.
double last_below_one(DType dtype) {
  if (dtype == DType::float16) return 1 - 0x1p-11;
  if (dtype == DType::bfloat16) return 1 - 0x1p-8;
  return dtype == DType::float32 ? 1 - 0x1p-24 : 1 - 0x1p-53;
}

// The gradient of a count in its parameters.
constexpr auto none = [](const Tensor& g) { return zeros_like(g); };

}  // namespace

OP(poisson, "(Tensor input, Generator? generator=None) -> Tensor", {
  .doc     = R"(Poisson numbers, one for each rate: k with probability rate^k exp(-rate) / k!.)",
  .dtypes  = floating,
  .variants = function,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Generator* generator) {
    CHECK(input.device().is_meta() || all_true(ge(input, wrapped_number(0.0))),
          "invalid Poisson rate, expected rate to be non-negative. Check it for NaN, too.");
    return to_dtype(rejected(Rejection::poisson, input, Tensor(), generator), input.dtype());
  },
  .grads   = grads(d<"input">(none)),
})

OP(binomial, "(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", {
  .doc     = R"(How many of `count` tries succeed, each with probability `prob`.

A prob out of [0, 1] counts as the end that it is beyond; NaN gives NaN.)",
  .variants = function,
  .batch   = by_elements,
  .forward = [](const Tensor& count, const Tensor& prob, Generator* generator) {
    for (const Tensor& each : {count, prob})
      CHECK(is_floating(each.dtype()), ErrorKind::kValue,
            "binomial only supports floating-point dtypes for count and prob, got ",
            dtype_name(each.dtype()), ". Use .float().");
    CHECK(count.dtype() == prob.dtype(), "Found dtype ", dtype_name(prob.dtype()),
          " but expected ", dtype_name(count.dtype()), ": count and prob must have one dtype.");
    check_same_device(count, prob, "prob", "count");
    return to_dtype(rejected(Rejection::binomial, count, prob, generator), count.dtype());
  },
  .grads   = grads(no_grad<"count">, no_grad<"prob">),
})

OP(_log_gamma_slope, "(Tensor alpha, Tensor log_gamma) -> Tensor", {
  .home    = "core",
  .doc     = R"(The derivative in alpha of the logarithm of gamma numbers.)",
  .batch   = by_elements,
  .forward = [](const Tensor& alpha, const Tensor& log_gamma) {
    return to_dtype(rejected(Rejection::log_gamma_slope, alpha, log_gamma, nullptr),
                    alpha.dtype());
  },
  .grads   = grads(d<"alpha", "log_gamma">([](const Tensor&, auto) -> std::tuple<Tensor, Tensor> {
    CHECK(false, ErrorKind::kNotImplemented,
          "the second derivative of gamma numbers is not implemented.");
    return {};
  })),
})

OP(_standard_log_gamma, "(Tensor input, Generator? generator=None) -> Tensor", {
  .home    = "core",
  .doc     = R"(Logarithms of gamma numbers, which do not underflow, with gradients.)",
  .dtypes  = floating,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Generator* generator) {
    return to_dtype(rejected(Rejection::log_gamma, input, Tensor(), generator), input.dtype());
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    return g * call<"_log_gamma_slope", Tensor>(input, result);
  })),
})

OP(_standard_gamma_grad, "(Tensor input, Tensor output) -> Tensor", {
  .doc     = R"(The derivative of a gamma number `output` in its shape `input`.

The number keeps its place in the distribution: Figurnov et al., "Implicit reparameterization
gradients", 2018.)",
  .dtypes  = floating,
  .variants = function,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, const Tensor& output) {
    return output * call<"_log_gamma_slope", Tensor>(input, log(output));
  },
})

OP(_standard_gamma, "(Tensor input, Generator? generator=None) -> Tensor", {
  .doc     = R"(Gamma numbers of density x^(input - 1) exp(-x) / gamma(input), with gradients.

Numbers too small for the dtype are its least normal number. NaN where input is negative.)",
  .dtypes  = floating,
  .variants = function,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Generator* generator) {
    Tensor drawn = rejected(Rejection::gamma, input, Tensor(), generator);
    return to_dtype(maximum(drawn, wrapped_number(smallest_normal(input.dtype()))), input.dtype());
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result) {
    return g * call<"_standard_gamma_grad", Tensor>(input, result);
  })),
})

OP(_sample_dirichlet, "(Tensor input, Generator? generator=None) -> Tensor", {
  .doc     = R"(Dirichlet numbers with the concentrations in the last dim, with gradients.

Gamma numbers divided by their sum, as a softmax of their logarithms, which small concentrations do
not underflow.)",
  .dtypes  = floating,
  .variants = function,
  .batch   = by_last_dims,
  .forward = [](const Tensor& input, Generator* generator) {
    Tensor wide = cast(input, DType::float64);
    Tensor parts = softmax(call<"_standard_log_gamma", Tensor>(wide, generator), -1);
    DType dtype = input.dtype();
    return cast(clamp(parts, smallest_normal(dtype), last_below_one(dtype)), dtype);
  },
})

}  // namespace rushlight
