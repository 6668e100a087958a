// Defines the draws for all devices: checks, layouts, and the piece of the stream that each takes.
#include "core/ops/random/random_draw.h"

#include <algorithm>
#include <cmath>

#include "core/device/philox.h"
#include "core/ops/random/random_kernels.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

Generator::Draw take(Generator* generator, const Tensor& out, int words_each) {
  Generator& source = generator ? *generator : default_generator();
  return source.take(philox_counters(uint64_t(out.numel()), uint64_t(words_each)), out.device());
}

// Fills `out`, whatever its layout, which is already there on meta.
Tensor fill(const Tensor& out, Distribution distribution, const DrawArgs& args,
            Generator* generator) {
  if (out.device().is_meta()) return out;
  Tensor target = out.is_contiguous() ? out : empty(out.sizes(), out.dtype(), out.device());
  Generator::Draw draw = take(generator, out, words_each(distribution));
  (out.device().is_cuda() ? draw_cuda : draw_cpu)(target, distribution, args, draw);
  if (!target.is(out)) copy_into(out, target);
  return out;
}

// The real and imaginary parts of a complex tensor that is written whole, as one real tensor.
template <class Fill>
Tensor fill_parts(const Tensor& out, Fill fill) {
  if (!is_complex(out.dtype())) return fill(out);
  Tensor target = out.is_contiguous() ? out : empty(out.sizes(), out.dtype(), out.device());
  Tensor parts = shallow_copy(target);
  parts.impl()->dtype = real_dtype(out.dtype());
  parts.impl()->sizes = Shape{2 * out.numel()};
  parts.impl()->strides = Shape{1};
  parts.impl()->offset *= 2;
  parts.impl()->layout_changed();
  fill(parts);
  if (!target.is(out)) copy_into(out, target);
  return out;
}

// The least number above zero, which is subnormal.
double smallest_positive(DType dtype) {
  if (dtype == DType::float16) return 0x1p-24;
  if (dtype == DType::bfloat16) return 0x1p-133;
  return dtype == DType::float32 ? 0x1p-149 : 0x1p-1074;
}

// The largest number of a floating-point dtype that is less than a finite x.
double last_below(double x, DType dtype) {
  if (x == 0) return -smallest_positive(dtype);
  int exponent;
  if (std::frexp(x, &exponent) == 0.5) --exponent;  // numbers are closer below a power of two
  double step = std::ldexp(1.0, exponent - float_digits(dtype));
  step = std::max(step, smallest_positive(dtype));
  return std::min((std::ceil(x / step) - 1) * step, largest_finite(dtype));
}

// The number that a floating-point dtype with so many digits holds and that is x or the next below.
int64_t rounded_down(int64_t x, int digits) {
  uint64_t size = x < 0 ? uint64_t(~x) : uint64_t(x);
  int excess = 64 - __builtin_clzll(size | 1) - digits;
  return excess > 0 ? (x >> excess) << excess : x;
}

template <class T>
void check_bound(bool right, const char* name, T value, DType dtype) {
  CHECK(right, name, " is out of bounds for ", dtype_name(dtype), ", got ", value);
}

void check_floating(const Tensor& out) {
  CHECK(is_floating(real_dtype(out.dtype())), ErrorKind::kNotImplemented, "not implemented for ",
        dtype_name(out.dtype()));
}

void check_chances(bool right, double p) {
  CHECK(right, "Expected p_in >= 0 && p_in <= 1, got ", p);
}

}  // namespace

std::pair<int64_t, int64_t> integer_range(DType dtype) {
  if (is_bool(dtype)) return {0, 1};
  int bits = int(8 * dtype_size(dtype)) - !is_unsigned(dtype);
  int64_t most = bits >= 63 ? INT64_MAX : (int64_t(1) << bits) - 1;
  return {is_unsigned(dtype) ? 0 : -most - 1, most};
}

int float_digits(DType dtype) {
  if (dtype == DType::float16) return 11;
  if (dtype == DType::bfloat16) return 8;
  return dtype == DType::float32 ? 24 : 53;
}

Tensor draw_uniform(const Tensor& out, double from, double to, Generator* generator) {
  check_floating(out);
  DType dtype = real_dtype(out.dtype());
  double largest = largest_finite(dtype);
  check_bound(std::abs(from) <= largest, "from", from, dtype);
  check_bound(std::abs(to) <= largest, "to", to, dtype);
  CHECK(from <= to, "expects to return a [from, to) range, but found from=", from, " > to=", to);
  CHECK(to - from <= largest, "expects to - from <= ", largest, ", the largest number of ",
        dtype_name(dtype), ", but found to=", to, " and from=", from);
  // As the loop and the conversion to the dtype round them.
  double first = dtype == DType::float64 ? from : double(float(from));
  bool is_double = dtype == DType::float64;
  return fill_parts(out, [&](const Tensor& parts) {
    return fill(parts, is_double ? Distribution::uniform_f64 : Distribution::uniform_f32,
                {.first = from,
                 .second = to - from,
                 .most = std::max(first, last_below(to, dtype)),
                 .bits = std::min(24, float_digits(dtype))},
                generator);
  });
}

Tensor draw_normal(const Tensor& out, double mean, double std, Generator* generator) {
  CHECK(std >= 0, "expects std >= 0.0, but found std ", std);
  check_floating(out);
  // A complex normal number of variance 1 has parts of variance 1/2.
  if (is_complex(out.dtype())) std *= std::sqrt(0.5);
  return fill_parts(out, [&](const Tensor& parts) {
    Distribution distribution =
        parts.dtype() == DType::float64 ? Distribution::normal_f64 : Distribution::normal_f32;
    return fill(parts, distribution, {.first = mean, .second = std}, generator);
  });
}

Tensor draw_log_normal(const Tensor& out, double mean, double std, Generator* generator) {
  return fill(out, Distribution::log_normal, {.first = mean, .second = std}, generator);
}

Tensor draw_exponential(const Tensor& out, double rate, Generator* generator) {
  double least = std::isinf(rate) ? 0 : smallest_positive(out.dtype());
  return fill(out, Distribution::exponential,
              {.first = rate, .least = least, .most = largest_finite(out.dtype())}, generator);
}

Tensor draw_geometric(const Tensor& out, double p, Generator* generator) {
  double most;
  if (is_floating(out.dtype())) most = largest_finite(out.dtype());
  // Of 64-bit integers, the largest that is a double.
  else if (out.itemsize() == 8) most = 0x1.fffffffffffffp62;
  else most = double(integer_range(out.dtype()).second);
  return fill(out, Distribution::geometric, {.first = -std::log1p(-p), .least = 1, .most = most},
              generator);
}

Tensor draw_cauchy(const Tensor& out, double median, double sigma, Generator* generator) {
  double most =
      std::isfinite(median) && std::isfinite(sigma) ? largest_finite(out.dtype()) : INFINITY;
  return fill(out, Distribution::cauchy,
              {.first = median, .second = sigma, .least = -most, .most = most}, generator);
}

Tensor draw_integers(const Tensor& out, int64_t low, int64_t high, Generator* generator,
                     bool included) {
  CHECK(included ? low <= high : low < high,
        "expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  DType dtype = out.dtype();
  CHECK(!is_complex(dtype), ErrorKind::kNotImplemented, "not implemented for ", dtype_name(dtype));
  int64_t end = included ? high : high - 1;
  auto inside = [&](int64_t x) {
    if (is_floating(dtype)) return std::abs(double(x)) <= largest_finite(dtype);
    auto [least, most] = integer_range(dtype);
    return x >= least && x <= most;
  };
  check_bound(inside(low), "from", low, dtype);
  check_bound(inside(end), "to - 1", end, dtype);
  // Numbers that the dtype would round out of the range are not drawn.
  if (is_floating(dtype)) {
    int digits = float_digits(dtype);
    int64_t up = low == INT64_MIN ? low : -rounded_down(-low, digits);
    end = std::max(rounded_down(end, digits), rounded_down(low, digits));
    low = std::min(up, end);
  }
  return fill(out, Distribution::integers,
              {.low = uint64_t(low), .last = uint64_t(end) - uint64_t(low)}, generator);
}

Tensor on_cpu(const Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  Tensor here = empty(tensor.sizes(), tensor.dtype());
  copy_into(here, tensor);
  return here;
}

Tensor draw_bernoulli(const Tensor& out, const Tensor& chances, Generator* generator) {
  if (out.device().is_meta()) return out;
  bool is_cuda = out.device().is_cuda();
  Tensor each;
  double all = 0;
  if (chances.numel() == 1 && chances.device().is_cpu()) {
    all = item(chances).to<double>();
    check_chances(all >= 0 && all <= 1, all);
  } else {
    CHECK(chances.device() == out.device(),
          "Expected all tensors to be on the same device, but the probabilities are on ",
          chances.device(), " and the result is on ", out.device(), ". Move them there.");
    each = to_contiguous(to_dtype(chances, DType::float64));
    // Reading the answer waits for a GPU, so that a wrong probability is the same error everywhere.
    if (!(is_cuda ? are_chances_cuda : are_chances_cpu)(each)) {
      Tensor here = on_cpu(each);
      const double* p = here.data<double>();
      check_chances(
          false, *std::find_if(p, p + here.numel(), [](double x) { return !(x >= 0 && x <= 1); }));
    }
    if (!(each.sizes() == out.sizes())) {
      Tensor whole = empty(out.sizes(), DType::float64, out.device());
      copy_into(whole, each);
      each = whole;
    }
  }
  Tensor ones = empty(out.sizes(), DType::bool_, out.device());
  (is_cuda ? bernoulli_cuda : bernoulli_cpu)(ones, each, all, take(generator, out, 2));
  copy_into(out, ones);
  return out;
}

std::pair<Tensor, Tensor> draw_dropout(const Tensor& input, double p, Generator* generator) {
  Tensor source = input.is_dense() ? input : clone_dense(input, MemoryFormat::preserve);
  Tensor out = empty_strided(source.sizes(), source.strides(), source.dtype(), source.device());
  Tensor mask = empty_strided(source.sizes(), source.strides(), DType::bool_, source.device());
  if (source.device().is_meta()) return {out, mask};
  Dropout dropout{dropout_threshold(p), kept_scale(p)};
  Generator::Draw draw = take(generator, source, 1);
  (source.device().is_cuda() ? dropout_cuda : dropout_cpu)(source, out, mask, dropout, draw);
  return {out, mask};
}

}  // namespace rushlight
