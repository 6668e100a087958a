// Defines the products of a few rows of halves with a matrix, which is read where it lies and once.
// To pack it, or to make floats of it, would take longer than the product.
#include <algorithm>
#include <memory>

#include "core/base/ceil_div.h"
#include "core/device/cpu_features.h"
#include "core/device/onednn.h"
#include "core/device/threads.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/matmul/row_products.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(RowProductLoops, row_product_loops)

namespace {

constexpr int64_t kBlock = 1 << 16;  // elements of the matrix, which all rows meet in the L2 cache
// Rows and columns of a matrix that is read row by row: a piece of it is read to its end.
constexpr int64_t kTogether = 32, kWide = 512;

// The same product turned: one column becomes one row.
MatrixProduct turned(MatrixProduct p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a_step, p.b_step);
  p.a.layout.transposed ^= true;
  p.b.layout.transposed ^= true;
  return p;
}

std::unique_ptr<float[]> floats(int64_t n) {
  return std::make_unique_for_overwrite<float[]>(size_t(n));
}

bool has_dense_rows(const MatrixProduct& p) {
  return !p.a.layout.transposed || (p.m == 1 && p.a.layout.stride == 1);
}

// Columns [begin, begin + width) of a @ b, for rows of floats: m x width.
void multiply_block(const MatrixProduct& p, const float* rows, const char* b, int64_t begin,
                    int64_t width, float* out) {
  const RowProductLoops& loops = active(row_product_loops_sets);
  const RowProducts<float>& product = p.dtype == DType::float16 ? loops.f16 : loops.bf16;
  const int64_t step = p.b.layout.stride, item = int64_t(dtype_size(p.dtype));
  if (p.b.layout.transposed) {
    for (int64_t i = 0; i < p.m; ++i)
      product.dots(rows + i * p.k, b + begin * step * item, step, width, p.k, out + i * width);
    return;
  }
  std::fill_n(out, p.m * width, 0.0f);
  for (int64_t r = 0; r < p.k; r += kTogether)
    for (int64_t i = 0; i < p.m; ++i)
      product.add_rows(rows + i * p.k + r, b + (r * step + begin) * item, step,
                       std::min(kTogether, p.k - r), width, out + i * width);
}

}  // namespace

int64_t few_rows(DType dtype) {
  if (active_isa() == Isa::v4)
    return dtype == DType::bfloat16 && onednn::has_bfloat16_tiles() ? 2 : 4;
  return active_isa() == Isa::v3 ? 8 : 1;
}

bool multiply_few_rows(const MatrixProduct& p) {
  if (p.n == 1 && p.m > 1 && !p.bias) return multiply_few_rows(turned(p));
  const int64_t columns = p.b.layout.transposed ? p.k : p.n;
  if (p.m > few_rows(p.dtype) || columns % kRowProductColumns != 0 || !has_dense_rows(p))
    return false;
  const int64_t item = int64_t(dtype_size(p.dtype)), out_item = int64_t(dtype_size(p.out_dtype()));
  const CastLoop widen = cast_loop(p.dtype, DType::float32),
                 widen_out = cast_loop(p.out_dtype(), DType::float32),
                 shorten = cast_loop(DType::float32, p.out_dtype());
  const int64_t step = p.b.layout.transposed ? std::max<int64_t>(16, kBlock / p.k) : kWide,
                blocks = ceil_div(p.n, step);
  const int64_t grain =
      int64_t(kMultiplicationsPerThread / double(p.m * std::min(step, p.n) * p.k)) + 1;
  parallel_for(0, p.batch * blocks, grain, [&](int64_t first, int64_t last) {
    auto rows = floats(p.m * p.k), out = floats(p.m * step), more = floats(step);
    for (int64_t t = first; t < last; ++t) {
      const int64_t index = t / blocks, begin = t % blocks * step,
                    width = std::min(step, p.n - begin);
      if (t == first || begin == 0)
        for (int64_t i = 0; i < p.m; ++i)
          widen(p.a.data + (index * p.a_step + i * p.a.layout.stride) * item,
                &rows[size_t(i * p.k)], p.k);
      multiply_block(p, rows.get(), p.b.data + index * p.b_step * item, begin, width, out.get());
      for (int64_t i = 0; i < p.m; ++i) {
        float* line = &out[size_t(i * width)];
        char* to = p.c + ((index * p.m + i) * p.n + begin) * out_item;
        auto add = [&](const char* from, float factor) {
          widen_out(from, more.get(), width);
          for (int64_t j = 0; j < width; ++j) line[j] += factor * more[size_t(j)];
        };
        for (int64_t j = 0; j < width && p.alpha != 1; ++j) line[j] *= float(p.alpha);
        if (p.bias) add(p.bias + begin * out_item, 1);
        if (p.beta != 0) add(to, float(p.beta));
        shorten(line, to, width);
      }
    }
  });
  return true;
}

}  // namespace rushlight
