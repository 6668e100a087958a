// Defines the products of matmul.h but for the arithmetic: how operands lie, batches, devices.
#include "core/ops/matmul/matmul.h"

#include <cstring>
#include <optional>

#include "core/device/cuda.h"
#include "core/device/openblas.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

char* bytes_of(const Tensor& tensor) { return static_cast<char*>(tensor.address()); }

// Returns false, having done nothing, when the device has no code for it.
bool multiply(const MatrixProduct& product, Device device) {
  if (device.is_meta()) return true;
  if (device.is_cpu()) return multiply_on_cpu(product);
  cuda::DeviceGuard guard(device.index);
  multiply_on_cuda(product);
  return true;
}

std::optional<MatrixLayout> layout_of(int64_t rows, int64_t columns, int64_t row_stride,
                                      int64_t column_stride) {
  bool one_row = rows == 1, one_column = columns == 1;
  if ((column_stride == 1 || one_column) && (one_row || row_stride >= columns))
    return MatrixLayout{false, one_row ? columns : row_stride};
  if ((row_stride == 1 || one_row) && (one_column || column_stride >= rows))
    return MatrixLayout{true, one_column ? rows : column_stride};
  return std::nullopt;
}

// How a tensor lies when all its dims but the last are taken as rows.
std::optional<MatrixLayout> rows_layout(const Tensor& tensor) {
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
std::optional<MatrixLayout> matrix_layout(const Tensor& tensor) {
  return layout_of(tensor.size(-2), tensor.size(-1), tensor.stride(-2), tensor.stride(-1));
}

// The right operand as BLAS takes it, or the CPU's integer loop, which needs rows; else a copy.
Tensor right_operand(const Tensor& b) {
  std::optional<MatrixLayout> layout = matrix_layout(b);
  bool takes_both = is_differentiable(b.dtype()) || !b.device().is_cpu();
  bool fits = layout && (takes_both || !layout->transposed);
  return fits ? b : to_contiguous(b);
}

// beta * input, which a product is added to, and the factor of that; beta is 0 without an input.
struct Scaling {
  const Tensor& input;
  double beta, alpha;
};
const Scaling kUnscaled{Tensor(), 0, 1};

// A dense result, which holds the input already if there is one.
Tensor prepare_result(ShapeRef sizes, const Tensor& like, const Scaling& scaling) {
  Tensor out = empty(sizes, like.dtype(), like.device());
  if (scaling.beta != 0) copy_into(out, scaling.input);
  return out;
}

// The product of all rows of a with the matrix b, in float32 if it is wide. Undefined when there is
// no code for it.
Tensor multiply_rows(Tensor a, Tensor b, const Tensor& bias, const Scaling& scaling,
                     bool is_wide = false) {
  Shape sizes = a.sizes();
  sizes.back() = b.size(1);
  Tensor out =
      is_wide ? empty(sizes, DType::float32, a.device()) : prepare_result(sizes, a, scaling);
  if (out.numel() == 0) return out;
  MatrixProduct p{.dtype = a.dtype(),
                  .m = out.numel() / b.size(1),
                  .n = b.size(1),
                  .k = b.size(0),
                  .bias = bias.defined() ? bytes_of(bias) : nullptr,
                  .c = bytes_of(out),
                  .alpha = scaling.alpha,
                  .beta = scaling.beta,
                  .is_wide = is_wide};
  if (p.k == 0) return multiply(p, out.device()) ? out : Tensor();
  if (!rows_layout(a)) a = to_contiguous(a);
  b = right_operand(b);
  p.a = {bytes_of(a), *rows_layout(a)};
  p.b = {bytes_of(b), *matrix_layout(b)};
  return multiply(p, out.device()) ? out : Tensor();
}

ShapeRef batch_dims(const Shape& shape) { return ShapeRef(shape).first(shape.size() - 2); }

// Whether a batch is one matrix over and over: a weight that is the same for all samples of vmap.
bool is_one_matrix(const Tensor& batch) {
  for (size_t d = 0; d + 2 < batch.sizes().size(); ++d)
    if (batch.sizes()[d] != 1 && batch.strides()[d] != 0) return false;
  return true;
}
Tensor last_matrix(const Tensor& batch) {
  return alias(batch, Shape{batch.size(-2), batch.size(-1)},
               Shape{batch.stride(-2), batch.stride(-1)}, batch.offset());
}

// One product for each index of the batch dims. Undefined when there is no code for it.
Tensor multiply_batches(Tensor a, Tensor b, const Scaling& scaling) {
  Shape sizes = broadcast_shapes(batch_dims(a.sizes()), batch_dims(b.sizes()));
  size_t batch_dim_count = sizes.size();
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  Tensor out = prepare_result(sizes, a, scaling);
  if (out.numel() == 0) return out;
  MatrixProduct p{.dtype = a.dtype(),
                  .m = a.size(-2),
                  .n = b.size(-1),
                  .k = a.size(-1),
                  .c = bytes_of(out),
                  .alpha = scaling.alpha,
                  .beta = scaling.beta};
  if (p.k == 0) {
    p.batch = out.numel() / (p.m * p.n);
    return multiply(p, out.device()) ? out : Tensor();
  }
  if (is_one_matrix(b) && rows_layout(a) && same_shape(batch_dims(a.sizes()), batch_dims(sizes)))
    return multiply_rows(a, last_matrix(b), {}, scaling);
  if (!matrix_layout(a)) a = to_contiguous(a);
  b = right_operand(b);
  p.a = {bytes_of(a), *matrix_layout(a)};
  p.b = {bytes_of(b), *matrix_layout(b)};

  sizes.resize(batch_dim_count);
  Shape out_strides(batch_dims(out.strides()));
  Shape a_strides(batch_dims(broadcast_strides(a, out.sizes())));
  Shape b_strides(batch_dims(broadcast_strides(b, out.sizes())));
  join_dims(sizes, std::array{&out_strides, &a_strides, &b_strides});
  if (sizes.empty()) return multiply(p, out.device()) ? out : Tensor();
  // The innermost joined dim is one call; mostly it is the only one.
  p.batch = sizes.back();
  p.a_step = a_strides.back();
  p.b_step = b_strides.back();
  sizes.pop_back();
  int64_t item = int64_t(out.itemsize()), calls = checked_numel(sizes);
  Odometer<3> at(sizes, {out_strides, a_strides, b_strides});
  for (int64_t i = 0; i < calls; ++i, at.next()) {
    MatrixProduct part = p;
    part.c += at.at(0) * item;
    part.a.data += at.at(1) * item;
    part.b.data += at.at(2) * item;
    if (!multiply(part, out.device())) return {};
  }
  return out;
}

}  // namespace

namespace {

Tensor multiply(const Tensor& a, const Tensor& b, const Scaling& scaling) {
  Tensor out = b.dim() == 2 ? multiply_rows(a, b, {}, scaling) : multiply_batches(a, b, scaling);
  if (out.defined()) return out;
  return to_dtype(multiply(to_dtype(a, DType::float32), to_dtype(b, DType::float32), scaling),
                  a.dtype());
}

}  // namespace

Tensor matmul_kernel(const Tensor& a, const Tensor& b) { return multiply(a, b, kUnscaled); }

Tensor add_product_kernel(const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                          double alpha) {
  return multiply(a, b, {input, beta, alpha});
}

namespace {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, bool is_wide) {
  Tensor turned = alias(weight, Shape{weight.size(1), weight.size(0)},
                        Shape{weight.stride(1), weight.stride(0)}, weight.offset());
  Tensor row = bias.defined() ? to_contiguous(bias) : bias;
  Tensor out = multiply_rows(input, turned, row, kUnscaled, is_wide);
  if (out.defined()) return out;
  auto widen = [](const Tensor& t) { return t.defined() ? to_dtype(t, DType::float32) : t; };
  out = linear(widen(input), widen(weight), widen(bias), false);
  return is_wide ? out : to_dtype(out, input.dtype());
}

}  // namespace

Tensor linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return linear(input, weight, bias, false);
}

Tensor wide_linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return linear(input, weight, bias, true);
}

Tensor dot_kernel(const Tensor& input, const Tensor& other) {
  int64_t n = input.size(0);
  if (!is_full_precision(input.dtype()) || !input.device().is_cpu()) {
    Tensor row = alias(input, Shape{1, n}, Shape{n, input.stride(0)}, input.offset());
    Tensor column = alias(other, Shape{n, 1}, Shape{other.stride(0), 1}, other.offset());
    Tensor product = matmul_kernel(row, column);
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
