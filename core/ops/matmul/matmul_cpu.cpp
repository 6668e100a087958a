// Defines the products of matrices on the CPU: the choice of library.
#include "core/ops/matmul/matmul.h"

#include <cstring>

#include "core/device/cpu_features.h"
#include "core/device/onednn.h"
#include "core/device/openblas.h"
#include "core/device/threads.h"
#include "core/ops/matmul/matmul_loops.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(IntegerProducts, integer_products)
ISA_TABLES(SmallProducts, small_products)

namespace {

// OpenBLAS has done smaller products before oneDNN has begun; oneDNN has the faster large ones.
constexpr double kOneDnnFrom = 1 << 15;

// oneDNN's kernels for AVX2 read floats where they lie, OpenBLAS's copy them into blocks first.
// That takes half the time where rows are at distances that share sets of the cache, and two thirds
// where the first matrix is transposed. Measured for 8 to 512 rows; with more the two are alike.
bool suits_blocks(const MatrixProduct& p) {
  if (active_isa() != Isa::v3) return false;
  return p.b.layout.stride % (p.b.layout.transposed ? 1024 : 512) == 0 ||
         (p.a.layout.transposed && p.m >= 32);
}

bool run_onednn(const MatrixProduct& p) {
  auto strides = [](MatrixLayout layout, int64_t step) {
    return layout.transposed ? onednn::MatrixStrides{step, 1, layout.stride}
                             : onednn::MatrixStrides{step, layout.stride, 1};
  };
  onednn::Matmul product{p.dtype,
                         p.out_dtype(),
                         p.batch,
                         p.m,
                         p.n,
                         p.k,
                         strides(p.a.layout, p.a_step),
                         strides(p.b.layout, p.b_step),
                         {p.m * p.n, p.n, 1},
                         float(p.alpha),
                         float(p.beta)};
  return onednn::matmul(product, p.a.data, p.b.data, p.bias, p.c);
}

void fill_rows(char* c, int64_t rows, const char* row, int64_t row_bytes) {
  parallel_for(0, rows, std::max<int64_t>(1, (1 << 16) / row_bytes),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   std::memcpy(c + i * row_bytes, row, size_t(row_bytes));
               });
}

void add_integers(const MatrixProduct& p, const char* a, const char* b, char* c) {
  int64_t item = int64_t(dtype_size(p.dtype));
  IntegerProduct product = active(integer_products_sets).run[std::countr_zero(uint64_t(item))];
  int64_t a_row = p.a.layout.stride, a_column = 1;
  if (p.a.layout.transposed) std::swap(a_row, a_column);
  ASSERT(!p.b.layout.transposed);
  int64_t grain = int64_t(kMultiplicationsPerThread) / (p.n * p.k) + 1;
  parallel_for(0, p.m, grain, [&](int64_t begin, int64_t end) {
    product(end - begin, p.n, p.k, a + begin * a_row * item, a_row, a_column, b, p.b.layout.stride,
            c + begin * p.n * item, p.n);
  });
}

// In a batch of these, calls of BLAS would take longer than the products.
bool is_small(const MatrixProduct& p) {
  bool is_real = p.dtype == DType::float32 || p.dtype == DType::float64;
  bool is_dot = p.m == 1 && p.n == 1;
  return is_real && p.is_plain() && !p.bias && p.batch > 1 && p.k <= 512 &&
         (is_dot || p.m * p.n * p.k <= 32);
}

void multiply_small(const MatrixProduct& p) {
  auto strides = [](MatrixLayout layout, int64_t step) {
    return layout.transposed ? BatchStrides{step, 1, layout.stride}
                             : BatchStrides{step, layout.stride, 1};
  };
  BatchStrides a = strides(p.a.layout, p.a_step), b = strides(p.b.layout, p.b_step);
  int64_t item = int64_t(dtype_size(p.dtype));
  SmallProduct run = active(small_products_sets).run[p.dtype == DType::float64];
  int64_t grain = int64_t(kMultiplicationsPerThread / double(p.m * p.n * p.k)) + 1;
  parallel_for(0, p.batch, grain, [&](int64_t begin, int64_t end) {
    run(end - begin, p.m, p.n, p.k, p.a.data + begin * p.a_step * item, a,
        p.b.data + begin * p.b_step * item, b, p.c + begin * p.m * p.n * item);
  });
}

// The sum of no products at all.
void fill_empty(const MatrixProduct& p) {
  int64_t row_bytes = p.n * int64_t(dtype_size(p.out_dtype()));
  if (p.bias) fill_rows(p.c, p.m, p.bias, row_bytes);
  else std::memset(p.c, 0, size_t(p.batch * p.m * row_bytes));
}

}  // namespace

bool multiply_on_cpu(const MatrixProduct& p) {
  if (p.k == 0) {
    fill_empty(p);
    return true;
  }
  if (is_small(p)) {
    multiply_small(p);
    return true;
  }
  if (is_half(p.dtype) && multiply_few_rows(p)) return true;
  double work = double(p.m) * double(p.n) * double(p.k);
  bool large = work >= kOneDnnFrom && p.m > 1 && p.n > 1;
  // In floats these are up to ten times as fast.
  bool few_dots = (p.m == 1 || p.n == 1) && p.m * p.n < kFewDots;
  bool suits_onednn =
      is_half(p.dtype) ? !few_dots : p.dtype == DType::float32 && large && !suits_blocks(p);
  if (suits_onednn && run_onednn(p)) return true;
  if (is_half(p.dtype)) return false;

  int64_t item = int64_t(dtype_size(p.dtype));
  if (p.bias) fill_rows(p.c, p.batch * p.m, p.bias, p.n * item);
  else if (!is_full_precision(p.dtype)) std::memset(p.c, 0, size_t(p.batch * p.m * p.n * item));
  int64_t grain = int64_t(kMultiplicationsPerThread / work) + 1;
  parallel_for(0, p.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const char* a = p.a.data + i * p.a_step * item;
      const char* b = p.b.data + i * p.b_step * item;
      char* c = p.c + i * p.m * p.n * item;
      if (is_full_precision(p.dtype)) {
        openblas::gemm(p.dtype, p.a.layout.transposed, p.b.layout.transposed, p.m, p.n, p.k,
                       p.alpha, a, p.a.layout.stride, b, p.b.layout.stride, p.bias ? 1 : p.beta, c,
                       p.n);
      } else {
        add_integers(p, a, b, c);
      }
    }
  });
  return true;
}

}  // namespace rushlight
