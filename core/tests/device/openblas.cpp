// OpenBLAS through our wrapper against plain loops: dtypes, transposes, threads, special values.
#include "core/device/openblas.h"

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "core/device/threads.h"
#include "core/tests/device/fork.h"
#include "core/tests/device/library_path.h"
#include "core/tests/expect.h"

using namespace rushlight;

namespace {

std::mt19937 generator(0);

template <class T>
std::vector<T> random_values(int64_t count) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = T(uniform(generator));
    } else {
      value = T(uniform(generator), uniform(generator));
    }
  }
  return values;
}

template <class T>
bool close(T actual, T expected, int64_t terms) {
  double epsilon = std::numeric_limits<decltype(std::abs(T()))>::epsilon();
  return std::abs(actual - expected) <= 4 * epsilon * double(terms + 1);
}

// With rows in memory longer than needed, and a c full of NaN that beta = 0 must overwrite.
template <class T>
void gemm_matches_a_plain_loop(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k) {
  int64_t lda = (trans_a ? m : k) + 3, ldb = (trans_b ? k : n) + 1, ldc = n + 2;
  std::vector<T> a = random_values<T>((trans_a ? k : m) * lda);
  std::vector<T> b = random_values<T>((trans_b ? n : k) * ldb);
  T nan(std::numeric_limits<float>::quiet_NaN());
  for (bool accumulate : {false, true}) {
    std::vector<T> c = accumulate ? random_values<T>(m * ldc) : std::vector<T>(m * ldc, nan);
    std::vector<T> before = c;
    openblas::gemm(dtype_of<T>, trans_a, trans_b, m, n, k, 2.0, a.data(), lda, b.data(), ldb,
                   accumulate ? 0.5 : 0.0, c.data(), ldc);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += a[trans_a ? l * lda + i : i * lda + l] * b[trans_b ? j * ldb + l : l * ldb + j];
        }
        T expected = T(2) * sum + (accumulate ? T(0.5) * before[i * ldc + j] : T(0));
        expect(close(c[i * ldc + j], expected, k));
      }
      // What lies between the rows stays.
      for (int64_t j = n; j < ldc && accumulate; ++j) expect(c[i * ldc + j] == before[i * ldc + j]);
    }
  }
}

template <class T>
void gemv_matches_a_plain_loop(bool trans_a, int64_t rows, int64_t columns) {
  int64_t lda = columns + 1, inputs = trans_a ? rows : columns, outputs = trans_a ? columns : rows;
  std::vector<T> a = random_values<T>(rows * lda), x = random_values<T>(inputs * 2);
  std::vector<T> y(outputs * 3, T(std::numeric_limits<float>::quiet_NaN()));
  openblas::gemv(dtype_of<T>, trans_a, rows, columns, 2.0, a.data(), lda, x.data(), 2, 0.0,
                 y.data(), 3);
  for (int64_t i = 0; i < outputs; ++i) {
    T sum = 0;
    for (int64_t l = 0; l < inputs; ++l) sum += a[trans_a ? l * lda + i : i * lda + l] * x[l * 2];
    expect(close(y[i * 3], T(2) * sum, inputs));
  }
}

template <class T>
void dot_matches_a_plain_loop(int64_t n) {
  std::vector<T> x = random_values<T>(n * 2), y = random_values<T>(n);
  T sum = 0, result;
  for (int64_t i = 0; i < n; ++i) sum += x[i * 2] * y[i];
  openblas::dot(dtype_of<T>, n, x.data(), 2, y.data(), 1, &result);
  expect(close(result, sum, n));
}

template <class T>
void check_dtype() {
  for (bool trans_a : {false, true}) {
    for (bool trans_b : {false, true}) {
      for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                             {2, 3, 4},
                             {17, 16, 5},
                             {3, 4, 0},
                             {1, 4, 0},
                             {3, 1, 0},
                             {1, 300, 2000},
                             {300, 1, 2000},
                             {130, 97, 80},
                             {5, 900, 300}}) {
        gemm_matches_a_plain_loop<T>(trans_a, trans_b, m, n, k);
      }
    }
    gemv_matches_a_plain_loop<T>(trans_a, 3, 5);
    gemv_matches_a_plain_loop<T>(trans_a, 700, 900);
    gemv_matches_a_plain_loop<T>(trans_a, 0, 3);
    gemv_matches_a_plain_loop<T>(trans_a, 3, 0);
  }
  for (int64_t n : {0, 1, 1000}) dot_matches_a_plain_loop<T>(n);
}

void complex_factors_are_used_whole() {
  std::complex<double> a(1, 2), b(3, -1), c(5, 5), alpha(0, 1), beta(2, -1);
  std::complex<double> expected = alpha * a * b + beta * c;
  openblas::gemm(DType::complex128, false, false, 1, 1, 1, alpha, &a, 1, &b, 1, beta, &c, 1);
  expect(c == expected);
}

void a_forked_child_may_call() {
  set_num_threads(3);
  gemm_matches_a_plain_loop<float>(false, false, 130, 97, 80);
  for (int threads : {1, 2}) {
    expect_child_succeeds([&] {
      set_num_threads(threads);
      gemm_matches_a_plain_loop<float>(false, false, 130, 97, 80);
    });
  }
}

void sizes_above_32_bits_are_refused() {
  float value = 0;
  expect_error(ErrorKind::kRuntime, "the most that OpenBLAS takes", [&] {
    openblas::gemm(DType::float32, false, false, 1, 1, int64_t(1) << 31, 1.0, &value, 1, &value, 1,
                   0.0, &value, 1);
  });
}

}  // namespace

int main() {
  find_python_libraries();
  for (int threads : {1, 3, 4}) {
    set_num_threads(threads);
    check_dtype<float>();
    check_dtype<double>();
    check_dtype<std::complex<float>>();
    check_dtype<std::complex<double>>();
  }
  complex_factors_are_used_whole();
  a_forked_child_may_call();
  sizes_above_32_bits_are_refused();
}
