// Defines the factorizations of linalg.h, and the solutions by them. Small matrices are done here,
// because LAPACK has not begun before they are finished; large ones by LAPACK.
#include "core/base/ceil_div.h"
#include "core/device/lapack.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/linalg/linalg_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(SmallMatrixLoops, small_matrix_loops)

namespace {

using lapack::Lapack;
using lapack::Workspace;

template <class T>
T conjugate(T x) {
  if constexpr (std::is_floating_point_v<T>) return x;
  else return std::conj(x);
}
// What LAPACK compares pivots by.
template <class T>
lapack::Real<T> magnitude(T x) {
  return std::abs(std::real(x)) + std::abs(std::imag(x));
}

// ---- small matrices -----------------------------------------------------------------------------

template <class T>
constexpr int kLoopType = std::is_same_v<T, float>                 ? 0
                          : std::is_same_v<T, double>              ? 1
                          : std::is_same_v<T, std::complex<float>> ? 2
                                                                   : 3;

const SmallMatrixLoops& small_loops(bool is_complex) {
  return is_complex ? *small_matrix_loops_sets[0] : active(small_matrix_loops_sets);
}
template <class T>
const SmallMatrixLoops& small_loops() {
  return small_loops(kLoopType<T> >= 2);
}

// As LAPACK says it of numbers; of NaNs it says nothing.
template <class T>
int large_cholesky(int64_t n, T* a, bool upper) {
  int info = Lapack<T>::potrf(upper ? 'U' : 'L', n, a, n);
  for (int64_t j = 0; j < n && info == 0; ++j)
    if (!(std::real(a[j * n + j]) > 0)) info = int(j) + 1;
  return info;
}

// b = A^-1 b by substitution, where columns of b lie `column` elements apart. A triangle of real
// numbers is two halves and the rectangle between them, whose product is LAPACK's: its own
// substitution goes by single numbers, and takes twice as long.
template <class T>
void substitute(int64_t n, const SmallTriangle& a, T* b, int64_t column, int64_t columns) {
  if (n <= kSmallMatrix) return small_loops<T>().substitute[kLoopType<T>](n, a, b, column, columns);
  const T* data = static_cast<const T*>(a.data);
  bool by_columns = a.row == 1;
  char trans = by_columns ? 'N' : a.conjugated ? 'C' : 'T';
  int64_t stride = by_columns ? a.column : a.row;
  if constexpr (!std::is_floating_point_v<T>) {
    Lapack<T>::trsm('L', a.upper == by_columns ? 'U' : 'L', trans, a.unitriangular ? 'U' : 'N', n,
                    columns, data, stride, b, column);
  } else {
    int64_t half = round_up(n / 2, kSmallMatrix), rest = n - half;
    SmallTriangle lower_right = a;
    lower_right.data = data + half * (a.row + a.column);
    if (a.upper) {
      substitute(rest, lower_right, b + half, column, columns);
      Lapack<T>::gemm_subtract(trans, half, columns, rest, data + half * a.column, stride, b + half,
                               column, b, column);
      substitute(half, a, b, column, columns);
    } else {
      substitute(half, a, b, column, columns);
      Lapack<T>::gemm_subtract(trans, rest, columns, half, data + half * a.row, stride, b, column,
                               b + half, column);
      substitute(rest, lower_right, b + half, column, columns);
    }
  }
}

template <class T>
void solve_by_lu(char trans, int64_t n, const T* lu, const int* pivots, T* b, int64_t columns) {
  auto exchange = [=](T* side, int64_t i) { std::swap(side[i], side[pivots[i] - 1]); };
  if (trans == 'N') {
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t i = 0; i < n; ++i) exchange(b + c * n, i);
    substitute(n, {lu, 1, n, false, false, true}, b, n, columns);
    substitute(n, {lu, 1, n, false, true, false}, b, n, columns);
  } else {
    substitute(n, {lu, n, 1, trans == 'C', false, false}, b, n, columns);
    substitute(n, {lu, n, 1, trans == 'C', true, true}, b, n, columns);
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t i = n - 1; i >= 0; --i) exchange(b + c * n, i);
  }
}

// x becomes (beta, the rest of v), where v begins with a one and (I - tau v v^H)^H maps x to
// beta e_1: Golub and Van Loan, algorithm 5.1.1, with the signs of LAPACK's larfg. Gives tau.
template <class T>
T small_reflector(int64_t n, T* x) {
  using R = lapack::Real<T>;
  R largest = 0;
  auto look_at = [&](T value) {
    if (!(magnitude(value) <= largest)) largest = magnitude(value);  // NaN too
  };
  for (int64_t i = 1; i < n; ++i) look_at(x[i]);
  if (largest == 0 && std::imag(x[0]) == 0) return T(0);
  look_at(x[0]);
  R sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::norm(x[i] / largest);
  R beta = -std::copysign(largest * std::sqrt(sum), std::real(x[0]));
  T tau = (T(beta) - x[0]) / beta, first = x[0] - beta;
  for (int64_t i = 1; i < n; ++i) x[i] /= first;
  x[0] = beta;
  return tau;
}

// c = (I - tau v v^H) c, where v begins with a one that is not read.
template <class T>
void reflect(int64_t n, const T* v, T tau, T* c) {
  T sum = c[0];
  for (int64_t i = 1; i < n; ++i) sum += conjugate(v[i]) * c[i];
  sum *= tau;
  c[0] -= sum;
  for (int64_t i = 1; i < n; ++i) c[i] -= v[i] * sum;
}

template <class T>
void small_qr(int64_t m, int64_t n, T* a, T* tau) {
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* v = a + j * (m + 1);
    tau[j] = small_reflector(m - j, v);
    for (int64_t c = j + 1; c < n; ++c) reflect(m - j, v, conjugate(tau[j]), a + c * m + j);
  }
}

// Golub and Van Loan, section 5.1.6: the last reflector first, so that zeros stay out of the work.
template <class T>
void small_householder(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  for (int64_t j = n - 1; j >= 0; --j) {
    T *column = a + j * m, *v = column + j;
    std::fill_n(column, j, T(0));
    if (j >= k) {  // without a reflector
      std::fill_n(v, m - j, T(0));
      v[0] = T(1);
      continue;
    }
    for (int64_t c = j + 1; c < n; ++c) reflect(m - j, v, tau[j], a + c * m + j);
    for (int64_t i = 1; i < m - j; ++i) v[i] *= -tau[j];
    v[0] = T(1) - tau[j];
  }
}

// ---- threads ------------------------------------------------------------------------------------

// Calls f(matrix, first column, columns): whole matrices b while there are enough of them for all
// threads, else blocks of columns.
template <class F>
void for_each_column_block(const Tensor& b, double work_per_column, F&& f) {
  int64_t count = checked_numel(batch_sizes(b)), columns = b.size(-1);
  if (columns == 0) return;
  int64_t blocks = 1;
  if (count < num_threads() && work_per_column * double(columns) > 2 * kMultiplicationsPerThread)
    blocks = std::min<int64_t>(columns, num_threads());
  int64_t width = ceil_div(columns, blocks);
  blocks = ceil_div(columns, width);
  double work = work_per_column * double(width) + 500;
  parallel_for(0, count * blocks, int64_t(4e4 / work) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t first = i % blocks * width;
      f(i / blocks, first, std::min(width, columns - first));
    }
  });
}

// ---- large matrices -----------------------------------------------------------------------------
// LAPACK runs on one thread here. A single large matrix is split where the work is: LAPACK factors
// a panel of columns, then all threads bring blocks of the columns on its right up to date.

constexpr int64_t kPanel = 64;

template <class F>
void for_each_block_of(int64_t columns, F&& f) {
  constexpr int64_t kNarrowest = 48;  // blocks below are not worth waking a thread for
  parallel_for(0, columns, kNarrowest, f);
}

bool takes_all_threads(int64_t count, int64_t m, int64_t n) {
  return count == 1 && std::min(m, n) >= 4 * kPanel && num_threads() > 1 && !in_parallel_region();
}

template <class T>
int large_lu(int64_t m, int64_t n, T* a, int* pivots) {
  int info = 0;
  int64_t k = std::min(m, n);
  for (int64_t j = 0; j < k; j += kPanel) {
    int64_t width = std::min(kPanel, k - j), rows = m - j, next = j + width;
    T* panel = a + j * m + j;
    int failed = Lapack<T>::getrf(rows, width, panel, m, pivots + j);
    if (failed > 0 && info == 0) info = failed + int(j);
    for (int64_t i = j; i < next; ++i) pivots[i] += int(j);
    Lapack<T>::laswp(j, a, m, j + 1, next, pivots);
    for_each_block_of(n - next, [&](int64_t begin, int64_t end) {
      T* right = a + (next + begin) * m;
      Lapack<T>::laswp(end - begin, right, m, j + 1, next, pivots);
      substitute(width, {panel, 1, m, false, false, true}, right + j, m, end - begin);
      Lapack<T>::gemm_subtract('N', m - next, end - begin, width, panel + width, m, right + j, m,
                               right + next, m);
    });
  }
  return info;
}

// The block of reflectors below the diagonal at column j, applied to the columns from `next` on.
template <class T>
void apply_block(bool adjoint, int64_t m, int64_t j, int64_t width, const T* a, const T* tau,
                 T* target, int64_t columns) {
  std::vector<T> triangle(size_t(width * width));
  Lapack<T>::larft(m - j, width, a + j * m + j, m, tau + j, triangle.data(), width);
  for_each_block_of(columns, [&](int64_t begin, int64_t end) {
    std::vector<T> work(size_t((end - begin) * width));
    Lapack<T>::larfb(adjoint, m - j, end - begin, width, a + j * m + j, m, triangle.data(), width,
                     target + begin * m + j, m, work.data());
  });
}

template <class T>
void large_qr(int64_t m, int64_t n, T* a, T* tau) {
  int64_t k = std::min(m, n);
  Workspace<T> space;
  for (int64_t j = 0; j < k; j += kPanel) {
    int64_t width = std::min(kPanel, k - j);
    if (width < kPanel) space = {};
    Lapack<T>::geqrf(m - j, width, a + j * m + j, m, tau + j, space);
    apply_block(true, m, j, width, a, tau, a + (j + width) * m, n - j - width);
  }
}

// The blocks from the last one on: each makes its own columns and changes those after it.
template <class T>
void large_householder(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  for (int64_t c = k; c < n; ++c) {  // columns without reflectors begin as those of the identity
    std::fill_n(a + c * m, m, T(0));
    a[c * m + c] = T(1);
  }
  Workspace<T> space;
  for (int64_t j = (k - 1) / kPanel * kPanel; j >= 0; j -= kPanel) {
    int64_t width = std::min(kPanel, k - j);
    apply_block(false, m, j, width, a, tau, a + (j + width) * m, n - j - width);
    Lapack<T>::orgqr(m - j, width, width, a + j * m + j, m, tau + j, space);
    if (width < kPanel) space = {};
    for (int64_t c = j; c < j + width; ++c) std::fill_n(a + c * m, j, T(0));
  }
}

double cube(int64_t n) { return double(n) * double(n) * double(n); }

}  // namespace

void cholesky_cpu(const Tensor& a, bool upper, const Tensor& info) {
  int64_t n = a.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> all(a);
    for_each_matrix(a, cube(n) / 6, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        T* matrix = all[k];
        info.data<int>()[k] = n <= kSmallMatrix ? small_loops<T>().cholesky[kLoopType<T>](
                                                      n, matrix, upper ? n : 1, upper ? 1 : n)
                                                : large_cholesky(n, matrix, upper);
        for (int64_t j = 0; j < n; ++j) {
          if (upper) std::fill(matrix + j * n + j + 1, matrix + (j + 1) * n, T(0));
          else std::fill(matrix + j * n, matrix + j * n + j, T(0));
        }
      }
    });
  });
}

void lu_cpu(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> all(a);
    if (takes_all_threads(info.numel(), m, n)) {
      *info.data<int>() = large_lu(m, n, all[0], pivots.data<int>());
      return;
    }
    for_each_matrix(a, double(m) * double(n) * double(k) / 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int* exchanged = pivots.data<int>() + i * k;
        info.data<int>()[i] = std::max(m, n) <= kSmallMatrix
                                  ? small_loops<T>().lu[kLoopType<T>](m, n, all[i], exchanged)
                                  : Lapack<T>::getrf(m, n, all[i], m, exchanged);
      }
    });
  });
}

void identity_cpu(const Tensor& a) {
  int64_t n = a.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> all(a);
    for_each_matrix(a, double(n) * double(n), [&](int64_t begin, int64_t end) {
      std::fill(all[begin], all[end], T(0));
      for (int64_t k = begin; k < end; ++k)
        for (int64_t i = 0; i < n; ++i) all[k][i * (n + 1)] = T(1);
    });
  });
}

void lu_solve_cpu(const Tensor& lu, const Tensor& pivots, const Tensor& b, char trans) {
  int64_t n = lu.size(-1);
  visit_lapack_type(lu.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> factors(lu), sides(b);
    for_each_column_block(b, double(n) * double(n), [&](int64_t k, int64_t first, int64_t columns) {
      const int* exchanged = pivots.data<int>() + k * n;
      T* side = sides[k] + first * n;
      solve_by_lu(trans, n, factors[k], exchanged, side, columns);
    });
  });
}

namespace {

// Calls f(index, diagonal of U by number, whether the row exchanges turn the sign) for each matrix.
template <class T, class F>
void for_each_determinant(const Tensor& lu, const Tensor& pivots, F&& f) {
  int64_t n = lu.size(-1);
  Matrices<T> factors(lu);
  for_each_matrix(lu, double(n), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      bool odd = false;
      for (int64_t i = 0; i < n; ++i) odd ^= pivots.data<int>()[k * n + i] != i + 1;
      f(k, [matrix = factors[k], n](int64_t i) { return matrix[i * (n + 1)]; }, odd);
    }
  });
}

}  // namespace

void det_cpu(const Tensor& lu, const Tensor& pivots, const Tensor& result) {
  int64_t n = lu.size(-1);
  visit_lapack_type(lu.dtype(), [&]<class T>(Tag<T>) {
    for_each_determinant<T>(lu, pivots, [&](int64_t k, auto diagonal, bool odd) {
      T product(odd ? -1 : 1);
      for (int64_t i = 0; i < n; ++i) product *= diagonal(i);
      result.data<T>()[k] = product;
    });
  });
}

void slogdet_cpu(const Tensor& lu, const Tensor& pivots, const Tensor& sign,
                 const Tensor& logabsdet) {
  int64_t n = lu.size(-1);
  visit_lapack_type(lu.dtype(), [&]<class T>(Tag<T>) {
    using R = lapack::Real<T>;
    for_each_determinant<T>(lu, pivots, [&](int64_t k, auto diagonal, bool odd) {
      T turn(odd ? -1 : 1);
      R log_sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        R size = std::abs(diagonal(i));
        turn *= size == 0 ? T(0) : diagonal(i) / size;
        log_sum += std::log(size);
      }
      sign.data<T>()[k] = turn;
      logabsdet.data<R>()[k] = log_sum;
    });
  });
}

void solve_triangular_cpu(const Tensor& a, const Tensor& b, bool upper, bool unitriangular) {
  int64_t n = a.size(-1);
  bool by_rows = a.is_contiguous();
  Tensor dense = by_rows || turned(a).is_contiguous() ? a : column_major_copy(a);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> factors(dense), sides(b);
    for_each_column_block(
        b, double(n) * double(n) / 2, [&](int64_t k, int64_t first, int64_t columns) {
          substitute(n, {factors[k], by_rows ? n : 1, by_rows ? 1 : n, false, upper, unitriangular},
                     sides[k] + first * n, n, columns);
        });
  });
}

void ldl_cpu(const Tensor& a, const Tensor& pivots, const Tensor& info, bool hermitian) {
  int64_t n = a.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> all(a);
    for_each_matrix(a, cube(n) / 6, [&](int64_t begin, int64_t end) {
      Workspace<T> space;
      for (int64_t k = begin; k < end; ++k)
        info.data<int>()[k] =
            Lapack<T>::sytrf(hermitian, 'L', n, all[k], n, pivots.data<int>() + k * n, space);
    });
  });
}

void ldl_solve_cpu(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  int64_t n = ld.size(-1);
  visit_lapack_type(ld.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> factors(ld), sides(b);
    for_each_column_block(b, double(n) * double(n), [&](int64_t k, int64_t first, int64_t columns) {
      Lapack<T>::sytrs(hermitian, 'L', n, columns, factors[k], n, pivots.data<int>() + k * n,
                       sides[k] + first * n, n);
    });
  });
}

void geqrf_cpu(const Tensor& a, const Tensor& tau) {
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> all(a);
    if (takes_all_threads(checked_numel(batch_sizes(a)), m, n))
      return large_qr(m, n, all[0], tau.data<T>());
    for_each_matrix(a, double(m) * double(n) * double(k), [&](int64_t begin, int64_t end) {
      Workspace<T> space;
      for (int64_t i = begin; i < end; ++i) {
        T* factors = tau.data<T>() + i * k;
        if (std::max(m, n) <= kSmallMatrix) small_qr(m, n, all[i], factors);
        else Lapack<T>::geqrf(m, n, all[i], m, factors, space);
      }
    });
  });
}

void householder_cpu(const Tensor& a, const Tensor& tau) {
  int64_t m = a.size(-2), n = a.size(-1), k = tau.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> all(a);
    if (takes_all_threads(checked_numel(batch_sizes(a)), m, k))
      return large_householder(m, n, k, all[0], tau.data<T>());
    for_each_matrix(a, double(m) * double(n) * double(k), [&](int64_t begin, int64_t end) {
      Workspace<T> space;
      for (int64_t i = begin; i < end; ++i) {
        const T* factors = tau.data<T>() + i * k;
        if (m <= kSmallMatrix) small_householder(m, n, k, all[i], factors);
        else Lapack<T>::orgqr(m, n, k, all[i], m, factors, space);
      }
    });
  });
}

void ormqr_cpu(const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool adjoint) {
  int64_t m = c.size(-2), n = c.size(-1), k = tau.size(-1);
  visit_lapack_type(a.dtype(), [&]<class T>(Tag<T>) {
    Matrices<T> reflectors(a), all(c);
    for_each_matrix(a, double(m) * double(n) * double(k), [&](int64_t begin, int64_t end) {
      Workspace<T> space;
      for (int64_t i = begin; i < end; ++i)
        Lapack<T>::ormqr(left ? 'L' : 'R', adjoint, m, n, k, reflectors[i], a.size(-2),
                         tau.data<T>() + i * k, all[i], m, space);
    });
  });
}

}  // namespace rushlight
