// Owns the ops that make tensors from sizes and numbers, and those that fill tensors with a number.
// Sequences are in sequence.cpp, random numbers in random.cpp; tensors from Python data are the
// bindings' business.
#include <cstring>

#include "core/device/cuda.h"
#include "core/device/threads.h"
#include "core/ops/lift.h"
#include "core/ops/op.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/default_device.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 32768;  // elements that are worth a thread

// Uninitialized, in the layout of input unless another is asked for.
Tensor fresh_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                  std::optional<MemoryFormat> format) {
  MemoryFormat order = format.value_or(MemoryFormat::preserve);
  Shape strides =
      order == MemoryFormat::preserve ? strides_after(input) : strides_for(input.sizes(), order);
  return empty_strided(input.sizes(), strides, dtype.value_or(input.dtype()),
                       device.value_or(input.device()));
}

// The elements of an expanded tensor, each once.
Tensor without_repeats(const Tensor& tensor) {
  if (!has_internal_overlap(tensor)) return tensor;
  Shape sizes = tensor.sizes();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (tensor.strides()[d] == 0 && sizes[d] > 1) sizes[d] = 1;
  return alias(tensor, sizes, tensor.strides(), tensor.offset());
}

// A fresh or dense tensor of zeros: all dtypes have zero as zero bytes.
Tensor cleared(const Tensor& tensor) {
  if (tensor.device().is_meta()) return tensor;
  if (tensor.device().is_cuda()) {
    cuda::fill_bytes(tensor.address(), tensor.device(), 0,
                     size_t(tensor.numel()) * tensor.itemsize());
    return tensor;
  }
  char* data = tensor.data<char>();
  parallel_for(
      0, tensor.numel() * int64_t(tensor.itemsize()), 4 * kGrain,
      [=](int64_t begin, int64_t end) { std::memset(data + begin, 0, size_t(end - begin)); });
  return tensor;
}

Tensor filled(const Tensor& tensor, const Scalar& value) {
  copy_into(without_repeats(tensor), scalar_tensor(value, tensor.dtype()));
  return tensor;
}

DType dtype_for(const Scalar& value) {
  DType dtype = value.dtype();
  if (is_complex(dtype)) return complex_dtype(default_dtype());
  return is_floating(dtype) ? default_dtype() : dtype;
}

// Uninitialized, with the dtype and on the device of input unless told otherwise.
Tensor fresh_beside(const Tensor& input, ShapeRef size, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return fresh(size, dtype.value_or(input.dtype()), device.value_or(input.device()));
}

}  // namespace

OP(empty, "(int[] size, *, dtype? dtype=None, device? device=None, "
          "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(A tensor of undefined values, row-major unless memory_format is another.)",
  .forward = [](ShapeRef size, std::optional<DType> dtype, std::optional<Device> device,
                std::optional<MemoryFormat> memory_format) {
    MemoryFormat format = memory_format.value_or(MemoryFormat::contiguous);
    if (format == MemoryFormat::contiguous) return fresh(size, dtype, device);
    CHECK(format != MemoryFormat::preserve, "preserve memory format is unsupported here: there is "
          "no tensor whose format could be preserved. Use torch.empty_like.");
    return rushlight::empty_strided(size, strides_for(size, format),
                                    dtype.value_or(default_dtype()),
                                    device.value_or(default_device()));
  },
})

OP(empty_strided, "(int[] size, int[] stride, *, dtype? dtype=None, "
                  "device? device=None) -> Tensor", {
  .doc     = R"(A tensor of undefined values with the given strides.)",
  .forward = [](ShapeRef size, ShapeRef stride, std::optional<DType> dtype,
                std::optional<Device> device) {
    return rushlight::empty_strided(size, stride, dtype.value_or(default_dtype()),
                                    device.value_or(default_device()));
  },
})

OP(empty_permuted, "(int[] size, int[] physical_layout, *, dtype? dtype=None, "
                   "device? device=None) -> Tensor", {
  .doc     = R"(A tensor of undefined values whose dims lie in memory in a given order.

physical_layout lists them, the outermost first.)",
  .forward = [](ShapeRef size, ShapeRef physical_layout, std::optional<DType> dtype,
                std::optional<Device> device) {
    CHECK(physical_layout.size() == size.size(),
          "Number of dimensions in size does not match the length of the physical_layout; i.e. "
          "len(size) = ",
          size.size(), " is not equal to len(physical_layout) = ", physical_layout.size());
    for (int64_t dim : physical_layout)
      CHECK(dim >= 0 && dim < int64_t(size.size()),
            "Dimension out of range (expected to be between 0 and ", int64_t(size.size()) - 1,
            ", but got ", dim, "). Negative dims are not taken.");
    Shape order = unique_dims(physical_layout, int64_t(size.size())), sizes, strides(size.size());
    for (int64_t dim : order) sizes.push_back(size[size_t(dim)]);
    Shape steps = contiguous_strides(sizes);
    for (size_t d = 0; d < order.size(); ++d) strides[size_t(order[d])] = steps[d];
    return rushlight::empty_strided(size, strides, dtype.value_or(default_dtype()),
                                    device.value_or(default_device()));
  },
})

OP(zeros, "(int[] size, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A tensor of zeros.)",
  .forward = [](ShapeRef size, std::optional<DType> dtype, std::optional<Device> device) {
    return cleared(fresh(size, dtype, device));
  },
})

OP(ones, "(int[] size, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A tensor of ones.)",
  .forward = [](ShapeRef size, std::optional<DType> dtype, std::optional<Device> device) {
    return filled(fresh(size, dtype, device), 1);
  },
})

OP(full, "(int[] size, Scalar fill_value, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A tensor filled with one value; dtype follows the value unless given.)",
  .forward = [](ShapeRef size, Scalar fill_value, std::optional<DType> dtype,
                std::optional<Device> device) {
    return filled(fresh(size, dtype.value_or(dtype_for(fill_value)), device), fill_value);
  },
})

OP(scalar_tensor, "(Scalar s, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A 0-d tensor of one number.)",
  .forward = [](Scalar s, std::optional<DType> dtype, std::optional<Device> device) {
    return filled(fresh({}, dtype, device), s);
  },
})

OP(empty_like, "(Tensor input, *, dtype? dtype=None, device? device=None, "
               "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(A tensor of undefined values in the shape of input.)",
  .variants = function,
  .seen    = Seen::whole,
  .sparse  = sparse_empty_like,
  .forward = [](const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                std::optional<MemoryFormat> memory_format) {
    return per_sample(fresh_like(input, dtype, device, memory_format), input);
  },
})

OP(zeros_like, "(Tensor input, *, dtype? dtype=None, device? device=None, "
               "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(A tensor of zeros in the shape of input.)",
  .variants = function,
  .seen    = Seen::whole,
  .sparse  = sparse_zeros_like,
  .forward = [](const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                std::optional<MemoryFormat> memory_format) {
    return per_sample(cleared(fresh_like(input, dtype, device, memory_format)), input);
  },
})

OP(ones_like, "(Tensor input, *, dtype? dtype=None, device? device=None, "
              "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(A tensor of ones in the shape of input.)",
  .variants = function,
  .seen    = Seen::whole,
  .sparse  = sparse_ones_like,
  .forward = [](const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                std::optional<MemoryFormat> memory_format) {
    return per_sample(filled(fresh_like(input, dtype, device, memory_format), 1), input);
  },
})

OP(full_like, "(Tensor input, Scalar fill_value, *, dtype? dtype=None, device? device=None, "
              "memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(A tensor filled with one value in the shape of input.)",
  .variants = function,
  .seen    = Seen::whole,
  .sparse  = sparse_full_like,
  .forward = [](const Tensor& input, Scalar fill_value, std::optional<DType> dtype,
                std::optional<Device> device, std::optional<MemoryFormat> memory_format) {
    return per_sample(filled(fresh_like(input, dtype, device, memory_format), fill_value), input);
  },
})

OP(new_empty, "(Tensor input, int[] size, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A tensor of undefined values with the dtype of input.)",
  .variants = method,
  .seen    = Seen::whole,
  .sparse  = sparse_new_zeros,
  .forward = [](const Tensor& input, ShapeRef size, std::optional<DType> dtype,
                std::optional<Device> device) {
    return per_sample(fresh_beside(input, size, dtype, device), input);
  },
})

OP(new_empty_strided, "(Tensor input, int[] size, int[] stride, *, dtype? dtype=None, "
                      "device? device=None) -> Tensor", {
  .doc     = R"(A tensor of undefined values with given steps in memory and the dtype of input.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, ShapeRef size, ShapeRef stride, std::optional<DType> dtype,
                std::optional<Device> device) {
    return per_sample(rushlight::empty_strided(size, stride, dtype.value_or(input.dtype()),
                                    device.value_or(input.device())), input);
  },
})

OP(new_zeros, "(Tensor input, int[] size, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A tensor of zeros with the dtype of input.)",
  .variants = method,
  .seen    = Seen::whole,
  .sparse  = sparse_new_zeros,
  .forward = [](const Tensor& input, ShapeRef size, std::optional<DType> dtype,
                std::optional<Device> device) {
    return per_sample(cleared(fresh_beside(input, size, dtype, device)), input);
  },
})

OP(new_ones, "(Tensor input, int[] size, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A tensor of ones with the dtype of input.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, ShapeRef size, std::optional<DType> dtype,
                std::optional<Device> device) {
    return per_sample(filled(fresh_beside(input, size, dtype, device), 1), input);
  },
})

OP(new_full, "(Tensor input, int[] size, Scalar fill_value, *, dtype? dtype=None, "
             "device? device=None) -> Tensor", {
  .doc     = R"(A tensor filled with one value with the dtype of input.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, ShapeRef size, Scalar fill_value, std::optional<DType> dtype,
                std::optional<Device> device) {
    return per_sample(filled(fresh_beside(input, size, dtype, device), fill_value), input);
  },
})

OP(eye, "(int n, int? m=None, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(The n x m matrix with ones on the diagonal; m is n unless given.)",
  .forward = [](int64_t n, std::optional<int64_t> m, std::optional<DType> dtype,
                std::optional<Device> device) {
    int64_t columns = m.value_or(n);
    CHECK(n >= 0 && columns >= 0, "n and m must be greater or equal to 0, got ", n, " and ",
          columns);
    Tensor out = cleared(fresh(Shape{n, columns}, dtype, device));
    filled(alias(out, Shape{std::min(n, columns)}, Shape{columns + 1}, 0), 1);
    return out;
  },
})

OP(fill_, "(Tensor! input, Scalar value) -> Tensor", {
  .doc     = R"(Sets all elements to one value.)",
  .fills   = true,
  .sparse  = by_forward,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Scalar value) {
    filled(input.is_sparse() ? entries_to_fill(input) : input, value);
    return input;
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

OP(fill_tensor_, "fill_.Tensor(Tensor! input, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(Sets all elements to the value of a 0-d tensor.)",
  .sparse  = by_forward,
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& value) {
    return copy_(input, batch.has("value") ? Batch::padded(value, batch.rank("input")) : value);
  },
  .forward = [](const Tensor& input, const Tensor& value) {
    CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
          value.dim(), " dimensions.");
    copy_into(input.is_sparse() ? entries_to_fill(input) : input, value);
    return input;
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); }),
                   d<"value">([](const Tensor& g) { return g; })),
})

OP(fill, "(Tensor input, Scalar value) -> Tensor", {
  .doc     = R"(A copy of input with all elements set to one value.)",
  .variants = function,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, Scalar value) {
    return call<"fill_", Tensor>(clone(input), value);
  },
})

OP(fill_tensor, "fill.Tensor(Tensor input, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(A copy of input with all elements set to the value of a 0-d tensor.)",
  .variants = function,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& value) {
    return call<"fill_tensor_", Tensor>(copy_to_write(input, {value}), value);
  },
})

OP(fill_diagonal_, "(Tensor! input, Scalar fill_value, bool wrap=False) -> Tensor", {
  .doc     = R"(Sets the elements whose indices are all equal to one value.

With wrap=True a matrix of more rows than columns has a further diagonal after each one and a row.

Example:
    >>> torch.zeros(5, 2).fill_diagonal_(1, wrap=True).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])",
  .variants = method,
  .forward = [](const Tensor& input, Scalar fill_value, bool wrap) {
    CHECK(input.dim() >= 2, "dimensions must larger than 1, got shape ", input.sizes());
    int64_t length = *std::min_element(input.sizes().begin(), input.sizes().end()), stride = 0;
    for (int64_t d = 0; d < input.dim(); ++d) {
      CHECK(input.dim() == 2 || input.size(d) == length,
            "all dimensions of input must be of equal length, got shape ", input.sizes());
      stride += input.stride(d);
    }
    Tensor diagonal = as_strided(input, Shape{length}, Shape{stride});
    call<"fill_", Tensor>(diagonal, fill_value);
    if (!wrap || input.dim() > 2 || length == 0) return input;
    for (int64_t row = length + 1; row < input.size(0); row += length + 1) {
      Tensor rest = slice(input, 0, row, input.size(0), 1);
      call<"fill_diagonal_", Tensor>(rest, fill_value, false);
    }
    return input;
  },
})

OP(zero_, "(Tensor! input) -> Tensor", {
  .doc     = R"(Sets all elements to zero.)",
  .fills   = true,
  .sparse  = by_forward,
  .batch   = by_elements,
  .forward = [](const Tensor& input) {
    if (input.is_sparse()) {
      take_parts(input, zeros_like(input));
      return input;
    }
    return input.is_dense() ? cleared(input) : filled(input, 0);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

}  // namespace rushlight
