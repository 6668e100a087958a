// Owns products and sums of vectors and matrices that are made of elementwise ops: cross and
// Kronecker products, powers as columns, the trace.
#include "core/ops/op.h"

namespace rushlight {
namespace {

// The first dim of size 3, which a cross product without a dim is along.
int64_t first_dim_of_three(const Tensor& input) {
  for (int64_t d = 0; d < input.dim(); ++d)
    if (input.size(d) == 3) return d;
  CHECK(false, "no dimension of size 3 in input of shape ", input.sizes());
  __builtin_unreachable();
}

// Ones in front until there are `dims` dims.
Shape with_dims(const Shape& sizes, size_t dims) {
  Shape padded(dims - sizes.size(), 1);
  for (int64_t size : sizes) padded.push_back(size);
  return padded;
}

}  // namespace

OP(cross, "(Tensor input, Tensor other, int? dim=None) -> Tensor", {
  .doc     = R"(The cross products of vectors of three elements along dim.

dim is the first of size 3 unless given. The other dims broadcast.

Example:
    >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1]))",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& other, std::optional<int64_t> dim) {
    CHECK(input.dim() == other.dim(), "inputs must have the same number of dimensions, got ",
          input.dim(), " and ", other.dim());
    int64_t d = dim ? wrap_dim(*dim, input.dim()) : first_dim_of_three(input);
    CHECK(input.dim() > 0 && input.size(d) == 3 && other.size(d) == 3, "inputs dimension ", d,
          " must have length 3. Got ", input.sizes(), " and ", other.sizes());
    Tensor a[3], b[3];
    for (int i = 0; i < 3; ++i) {
      a[i] = select(input, d, i);
      b[i] = select(other, d, i);
    }
    const Tensor products[] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                               a[0] * b[1] - a[1] * b[0]};
    return stack(products, d);
  },
})

OP(kron, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The Kronecker product: blocks of other, each times one element of input.

Example:
    >>> torch.kron(torch.tensor([1, 2]), torch.tensor([1, 1, 1]))
    tensor([1, 1, 1, 2, 2, 2]))",
  .forward = [](const Tensor& input, const Tensor& other) {
    size_t dims = std::max(input.sizes().size(), other.sizes().size());
    Shape left = with_dims(input.sizes(), dims), right = with_dims(other.sizes(), dims);
    Shape rows, blocks, result;
    for (size_t d = 0; d < dims; ++d) {
      rows.push_back(left[d]);
      rows.push_back(1);
      blocks.push_back(1);
      blocks.push_back(right[d]);
      result.push_back(left[d] * right[d]);
    }
    CHECK(rows.size() <= kMaxDims, "inputs of ", dims, " dims need ", rows.size(),
          " dims on the way, and tensors have at most ", int64_t(kMaxDims));
    return reshape(reshape(input, rows) * reshape(other, blocks), result);
  },
})

OP(trace, "(Tensor input) -> Tensor", {
  .doc     = R"(The sum of the diagonal of a matrix.)",
  .forward = [](const Tensor& input) {
    CHECK(input.dim() == 2, "expected a matrix, but got tensor with dim ", input.dim());
    return sum(call<"diagonal", Tensor>(input, int64_t(0), int64_t(0), int64_t(1)));
  },
})

OP(vander, "(Tensor x, int? N=None, bool increasing=False) -> Tensor", {
  .doc     = R"(The powers of a vector as columns, the highest first: shape (len(x), N).

N is len(x) unless given. Integers have powers in int64.

Example:
    >>> torch.vander(torch.tensor([1, 2, 3]), 3)
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]]))",
  .forward = [](const Tensor& x, std::optional<int64_t> N, bool increasing) {
    CHECK(x.dim() == 1, "x must be a one-dimensional tensor, but has shape ", x.sizes());
    int64_t columns = N.value_or(x.size(0));
    CHECK(columns >= 0, "N must be non-negative, but is ", columns);
    DType dtype = is_integral(x.dtype()) || is_bool(x.dtype()) ? DType::int64 : x.dtype();
    Tensor base = unsqueeze(cast(x, dtype), 1);
    Tensor result = full(Shape{x.size(0), std::min<int64_t>(columns, 1)}, 1, dtype, x.device());
    if (columns > 1) {
      Tensor powers = call<"cumprod", Tensor>(expand(base, Shape{x.size(0), columns - 1}),
                                              int64_t(1), std::optional<DType>());
      const Tensor both[] = {result, powers};
      result = cat(both, 1);
    }
    const int64_t last[] = {1};
    return increasing ? result : call<"flip", Tensor>(result, ShapeRef(last));
  },
})

}  // namespace rushlight
