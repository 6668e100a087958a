// Owns the Kronecker product and the trace of matrices.
#include "core/ops/op.h"

namespace rushlight {
namespace {

// Ones in front until there are `dims` dims.
Shape with_dims(const Shape& sizes, size_t dims) {
  Shape padded(dims - sizes.size(), 1);
  for (int64_t size : sizes) padded.push_back(size);
  return padded;
}

}  // namespace

OP(kron, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The Kronecker product: blocks of other, each times one element of input.

Example:
    >>> torch.kron(torch.tensor([1, 2]), torch.tensor([1, 1, 1]))
    tensor([1, 1, 1, 2, 2, 2]))",
  .forward = [](const Tensor& input, const Tensor& other) {
    size_t dims = std::max(input.sizes().size(), other.sizes().size());
    Shape left = with_dims(input.sizes(), dims), right = with_dims(other.sizes(), dims);
    Shape rows, blocks;
    for (size_t d = 0; d < dims; ++d) {
      rows.push_back(left[d]);
      rows.push_back(1);
      blocks.push_back(1);
      blocks.push_back(right[d]);
    }
    CHECK(rows.size() <= kMaxDims, "inputs of ", dims, " dims need ", rows.size(),
          " dims on the way, and tensors have at most ", int64_t(kMaxDims));
    Tensor products = reshape(input, rows) * reshape(other, blocks);
    Shape result;  // the sizes of the product fit, so those of pairs of dims do
    for (size_t d = 0; d < dims; ++d) result.push_back(left[d] * right[d]);
    return reshape(products, result);
  },
})

OP(trace, "(Tensor input) -> Tensor", {
  .doc     = R"(The sum of the diagonal of a matrix.)",
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input) {
    CHECK(input.dim() == 2, "expected a matrix, but got tensor with dim ", input.dim());
    return sum(call<"diagonal", Tensor>(input, int64_t(0), int64_t(0), int64_t(1)));
  },
})

}  // namespace rushlight
