// Tests the reduce loop against a naive walk over random shapes, strides and dims.
#include "core/tensor/reduce.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/device/threads.h"
#include "core/tensor/tile_loop.h"
#include "core/tests/expect.h"

using namespace rushlight;

namespace {

std::mt19937 random_bits(7);

int64_t random_below(int64_t n) { return int64_t(random_bits() % uint64_t(n)); }

// Small whole numbers and, in floats, halves: sums of them are exact in every order.
Tensor random_tensor(ShapeRef sizes, DType dtype) {
  Tensor t = empty(sizes, DType::float64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = double(random_below(33) - 16) / 2;
  return to_dtype(t, dtype);
}

// The same shape in another memory order, with gaps, or expanded.
Tensor random_layout(ShapeRef sizes, DType dtype) {
  Shape order, stored;
  for (size_t d = 0; d < sizes.size(); ++d)
    order.insert(size_t(random_below(int64_t(d) + 1)), int64_t(d));
  Shape gaps(sizes.size(), 1), strides(sizes.size());
  bool expands = random_below(4) == 0;
  for (int64_t d : order) {
    if (random_below(4) == 0) gaps[size_t(d)] = 2;
    stored.push_back(expands && random_below(2) ? 1 : sizes[size_t(d)] * gaps[size_t(d)]);
  }
  Tensor memory = random_tensor(stored, dtype);
  for (size_t i = 0; i < order.size(); ++i) {
    size_t d = size_t(order[i]);
    strides[d] = stored[i] == 1 && sizes[d] != 1 ? 0 : memory.strides()[i] * gaps[d];
  }
  return alias(memory, sizes, strides, 0);
}

Shape random_sizes(int64_t largest) {
  constexpr int64_t sizes[] = {1, 2, 3, 7, 8, 33, 64, 70, 200, 5000};
  Shape out;
  int64_t numel = 1;
  for (int64_t d = random_below(6); d > 0; --d) {
    int64_t size = sizes[random_below(10)];
    if (numel * size > largest) continue;
    numel *= size;
    out.push_back(size);
  }
  return out;
}

DimSet random_dims(int64_t ndim) {
  DimSet dims;
  for (int64_t d = 0; d < ndim; ++d) dims.set(size_t(d), random_below(2));
  return dims;
}

// The elements of each result, in row-major order, as doubles.
std::vector<std::vector<double>> groups_of(const Tensor& input, DimSet dims) {
  Tensor values = to_dtype(to_contiguous(input), DType::float64);
  Shape kept = reduced_sizes(input.sizes(), dims, true), strides = contiguous_strides(kept);
  std::vector<std::vector<double>> groups(size_t(checked_numel(kept)));
  for (int64_t i = 0; i < values.numel(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = input.sizes().size(); d-- > 0;) {
      if (!dims[d]) at += rest % input.sizes()[d] * strides[d];
      rest /= input.sizes()[d];
    }
    groups[size_t(at)].push_back(values.data<double>()[i]);
  }
  return groups;
}

template <class F>
double fold_naive(const std::vector<double>& x, double start, F&& f) {
  for (double v : x) start = f(start, v);
  return start;
}

double naive(Reduction reduction, const std::vector<double>& x, double parameter) {
  using enum Reduction;
  double n = double(x.size());
  double total = fold_naive(x, 0, [](double a, double v) { return a + v; });
  auto norm = [&](double p) {
    return std::pow(
        fold_naive(x, 0, [=](double a, double v) { return a + std::pow(std::abs(v), p); }), 1 / p);
  };
  double variance_of_all =
      fold_naive(x, 0, [=](double a, double v) { return a + (v - total / n) * (v - total / n); }) /
      std::max(n - parameter, 0.0);
  switch (reduction) {
    case sum:
    case nan_sum: return total;
    case mean: return total / n;
    case product: return fold_naive(x, 1, [](double a, double v) { return a * v; });
    case maximum: return fold_naive(x, -1e9, [](double a, double v) { return std::max(a, v); });
    case minimum: return fold_naive(x, 1e9, [](double a, double v) { return std::min(a, v); });
    case variance: return variance_of_all;
    case deviation: return std::sqrt(variance_of_all);
    case norm_1: return norm(1);
    case norm_2: return norm(2);
    case norm_p: return norm(parameter);
    case norm_max:
      return fold_naive(x, 0, [](double a, double v) { return std::max(a, std::abs(v)); });
    case norm_min:
      return fold_naive(x, 1e9, [](double a, double v) { return std::min(a, std::abs(v)); });
    case log_sum_exp:
      return std::log(fold_naive(x, 0, [](double a, double v) { return a + std::exp(v); }));
    default: return 0;
  }
}

void expect_close(double got, double wanted, double tolerance) {
  if (std::isnan(got) && std::isnan(wanted)) return;
  if (got == wanted || std::abs(got - wanted) <= tolerance * std::max(1.0, std::abs(wanted)))
    return;
  std::cerr.precision(9);
  std::cerr << "got " << got << ", wanted " << wanted << "\n";
  expect(false);
}

constexpr Reduction kOneResult[] = {Reduction::sum,      Reduction::mean,       Reduction::nan_sum,
                                    Reduction::maximum,  Reduction::minimum,    Reduction::norm_1,
                                    Reduction::norm_2,   Reduction::norm_p,     Reduction::norm_max,
                                    Reduction::norm_min, Reduction::log_sum_exp};

void reductions_equal_a_naive_walk_over_any_layout() {
  for (int round = 0; round < 2000; ++round) {
    DType dtype = round % 2 ? DType::float32 : round % 4 ? DType::float64 : DType::bfloat16;
    Shape sizes = random_sizes(round % 50 ? 5000 : 300000);
    Tensor input = random_layout(sizes, dtype);
    DimSet dims = random_dims(input.dim());
    Reduction reduction = kOneResult[random_below(std::size(kOneResult))];
    DType out = is_half(dtype) ? DType::float32 : dtype;
    Tensor result =
        to_dtype(reduce(reduction, input, dims, round % 3 == 0, out, 3), DType::float64);
    expect(result.sizes() == reduced_sizes(sizes, dims, round % 3 == 0));
    auto groups = groups_of(input, dims);
    for (size_t i = 0; i < groups.size(); ++i)
      expect_close(result.data<double>()[i], naive(reduction, groups[i], 3),
                   out == DType::float64 ? 1e-11 : 3e-6);
  }
}

void pairs_hold_the_first_extreme_and_the_moments() {
  for (int round = 0; round < 1000; ++round) {
    DType dtype = round % 3 == 0 ? DType::int32 : round % 3 == 1 ? DType::float32 : DType::float64;
    Shape sizes = random_sizes(round % 50 ? 5000 : 300000);
    Tensor input = random_layout(sizes, dtype);
    DimSet dims = random_dims(input.dim());
    auto groups = groups_of(input, dims);
    if (is_floating(dtype)) {
      auto [variance, mean] = reduce_pair(Reduction::variance, input, dims, false, dtype, 1);
      variance = to_dtype(variance, DType::float64);
      mean = to_dtype(mean, DType::float64);
      for (size_t i = 0; i < groups.size(); ++i) {
        expect_close(variance.data<double>()[i], naive(Reduction::variance, groups[i], 1), 5e-6);
        expect_close(mean.data<double>()[i], naive(Reduction::mean, groups[i], 1), 3e-6);
      }
    }
    dims = {};
    if (input.dim() > 0) dims.set(size_t(random_below(input.dim())));
    if (round % 4 == 0) dims = reduced_dims({}, input.dim());
    groups = groups_of(input, dims);
    auto [most, at] = reduce_pair(Reduction::indexed_maximum, input, dims, false, dtype);
    most = to_dtype(most, DType::float64);
    for (size_t i = 0; i < groups.size(); ++i) {
      auto first = std::max_element(groups[i].begin(), groups[i].end());
      expect(most.data<double>()[i] == *first &&
             at.data<int64_t>()[i] == first - groups[i].begin());
    }
  }
}

void integers_products_and_complex_numbers_are_exact() {
  for (int round = 0; round < 300; ++round) {
    Tensor input = random_layout(random_sizes(5000), round % 2 ? DType::int16 : DType::uint8);
    DimSet dims = random_dims(input.dim());
    Tensor sums = reduce(Reduction::sum, input, dims, false, DType::int64);
    auto groups = groups_of(input, dims);
    for (size_t i = 0; i < groups.size(); ++i)
      expect(double(sums.data<int64_t>()[i]) == naive(Reduction::sum, groups[i], 0));
    Tensor complex_sums =
        reduce(Reduction::sum, to_dtype(input, DType::complex64), dims, false, DType::complex64);
    for (size_t i = 0; i < groups.size(); ++i)
      expect_close(complex_sums.data<std::complex<float>>()[i].real(),
                   naive(Reduction::sum, groups[i], 0), 1e-6);
  }
  Tensor two = scalar_tensor(2.0, DType::float64);
  Tensor powers = alias(two, Shape{3, 20}, Shape{0, 0}, 0);
  DimSet last;
  last.set(1);
  Tensor product = reduce(Reduction::product, powers, last, false, DType::float64);
  for (int i = 0; i < 3; ++i) expect(product.data<double>()[i] == 1048576);
}

void the_number_of_threads_does_not_change_a_digit() {
  for (int round = 0; round < 60; ++round) {
    Tensor input = empty(random_sizes(2000000), DType::float32);
    for (int64_t i = 0; i < input.numel(); ++i)
      input.data<float>()[i] = float(random_bits()) * 1e-9f;
    DimSet dims = random_dims(input.dim());
    Reduction reduction = kOneResult[random_below(std::size(kOneResult))];
    set_num_threads(1);
    Tensor alone = reduce(reduction, input, dims, false, DType::float32, 2.5);
    set_num_threads(3);
    Tensor together = reduce(reduction, input, dims, false, DType::float32, 2.5);
    expect(std::memcmp(alone.data(), together.data(), size_t(alone.numel()) * sizeof(float)) == 0);
  }
}

void a_float_sum_of_many_keeps_its_digits() {
  Tensor tenth = scalar_tensor(0.1, DType::float32);
  Tensor many = clone_dense(alias(tenth, Shape{10000000}, Shape{0}, 0));
  double sum =
      *reduce(Reduction::sum, many, reduced_dims({}, 1), false, DType::float32).data<float>();
  expect_close(sum, 1e7 * double(0.1f), 1e-6);
  Tensor tall = alias(many, Shape{5000000, 2}, Shape{2, 1}, 0);
  DimSet first;
  first.set(0);
  Tensor sums = reduce(Reduction::sum, tall, first, false, DType::float32);
  expect_close(sums.data<float>()[1], 5e6 * double(0.1f), 1e-6);
}

void nan_wins_and_infinities_do_not_make_nan() {
  constexpr float inf = INFINITY;
  Tensor x = empty(Shape{2, 40}, DType::float32);
  for (int i = 0; i < 80; ++i) x.data<float>()[i] = float(i);
  x.data<float>()[23] = NAN;
  DimSet last;
  last.set(1);
  auto [most, at] = reduce_pair(Reduction::indexed_maximum, x, last, false, DType::float32);
  expect(std::isnan(most.data<float>()[0]) && at.data<int64_t>()[0] == 23);
  expect(most.data<float>()[1] == 79 && at.data<int64_t>()[1] == 39);
  expect(std::isnan(reduce(Reduction::minimum, x, last, false, DType::float32).data<float>()[0]));
  expect(reduce(Reduction::nan_sum, x, last, false, DType::float32).data<float>()[0] == 780 - 23);
  for (float value : {inf, -inf}) {
    for (int i = 0; i < 80; ++i) x.data<float>()[i] = i % 3 ? value : -inf;
    expect(reduce(Reduction::log_sum_exp, x, last, false, DType::float32).data<float>()[0] ==
           value);
    DimSet first;
    first.set(0);
    expect(reduce(Reduction::log_sum_exp, x, first, false, DType::float32).data<float>()[1] ==
           value);
  }
}

void nothing_reduces_to_the_neutral_value_or_raises() {
  Tensor none = empty(Shape{2, 0}, DType::float32);
  DimSet last;
  last.set(1);
  expect(reduce(Reduction::sum, none, last, false, DType::float32).data<float>()[1] == 0);
  expect(reduce(Reduction::product, none, last, false, DType::float32).data<float>()[1] == 1);
  expect(std::isnan(reduce(Reduction::mean, none, last, false, DType::float32).data<float>()[1]));
  expect_error(ErrorKind::kIndex, "extreme",
               [&] { reduce(Reduction::maximum, none, last, false, DType::float32); });
  DimSet first;
  first.set(0);
  expect(reduce(Reduction::maximum, none, first, false, DType::float32).numel() == 0);
}

}  // namespace

int main() {
  set_num_threads(2);
  reductions_equal_a_naive_walk_over_any_layout();
  pairs_hold_the_first_extreme_and_the_moments();
  integers_products_and_complex_numbers_are_exact();
  the_number_of_threads_does_not_change_a_digit();
  a_float_sum_of_many_keeps_its_digits();
  nan_wins_and_infinities_do_not_make_nan();
  nothing_reduces_to_the_neutral_value_or_raises();
}
