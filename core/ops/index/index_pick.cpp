// Defines what index tensors name, and hands reading and writing to the device's kernels.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "core/ops/index/index.h"
#include "core/ops/index/index_loops.h"
#include "core/tensor/dims.h"
#include "core/tensor/memory_order.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// An index may lie on the CPU wherever the tensor is.
Tensor beside(const Tensor& index, const Tensor& input) {
  if (index.device() == input.device()) return index;
  CHECK(index.device().is_cpu(),
        "indices should be either on cpu or on the same device as the "
        "indexed tensor (",
        input.device(), "), but are on ", index.device());
  Tensor there = empty(index.sizes(), index.dtype(), input.device());
  copy_into(there, index);
  return there;
}

// The index tensors by dim of input, masks replaced by the places of their true elements.
std::vector<Tensor> by_dim(const Tensor& input, TensorList indices) {
  std::vector<Tensor> out;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      out.emplace_back();
    } else if (is_mask(index)) {
      Tensor places = nonzero_places(beside(index, input));
      for (int64_t d = 0; d < index.dim(); ++d) {
        int64_t dim = int64_t(out.size());
        CHECK(dim < input.dim() && index.size(d) == input.size(dim), ErrorKind::kIndex,
              "The shape of the mask ", index.sizes(), " at index ", d,
              " does not match the shape of the indexed tensor ", input.sizes(), " at index ", dim);
        out.push_back(alias(places, Shape{places.size(0)}, Shape{1}, d * places.size(0)));
      }
    } else {
      CHECK(is_integral(index.dtype()), ErrorKind::kIndex,
            "tensors used as indices must be long, int, byte or bool tensors, got ",
            dtype_name(index.dtype()));
      out.push_back(beside(to_dtype(index, DType::int64), input));
    }
  }
  CHECK(int64_t(out.size()) <= input.dim(), ErrorKind::kIndex,
        "too many indices for tensor of dimension ", input.dim(), " (got ", out.size(), ")");
  return out;
}

Shape broadcast_indices(const Shape& a, const Shape& b) {
  try {
    return broadcast_shapes(a, b);
  } catch (const Error&) {
    CHECK(false, ErrorKind::kIndex,
          "shape mismatch: indexing tensors could not be broadcast together "
          "with shapes ",
          a, ", ", b);
    __builtin_unreachable();
  }
}

Tensor read_row_major(const Tensor& input, const Picked& picked) {
  Tensor out = empty(picked.sizes(), input.dtype(), input.device());
  if (out.numel() == 0 || out.device().is_meta()) return out;
  (out.device().is_cuda() ? read_picked_cuda : read_picked_cpu)(input, picked, out);
  return out;
}

}  // namespace

Shape Picked::sizes() const {
  Shape out = before;
  for (int64_t size : shape) out.push_back(size);
  for (int64_t size : after) out.push_back(size);
  return out;
}

Picked pick(const Tensor& input, TensorList indices, bool checked) {
  std::vector<Tensor> index = by_dim(input, indices);
  index.resize(size_t(input.dim()));
  Picked picked;
  bool any = false, adjacent = true;
  size_t last = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!index[d].defined()) continue;
    if (any) {
      adjacent &= last + 1 == d;
      picked.shape = broadcast_indices(picked.shape, index[d].sizes());
    } else {
      picked.shape = index[d].sizes();
    }
    any = true;
    last = d;
  }
  CHECK(any, ErrorKind::kIndex, "at least one index must be a tensor");
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d].defined()) continue;
    bool in_front = adjacent && d < last;
    (in_front ? picked.before : picked.after).push_back(input.sizes()[d]);
    (in_front ? picked.before_strides : picked.after_strides).push_back(input.strides()[d]);
  }
  checked_numel(picked.sizes());
  int64_t count = checked_numel(picked.shape);
  picked.offsets = empty(Shape{count}, DType::int64, input.device());
  if (count == 0 || input.device().is_meta()) return picked;
  bool masks_only = true;
  for (const Tensor& given : indices) masks_only &= !given.defined() || is_mask(given);
  picked.distinct = masks_only && std::ranges::count_if(indices, &Tensor::defined) == 1;
  bool is_first = true, is_only = std::ranges::count_if(index, &Tensor::defined) == 1;
  if (input.device().is_cuda()) copy_into(picked.offsets, scalar_tensor(int64_t(0), DType::int64));
  for (size_t d = 0; d < index.size(); ++d) {
    if (!index[d].defined()) continue;
    int64_t size = input.sizes()[d], stride = input.strides()[d];
    if (is_only && stride == 1 && index[d].device().is_cpu() && are_places_cpu(index[d], size)) {
      picked.offsets = alias(index[d], Shape{count}, Shape{1}, index[d].offset());
    } else if (!input.device().is_cuda()) {
      add_offsets_cpu(picked.offsets, picked.shape, index[d], d, size, stride,
                      std::exchange(is_first, false));
    } else {
      if (!checked && !masks_only) check_bounds(index[d], -size, size, d, size);
      add_offsets_cuda(picked.offsets, picked.shape, index[d], size, stride);
    }
    picked.reach += (size - 1) * stride;
    picked.unit = std::gcd(picked.unit, stride);
  }
  return picked;
}

Tensor read_picked(const Tensor& input, const Picked& picked) {
  if (input.numel() == 0 ||
      std::is_sorted(picked.after_strides.begin(), picked.after_strides.end(), std::greater()))
    return read_row_major(input, picked);
  // Dims after the picked ones lie in the result as they do in the input.
  Shape inner = strides_after(alias(input, picked.after, picked.after_strides, input.offset()));
  Shape order(inner.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return inner[size_t(a)] > inner[size_t(b)]; });
  Picked ordered = picked;
  for (size_t i = 0; i < order.size(); ++i) {
    ordered.after[i] = picked.after[size_t(order[i])];
    ordered.after_strides[i] = picked.after_strides[size_t(order[i])];
  }
  Tensor out = read_row_major(input, ordered);
  Shape strides = out.strides();
  std::copy(inner.begin(), inner.end(), strides.end() - inner.size());
  return alias(out, picked.sizes(), strides, 0);
}

void write_picked(const Tensor& input, const Picked& picked, const Tensor& values,
                  bool accumulate) {
  Shape sizes = picked.sizes();
  check_expands(values.sizes(), sizes);
  if (checked_numel(sizes) == 0 || input.device().is_meta()) return;
  if (may_overlap(input, picked.offsets)) {
    Picked apart = picked;
    apart.offsets = clone_dense(picked.offsets);
    return write_picked(input, apart, values, accumulate);
  }
  Tensor source =
      to_dtype(may_overlap(input, values) ? clone_dense(values) : values, input.dtype());
  if (source.device() != input.device()) {
    CHECK(source.device().is_cpu() && source.dim() == 0,
          "Expected all tensors to be on the same device, but found at least two devices, ",
          input.device(), " and ", source.device(), "!");
    Tensor there = empty(source.sizes(), source.dtype(), input.device());
    copy_into(there, source);
    source = there;
  }
  if (input.device().is_cuda())
    write_picked_cuda(input, picked, source, accumulate ? Scatter::add : Scatter::write);
  else write_picked_cpu(input, picked, source, accumulate);
}

void check_index_vector(const Tensor& index) {
  CHECK(index.dim() <= 1, ErrorKind::kIndex, "Index is supposed to be a vector, but got shape ",
        index.sizes());
  CHECK(index.dtype() == DType::int64 || index.dtype() == DType::int32,
        "Expected dtype int32 or int64 for index, got ", dtype_name(index.dtype()));
}

void check_has_values(const Tensor& tensor) {
  CHECK(!tensor.device().is_meta(), ErrorKind::kNotImplemented,
        "not implemented for tensors on meta, whose shape would depend on values.");
}

Tensor nonzero_places(const Tensor& input) {
  check_has_values(input);
  Tensor flags = to_dtype(to_contiguous(input), DType::bool_);
  return input.device().is_cuda() ? nonzero_places_cuda(flags) : nonzero_places_cpu(flags);
}

Bounds bounds_of(const Tensor& numbers) {
  if (numbers.device().is_cuda()) return bounds_of_cuda(numbers);
  Bounds bounds;
  index_loops().bounds(numbers.data<int64_t>(), numbers.numel(), &bounds.least, &bounds.greatest);
  return bounds;
}

void check_bounds(const Tensor& index, int64_t first, int64_t end, size_t dim, int64_t size) {
  if (index.numel() == 0 || index.device().is_meta()) return;
  Tensor numbers = to_contiguous(index);
  if (leaves_check_to_device(numbers, first, end)) return;
  Bounds bounds = bounds_of(numbers);
  if (bounds.least < first) refuse_index(bounds.least, dim, size);
  if (bounds.greatest >= end) refuse_index(bounds.greatest, dim, size);
}

void refuse_index(int64_t index, size_t dim, int64_t size) {
  CHECK(false, ErrorKind::kIndex, "index ", index, " is out of bounds for dimension ", dim,
        " with size ", size);
  __builtin_unreachable();
}

}  // namespace rushlight
