// Defines reductions: the shapes and dtypes of their results, what they are over no elements, and
// the choice of the device's loop.
#include "core/tensor/reduce.h"

#include <limits>

#include "core/tensor/dims.h"
#include "core/tensor/fusion.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/reduce_split.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

bool is_extreme(Reduction r) {
  using enum Reduction;
  return r == maximum || r == minimum || r == indexed_maximum || r == indexed_minimum ||
         r == norm_max || r == norm_min;
}

// Whether the result of a single element is that element.
bool keeps_one(Reduction r) {
  using enum Reduction;
  return r == sum || r == mean || r == product || r == maximum || r == minimum ||
         r == indexed_maximum || r == indexed_minimum;
}

void fill_from_nothing(Reduction reduction, const Tensor& result) {
  using enum Reduction;
  CHECK(!is_extreme(reduction), ErrorKind::kIndex,
        "the reduced dims hold no elements, and an extreme of nothing does not exist");
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double value = reduction == product                                                   ? 1
                 : reduction == log_sum_exp                                             ? -inf
                 : reduction == mean || reduction == variance || reduction == deviation ? nan
                                                                                        : 0;
  copy_into(result, scalar_tensor(value, result.dtype()));
}

void run_reduce(Reduction reduction, const Tensor& input, DimSet dims, DType dtype,
                double parameter, const Tensor& first, const Tensor& second) {
  reducer_of(reduction, dtype);
  if (first.numel() == 0) return;
  if (input.numel() == 0) {
    fill_from_nothing(reduction, first);
    if (second.defined()) fill_from_nothing(reduction, second);
    return;
  }
  if (keeps_one(reduction) && reduced_numel(input.sizes(), dims) == 1) {
    copy_into(alias(first, input.sizes(), contiguous_strides(input.sizes()), 0), input);
    if (second.defined()) copy_into(second, scalar_tensor(0, second.dtype()));
    return;
  }
  DType compute = dtype_of_compute(compute_of(dtype));
  switch (input.device().type) {
    case DeviceType::cpu:
      return run_reduce_cpu(reduction, input, dims, compute, parameter, first, second);
    case DeviceType::cuda:
      return run_reduce_cuda(reduction, input, dims, compute, parameter, first, second);
    case DeviceType::meta: return;
  }
}

}  // namespace

DimSet reduced_dims(std::optional<ShapeRef> dim, int64_t ndim) {
  CHECK(ndim <= kMaxDims, "only tensors with up to ", kMaxDims, " dims are supported, got ", ndim);
  DimSet set;
  if (!dim || dim->empty()) {
    for (int64_t d = 0; d < ndim; ++d) set.set(size_t(d));
    return set;
  }
  for (int64_t d : *dim) {
    size_t wrapped = size_t(wrap_dim(d, ndim));
    CHECK(!set[wrapped], "dim ", wrapped, " appears multiple times in the list of dims");
    set.set(wrapped);
  }
  return set;
}

Shape reduced_sizes(ShapeRef sizes, DimSet dims, bool keepdim) {
  Shape out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!dims[d]) out.push_back(sizes[d]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

int64_t reduced_numel(ShapeRef sizes, DimSet dims) {
  int64_t numel = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (dims[d]) numel *= sizes[d];
  return numel;
}

ReduceSplit split_dims(const Tensor& input, DimSet reduced) {
  ReduceSplit split;
  Shape sizes = input.sizes(), strides = input.strides(), output_strides(sizes.size());
  int64_t output_stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (reduced[d]) continue;
    output_strides[d] = output_stride;
    output_stride *= sizes[d];
  }
  Shape* lanes[] = {&strides, &output_strides};
  join_dims(sizes, lanes);
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool is_reduced = output_strides[d] == 0;
    (is_reduced ? split.reduced : split.outputs)
        .add(sizes[d], strides[d] * int64_t(input.itemsize()));
    if (!is_reduced) split.output_strides.push_back(output_strides[d]);
  }
  split.reduced_is_nearest = sizes.empty() || output_strides.back() == 0;
  return split;
}

Tensor reduce(Reduction reduction, const Tensor& input, DimSet dims, bool keepdim, DType dtype,
              double parameter) {
  Shape sizes = reduced_sizes(input.sizes(), dims, keepdim);
  if (is_fusing()) [[unlikely]]
    if (Tensor deferred = defer({reduction, dims, dtype, parameter}, input, sizes);
        deferred.defined())
      return deferred;
  Tensor result = empty(sizes, dtype, input.device());
  run_reduce(reduction, input, dims, dtype, parameter, result, {});
  return result;
}

Tensor count_nonzero(const Tensor& input, DimSet dims) {
  if (!input.device().is_cpu() || is_complex(input.dtype()))
    return reduce(Reduction::sum, to_dtype(input, DType::bool_), dims, false, DType::int64);
  Tensor result = empty(reduced_sizes(input.sizes(), dims, false), DType::int64);
  run_reduce(Reduction::count, input, dims, input.dtype(), 0, result, {});
  return result;
}

std::pair<Tensor, Tensor> reduce_pair(Reduction reduction, const Tensor& input, DimSet dims,
                                      bool keepdim, DType dtype, double parameter) {
  bool indexed = reduction == Reduction::indexed_maximum || reduction == Reduction::indexed_minimum;
  Shape sizes = reduced_sizes(input.sizes(), dims, keepdim);
  Tensor first = empty(sizes, dtype, input.device());
  Tensor second = empty(sizes, indexed ? DType::int64 : dtype, input.device());
  // Positions over several dims count in row-major order, which the loop keeps for such a tensor.
  run_reduce(reduction, indexed && dims.count() > 1 ? to_contiguous(input) : input, dims, dtype,
             parameter, first, second);
  return {first, second};
}

}  // namespace rushlight
