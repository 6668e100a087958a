// Defines what the families of reductions share.
#include "core/ops/reduce/reduce.h"

#include "core/ops/ops.h"

namespace rushlight {

DType sum_dtype(const Tensor& input, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return is_differentiable(input.dtype()) ? input.dtype() : DType::int64;
}

DType mean_dtype(const Tensor& input, std::optional<DType> dtype) {
  if (dtype) {
    CHECK(is_differentiable(*dtype),
          "could not infer output dtype. Optional dtype must be either a "
          "floating point or complex dtype. Got: ",
          dtype_name(*dtype));
    return *dtype;
  }
  CHECK(is_differentiable(input.dtype()),
        "could not infer output dtype. Input dtype must be either a "
        "floating point or complex dtype. Got: ",
        dtype_name(input.dtype()), ". Use input.float(), or pass dtype=float32.");
  return input.dtype();
}

void check_extreme_exists(const Tensor& input, Dims dim, ErrorKind kind) {
  if (input.numel() != 0) return;
  bool all = !dim || dim->empty();
  CHECK(!all,
        "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
        "dim with the 'dim' argument.");
  for (int64_t d : *dim)
    CHECK(input.size(d) != 0, kind, "Expected reduction dim ", wrap_dim(d, input.dim()),
          " to have non-zero size.");
}

Tensor restore_dims(const Tensor& result, const Shape& shape, const KeptDims& dim, bool keepdim) {
  if (keepdim) return result;
  DimSet dims = reduced_dims(as_ref(dim), int64_t(shape.size()));
  if (dims.count() == shape.size()) return result;  // 0-d broadcasts as it is
  return reshape(result, reduced_sizes(shape, dims, true));
}

Tensor spread(const Tensor& g, const Shape& shape, const KeptDims& dim, bool keepdim) {
  return expand(restore_dims(g, shape, dim, keepdim), shape);
}

Tensor share_among_equal(const Tensor& g, const Tensor& input, const Tensor& result,
                         const KeptDims& dim, bool keepdim) {
  Tensor equal = input == restore_dims(result, input.sizes(), dim, keepdim);
  Tensor count = sum(equal, dim ? ShapeRef(*dim) : ShapeRef(), true);
  return restore_dims(g, input.sizes(), dim, keepdim) * equal / count;
}

int64_t count_of(const Shape& shape, const KeptDims& dim) {
  return reduced_numel(shape, reduced_dims(as_ref(dim), int64_t(shape.size())));
}

}  // namespace rushlight
