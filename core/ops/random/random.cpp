// Owns the ops that draw random numbers, apart from dropout.
//
// A draw is a function of the generator's seed and offset and of the element's number in row-major
// order: threads, instruction sets and layouts do not show. See Note [Random numbers].
#include <cmath>

#include "core/ops/joined_samples.h"
#include "core/ops/op.h"
#include "core/ops/random/random_draw.h"
#include "core/tensor/default_device.h"

namespace rushlight {
namespace {

Tensor fresh_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                  std::optional<MemoryFormat> format) {
  return call<"empty_like", Tensor>(input, dtype, device, format);
}

// The mean and standard deviation that the tensor forms of normal() take.
Tensor normal_like(const Tensor& mean, const Tensor& std, Generator* generator) {
  CHECK(!is_complex(std.dtype()), "expects standard deviation to be non-complex");
  CHECK(is_differentiable(mean.dtype()) || mean.impl()->wrapped_number, ErrorKind::kNotImplemented,
        "not implemented for a mean of ", dtype_name(mean.dtype()), ". Use mean.float().");
  CHECK(std.device().is_meta() || all_true(ge(std, wrapped_number(0.0))),
        "expects all elements of std >= 0.0. Check std for NaN, too.");
  const Tensor* both[] = {&mean, &std};
  DType dtype = result_dtype(both);
  Tensor z = empty(broadcast_shapes(mean.sizes(), std.sizes()),
                   is_floating(dtype) ? dtype : default_dtype(),
                   (mean.impl()->wrapped_number ? std : mean).device());
  draw_normal(z, 0, 1, generator);
  return z * std + mean;
}

Tensor chances_of(const Tensor& chances) {
  CHECK(is_floating(chances.dtype()), ErrorKind::kNotImplemented,
        "not implemented for probabilities of ", dtype_name(chances.dtype()),
        ". Pass a floating-point tensor.");
  return chances;
}

// The bounds of random_(): all integers that the dtype holds exactly.
std::pair<int64_t, int64_t> whole_range(DType dtype) {
  if (is_floating(dtype)) return {0, int64_t(1) << float_digits(dtype)};
  return {0, integer_range(dtype).second};
}

// zeros as the gradient of what a draw overwrote, or of what it only chose numbers by.
constexpr auto overwritten = [](const Tensor& g) { return zeros_like(g); };

}  // namespace

OP(rand, "(int[] size, *, Generator? generator=None, dtype? dtype=None, "
         "device? device=None) -> Tensor", {
  .doc     = R"(Uniform random numbers in [0, 1).)",
  .batch   = by_sizes,
  .forward = [](ShapeRef size, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device) {
    return draw_uniform(fresh(size, dtype, device), 0, 1, generator);
  },
})

OP(rand_like, "(Tensor input, *, Generator? generator=None, dtype? dtype=None, device? "
              "device=None, "
              "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(Uniform random numbers in [0, 1) in the shape of input.

A sparse tensor has them at its entries.)",
  .variants = function,
  .sparse  = by_values,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device, std::optional<MemoryFormat> memory_format) {
    return draw_uniform(fresh_like(input, dtype, device, memory_format), 0, 1, generator);
  },
})

OP(randn, "(int[] size, *, Generator? generator=None, dtype? dtype=None, "
          "device? device=None) -> Tensor", {
  .doc     = R"(Normal random numbers of mean 0 and variance 1.)",
  .batch   = by_sizes,
  .forward = [](ShapeRef size, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device) {
    return draw_normal(fresh(size, dtype, device), 0, 1, generator);
  },
})

OP(randn_like, "(Tensor input, *, Generator? generator=None, dtype? dtype=None, device? "
               "device=None, "
               "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(Normal random numbers of mean 0 and variance 1 in the shape of input.

A sparse tensor has them at its entries.)",
  .variants = function,
  .sparse  = by_values,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device, std::optional<MemoryFormat> memory_format) {
    return draw_normal(fresh_like(input, dtype, device, memory_format), 0, 1, generator);
  },
})

OP(randint, "(int high, int[] size, *, Generator? generator=None, dtype? dtype=None, "
            "device? device=None) -> Tensor", {
  .doc     = R"(Uniform random integers from 0 to high - 1.)",
  .batch   = by_sizes,
  .forward = [](int64_t high, ShapeRef size, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device) {
    return draw_integers(fresh(size, dtype.value_or(DType::int64), device), 0, high, generator);
  },
})

OP(randint_low, "randint.low(int low, int high, int[] size, *, Generator? generator=None, "
                "dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(Uniform random integers from low to high - 1.)",
  .batch   = by_sizes,
  .forward = [](int64_t low, int64_t high, ShapeRef size, Generator* generator,
                std::optional<DType> dtype,
                std::optional<Device> device) {
    return draw_integers(fresh(size, dtype.value_or(DType::int64), device), low, high, generator);
  },
})

OP(randint_like, "(Tensor input, int high, *, Generator? generator=None, dtype? dtype=None, "
                 "device? device=None, "
                 "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(Uniform random integers from 0 to high - 1 in the shape of input.)",
  .variants = function,
  .batch   = by_elements,
  .forward = [](const Tensor& input, int64_t high, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device, std::optional<MemoryFormat> memory_format) {
    return draw_integers(fresh_like(input, dtype, device, memory_format), 0, high, generator);
  },
})

OP(randint_like_low, "randint_like.low(Tensor input, int low, int high, *, Generator? "
                     "generator=None, "
                     "dtype? dtype=None, device? device=None, memory_format? memory_format=None) "
                     "-> Tensor", {
  .doc     = R"(Uniform random integers from low to high - 1 in the shape of input.)",
  .variants = function,
  .batch   = by_elements,
  .forward = [](const Tensor& input, int64_t low, int64_t high, Generator* generator,
                std::optional<DType> dtype,
                std::optional<Device> device, std::optional<MemoryFormat> memory_format) {
    return draw_integers(fresh_like(input, dtype, device, memory_format), low, high, generator);
  },
})

OP(randperm, "(int n, *, Generator? generator=None, dtype? dtype=None, "
             "device? device=None) -> Tensor", {
  .doc     = R"(The numbers 0 to n - 1 in random order.)",
  .batch   = [](const Batch& batch, int64_t n, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device) {
    if (batch.size() == 0) return fresh(Shape{0, n}, dtype.value_or(DType::int64), device);
    std::vector<Tensor> orders;
    for (int64_t i = 0; i < batch.size(); ++i)
      orders.push_back(call<"randperm", Tensor>(n, generator, dtype, device));
    return stack(orders, 0);
  },
  .forward = [](int64_t n, Generator* generator, std::optional<DType> dtype,
                std::optional<Device> device) {
    CHECK(n >= 0, "n must be non-negative, got ", n);
    Tensor out = fresh(Shape{n}, dtype.value_or(DType::int64), device);
    CHECK(!is_complex(out.dtype()), ErrorKind::kNotImplemented, "not implemented for ",
          dtype_name(out.dtype()));
    int64_t most = is_bool(out.dtype()) ? 1 : whole_range(out.dtype()).second;
    CHECK(n - 1 <= most, "n is too large for result tensor type: ", dtype_name(out.dtype()),
          " holds numbers up to ",
          most, ", got n = ", n);
    if (!out.device().is_meta()) copy_into(out, permutation(n, generator));
    return out;
  },
})

OP(normal, "normal.Tensor_Tensor(Tensor mean, Tensor std, *, "
           "Generator? generator=None) -> Tensor", {
  .doc     = R"(Normal random numbers, one for each pair of mean and standard deviation.)",
  .batch   = by_elements,
  .forward = [](const Tensor& mean, const Tensor& std, Generator* generator) {
    return normal_like(mean, std, generator);
  },
  .grads   = grads(d<"mean">(overwritten), d<"std">(overwritten)),
})

OP(normal_Tensor_float, "normal.Tensor_float(Tensor mean, float std=1, *, "
                        "Generator? generator=None) -> Tensor", {
  .doc     = R"(Normal random numbers, one for each mean.)",
  .batch   = by_elements,
  .forward = [](const Tensor& mean, double std, Generator* generator) {
    CHECK(std >= 0, "expects std >= 0.0, but found std ", std);
    return normal_like(mean, wrapped_number(std), generator);
  },
  .grads   = grads(d<"mean">(overwritten)),
})

OP(normal_float_Tensor, "normal.float_Tensor(float mean, Tensor std, *, "
                        "Generator? generator=None) -> Tensor", {
  .doc     = R"(Normal random numbers, one for each standard deviation.)",
  .batch   = by_elements,
  .forward = [](double mean, const Tensor& std, Generator* generator) {
    return normal_like(wrapped_number(mean), std, generator);
  },
  .grads   = grads(d<"std">(overwritten)),
})

OP(normal_float_float, "normal.float_float(float mean, float std, int[] size, *, Generator? "
                       "generator=None, "
                       "dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(Normal random numbers of one mean and standard deviation.)",
  .batch   = by_sizes,
  .forward = [](double mean, double std, ShapeRef size, Generator* generator,
                std::optional<DType> dtype,
                std::optional<Device> device) {
    return draw_normal(fresh(size, dtype, device), mean, std, generator);
  },
})

OP(bernoulli, "(Tensor input, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(One with the probability that input gives, else zero.)",
  .variants = function | method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Generator* generator, const Tensor* into) {
    DType dtype = chances_of(input).dtype();
    bool fits = into && !is_complex(into->dtype());
    Tensor out = fits ? *into : empty(input.sizes(), dtype, input.device());
    return draw_bernoulli(out, input, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(bernoulli_p, "bernoulli.p(Tensor input, float p, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(One with probability p, else zero, in the shape of input.)",
  .batch   = by_elements,
  .forward = [](const Tensor& input, double p, Generator* generator) {
    return draw_bernoulli(empty(input.sizes(), input.dtype(), input.device()),
                          scalar_tensor(p, DType::float64), generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(bernoulli_, "(Tensor! input, float p=0.5, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to one with probability p, else to zero.)",
  .dtypes  = real,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double p, Generator* generator) {
    return draw_bernoulli(input, scalar_tensor(p, DType::float64), generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(bernoulli_tensor_, "bernoulli_.tensor(Tensor! input, Tensor p, *, "
                      "Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to one with the probability that p gives, else to zero.)",
  .dtypes  = real,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& p, Generator* generator) {
    check_expands(p.sizes(), input.sizes());
    return draw_bernoulli(input, chances_of(p), generator);
  },
  .grads   = grads(d<"input">(overwritten), no_grad<"p">),
})

OP(uniform_, "(Tensor! input, float from=0, float to=1, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to a uniform random number in [from, to).)",
  .dtypes  = floating_or_complex,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double from, double to, Generator* generator) {
    return draw_uniform(input, from, to, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(normal_, "(Tensor! input, float mean=0, float std=1, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to a normal random number.)",
  .dtypes  = floating_or_complex,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double mean, double std, Generator* generator) {
    return draw_normal(input, mean, std, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(exponential_, "(Tensor! input, float lambd=1, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to a random number of density lambd * exp(-lambd * x), x > 0.)",
  .dtypes  = floating,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double lambd, Generator* generator) {
    CHECK(lambd > 0, "expects lambda > 0.0, but found lambda=", lambd);
    return draw_exponential(input, lambd, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(log_normal_, "(Tensor! input, float mean=1, float std=2, *, "
                "Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to exp(z) with a normal random number z of this mean and std.)",
  .dtypes  = floating,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double mean, double std, Generator* generator) {
    CHECK(std > 0, "expects std > 0.0, but found std=", std);
    return draw_log_normal(input, mean, std, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(cauchy_, "(Tensor! input, float median=0, float sigma=1, *, "
            "Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to a number of density proportional to 1 / (1 + z^2).

There z = (x - median) / sigma. The numbers are finite in every dtype.)",
  .dtypes  = floating,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double median, double sigma, Generator* generator) {
    CHECK(sigma > 0, "expects sigma > 0.0, but found sigma=", sigma);
    return draw_cauchy(input, median, sigma, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(geometric_, "(Tensor! input, float p, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to k = 1, 2, ... with probability p * (1 - p)^(k - 1).

It is the number of tries until the first success, at most what the dtype holds.)",
  .dtypes  = real,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double p, Generator* generator) {
    CHECK(p > 0 && p < 1, "expects p to be in (0, 1), but got p=", p);
    CHECK(!is_bool(input.dtype()), ErrorKind::kNotImplemented, "not implemented for bool");
    return draw_geometric(input, p, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(random_, "(Tensor! input, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to a random integer among those that the dtype holds exactly.)",
  .dtypes  = real,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Generator* generator) {
    auto [low, last] = whole_range(input.dtype());
    return draw_integers(input, low, last, generator, true);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(random_to_, "random_.to(Tensor! input, int to, *, Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to a random integer from 0 to `to` - 1.)",
  .dtypes  = real,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, int64_t to, Generator* generator) {
    return draw_integers(input, 0, to, generator);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(random_from_, "random_.from(Tensor! input, int from, int? to, *, "
                 "Generator? generator=None) -> Tensor", {
  .doc     = R"(Sets each element to a random integer from `from` to `to` - 1.)",
  .dtypes  = real,
  .variants = method,
  .batch   = by_elements,
  .forward = [](const Tensor& input, int64_t from, std::optional<int64_t> to,
                Generator* generator) {
    return to ? draw_integers(input, from, *to, generator)
              : draw_integers(input, from, whole_range(input.dtype()).second, generator, true);
  },
  .grads   = grads(d<"input">(overwritten)),
})

OP(multinomial, "(Tensor input, int num_samples, bool replacement=False, *, "
                "Generator? generator=None) -> Tensor", {
  .doc     = R"(Random column numbers, drawn with the weights in each row of input.

The weights need not sum to one. Without replacement no number comes twice.)",
  .batch   = [](const Batch& batch, const Tensor&, int64_t num_samples, bool replacement,
                Generator* generator) {
    Tensor chances = batch.full("input");
    CHECK(chances.dim() == 2 || chances.dim() == 3, "prob_dist must be 1 or 2 dim, got shape ",
          ShapeText{ShapeRef(chances.sizes()).subspan(1)});
    if (chances.dim() == 2)
      return call<"multinomial", Tensor>(chances, num_samples, replacement, generator);
    Tensor drawn = call<"multinomial", Tensor>(joined_samples(chances), num_samples, replacement,
                                               generator);
    return parted_samples(drawn, chances.size(0), chances.size(1));
  },
  .forward = [](const Tensor& input, int64_t num_samples, bool replacement, Generator* generator) {
    CHECK(is_floating(input.dtype()), "only supports floating-point dtypes for input, "
          "got: ", dtype_name(input.dtype()), ". Use input.float().");
    CHECK(input.dim() == 1 || input.dim() == 2, "prob_dist must be 1 or 2 dim, got shape ",
          input.sizes());
    CHECK(num_samples > 0, "cannot sample n_sample <= 0 samples, got ", num_samples);
    CHECK(replacement || num_samples <= input.size(-1),
          "cannot sample n_sample > prob_dist.size(-1) samples "
          "without replacement: ", num_samples, " > ", input.size(-1));
    bool no_rows = input.dim() == 2 && input.size(0) == 0;
    CHECK(input.size(-1) > 0 || no_rows, "there are no categories in shape ", input.sizes());
    return draw_categories(input, num_samples, replacement, generator);
  },
})

}  // namespace rushlight
