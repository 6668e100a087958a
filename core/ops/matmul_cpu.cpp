// Defines the products of matmul.h: how operands lie, batches, and the choice of library.
#include "core/ops/matmul.h"

#include <cstring>
#include <optional>

#include "core/device/onednn.h"
#include "core/device/openblas.h"
#include "core/device/threads.h"
#include "core/ops/matmul_loops.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa, name) \
  namespace isa {                    \
  extern const IntegerProducts name; \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE, integer_products)
#undef RUSHLIGHT_DECLARE

namespace {

// OpenBLAS has done smaller products before oneDNN has begun; oneDNN has the faster large ones.
constexpr double kOneDnnFrom = 1 << 15;

bool is_blas_dtype(DType t) { return is_differentiable(t) && !is_half(t); }

// Rows, or columns when `transposed`, lie `stride` elements apart, their elements side by side.
struct Layout {
  bool transposed;
  int64_t stride;
};

std::optional<Layout> layout_of(int64_t rows, int64_t columns, int64_t row_stride,
                                int64_t column_stride) {
  bool one_row = rows == 1, one_column = columns == 1;
  if ((column_stride == 1 || one_column) && (one_row || row_stride >= columns))
    return Layout{false, one_row ? columns : row_stride};
  if ((row_stride == 1 || one_row) && (one_column || column_stride >= rows))
    return Layout{true, one_column ? rows : column_stride};
  return std::nullopt;
}

struct Matrix {
  const char* data;
  Layout layout;
};

// c = a @ b, plus the bias in each row, for a batch of matrices that lie some elements apart.
struct Product {
  DType dtype;
  int64_t m, n, k;
  Matrix a{}, b{};
  const char* bias = nullptr;  // n elements
  char* c;                     // dense
  int64_t batch = 1, a_step = 0, b_step = 0;
};

bool run_onednn(const Product& p) {
  auto strides = [](Layout layout, int64_t step) {
    return layout.transposed ? onednn::MatrixStrides{step, 1, layout.stride}
                             : onednn::MatrixStrides{step, layout.stride, 1};
  };
  onednn::Matmul product{p.dtype,
                         p.dtype,
                         p.batch,
                         p.m,
                         p.n,
                         p.k,
                         strides(p.a.layout, p.a_step),
                         strides(p.b.layout, p.b_step),
                         {p.m * p.n, p.n, 1}};
  return onednn::matmul(product, p.a.data, p.b.data, p.bias, p.c);
}

void fill_rows(char* c, int64_t rows, const char* row, int64_t row_bytes) {
  parallel_for(0, rows, std::max<int64_t>(1, (1 << 16) / row_bytes),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   std::memcpy(c + i * row_bytes, row, size_t(row_bytes));
               });
}

void add_integers(const Product& p, const char* a, const char* b, char* c) {
#define RUSHLIGHT_ADDRESS(isa, name) &isa::name,
  static constexpr IsaSets<IntegerProducts> sets = {
      RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_ADDRESS, integer_products)};
#undef RUSHLIGHT_ADDRESS
  int64_t item = int64_t(dtype_size(p.dtype));
  IntegerProduct product = active(sets).run[std::countr_zero(uint64_t(item))];
  int64_t a_row = p.a.layout.stride, a_column = 1;
  if (p.a.layout.transposed) std::swap(a_row, a_column);
  ASSERT(!p.b.layout.transposed);
  int64_t grain = int64_t(kMultiplicationsPerThread) / (p.n * p.k) + 1;
  parallel_for(0, p.m, grain, [&](int64_t begin, int64_t end) {
    product(end - begin, p.n, p.k, a + begin * a_row * item, a_row, a_column, b, p.b.layout.stride,
            c + begin * p.n * item, p.n);
  });
}

// Returns false, having done nothing, for half types when oneDNN does not take them.
bool run(const Product& p) {
  double work = double(p.m) * double(p.n) * double(p.k);
  bool large = work >= kOneDnnFrom && p.m > 1 && p.n > 1;
  if ((is_half(p.dtype) || (p.dtype == DType::float32 && large)) && run_onednn(p)) return true;
  if (is_half(p.dtype)) return false;

  int64_t item = int64_t(dtype_size(p.dtype));
  if (p.bias) fill_rows(p.c, p.batch * p.m, p.bias, p.n * item);
  else if (!is_blas_dtype(p.dtype)) std::memset(p.c, 0, size_t(p.batch * p.m * p.n * item));
  int64_t grain = int64_t(kMultiplicationsPerThread / work) + 1;
  parallel_for(0, p.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const char* a = p.a.data + i * p.a_step * item;
      const char* b = p.b.data + i * p.b_step * item;
      char* c = p.c + i * p.m * p.n * item;
      if (is_blas_dtype(p.dtype)) {
        openblas::gemm(p.dtype, p.a.layout.transposed, p.b.layout.transposed, p.m, p.n, p.k, 1, a,
                       p.a.layout.stride, b, p.b.layout.stride, p.bias ? 1 : 0, c, p.n);
      } else {
        add_integers(p, a, b, c);
      }
    }
  });
  return true;
}

// The sum of no products at all.
void fill_empty(const Product& p) {
  int64_t row_bytes = p.n * int64_t(dtype_size(p.dtype));
  if (p.bias) fill_rows(p.c, p.m, p.bias, row_bytes);
  else std::memset(p.c, 0, size_t(p.batch * p.m * row_bytes));
}

// How a tensor lies when all its dims but the last are taken as rows.
std::optional<Layout> rows_layout(const Tensor& tensor) {
  int64_t rows = 1, stride = 0;
  for (size_t d = size_t(tensor.dim()) - 1; d-- > 0;) {
    if (tensor.sizes()[d] == 1) continue;
    if (rows == 1) stride = tensor.strides()[d];
    else if (tensor.strides()[d] != rows * stride) return std::nullopt;
    rows *= tensor.sizes()[d];
  }
  return layout_of(rows, tensor.size(-1), stride, tensor.stride(-1));
}

// How the matrices in the last two dims lie.
std::optional<Layout> matrix_layout(const Tensor& tensor) {
  return layout_of(tensor.size(-2), tensor.size(-1), tensor.stride(-2), tensor.stride(-1));
}

// The right operand as BLAS takes it, or the integer loop, which needs rows; copied if it must be.
Tensor right_operand(const Tensor& b) {
  std::optional<Layout> layout = matrix_layout(b);
  bool fits = layout && (is_differentiable(b.dtype()) || !layout->transposed);
  return fits ? b : to_contiguous(b);
}

// The product of all rows of a with the matrix b. Undefined when run() has no code for it.
Tensor multiply_rows(Tensor a, Tensor b, const Tensor& bias) {
  Shape sizes = a.sizes();
  sizes.back() = b.size(1);
  Tensor out = empty(sizes, a.dtype());
  if (out.numel() == 0) return out;
  Product p{.dtype = a.dtype(),
            .m = out.numel() / b.size(1),
            .n = b.size(1),
            .k = b.size(0),
            .bias = bias.defined() ? static_cast<char*>(bias.data()) : nullptr,
            .c = static_cast<char*>(out.data())};
  if (p.k == 0) {
    fill_empty(p);
    return out;
  }
  if (!rows_layout(a)) a = to_contiguous(a);
  b = right_operand(b);
  p.a = {static_cast<char*>(a.data()), *rows_layout(a)};
  p.b = {static_cast<char*>(b.data()), *matrix_layout(b)};
  return run(p) ? out : Tensor();
}

ShapeRef batch_dims(const Shape& shape) { return ShapeRef(shape).first(shape.size() - 2); }

// One product for each index of the batch dims. Undefined when run() has no code for it.
Tensor multiply_batches(Tensor a, Tensor b) {
  Shape sizes = broadcast_shapes(batch_dims(a.sizes()), batch_dims(b.sizes()));
  size_t batch_dim_count = sizes.size();
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  Tensor out = empty(sizes, a.dtype());
  if (out.numel() == 0) return out;
  Product p{.dtype = a.dtype(),
            .m = a.size(-2),
            .n = b.size(-1),
            .k = a.size(-1),
            .c = static_cast<char*>(out.data())};
  if (p.k == 0) {
    p.batch = out.numel() / (p.m * p.n);
    fill_empty(p);
    return out;
  }
  if (!matrix_layout(a)) a = to_contiguous(a);
  b = right_operand(b);
  p.a = {static_cast<char*>(a.data()), *matrix_layout(a)};
  p.b = {static_cast<char*>(b.data()), *matrix_layout(b)};

  sizes.resize(batch_dim_count);
  Shape out_strides(batch_dims(out.strides()));
  Shape a_strides(batch_dims(broadcast_strides(a, out.sizes())));
  Shape b_strides(batch_dims(broadcast_strides(b, out.sizes())));
  join_dims(sizes, std::array{&out_strides, &a_strides, &b_strides});
  if (sizes.empty()) return run(p) ? out : Tensor();
  // The innermost joined dim is one call; mostly it is the only one.
  p.batch = sizes.back();
  p.a_step = a_strides.back();
  p.b_step = b_strides.back();
  sizes.pop_back();
  int64_t item = int64_t(out.itemsize()), calls = checked_numel(sizes);
  Odometer<3> at(sizes, {out_strides, a_strides, b_strides});
  for (int64_t i = 0; i < calls; ++i, at.next()) {
    Product part = p;
    part.c += at.at(0) * item;
    part.a.data += at.at(1) * item;
    part.b.data += at.at(2) * item;
    if (!run(part)) return {};
  }
  return out;
}

}  // namespace

Tensor matmul_cpu(const Tensor& a, const Tensor& b) {
  Tensor out = b.dim() == 2 ? multiply_rows(a, b, {}) : multiply_batches(a, b);
  if (out.defined()) return out;
  return to_dtype(matmul_cpu(to_dtype(a, DType::float32), to_dtype(b, DType::float32)), a.dtype());
}

Tensor linear_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  Tensor turned = alias(weight, Shape{weight.size(1), weight.size(0)},
                        Shape{weight.stride(1), weight.stride(0)}, weight.offset());
  Tensor out = multiply_rows(input, turned, bias.defined() ? to_contiguous(bias) : bias);
  if (out.defined()) return out;
  auto widen = [](const Tensor& t) { return t.defined() ? to_dtype(t, DType::float32) : t; };
  return to_dtype(linear_cpu(widen(input), widen(weight), widen(bias)), input.dtype());
}

Tensor dot_cpu(const Tensor& input, const Tensor& other) {
  int64_t n = input.size(0);
  if (!is_blas_dtype(input.dtype())) {
    Tensor row = alias(input, Shape{1, n}, Shape{n, input.stride(0)}, input.offset());
    Tensor column = alias(other, Shape{n, 1}, Shape{other.stride(0), 1}, other.offset());
    Tensor product = matmul_cpu(row, column);
    return alias(product, {}, {}, 0);
  }
  Tensor out = empty({}, input.dtype());
  Tensor x = input.stride(0) ? input : to_contiguous(input);
  Tensor y = other.stride(0) ? other : to_contiguous(other);
  if (n == 0) std::memset(out.data(), 0, out.itemsize());
  else openblas::dot(input.dtype(), n, x.data(), x.stride(0), y.data(), y.stride(0), out.data());
  return out;
}

}  // namespace rushlight
