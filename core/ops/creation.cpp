// Owns the ops that make tensors from sizes and numbers, and those that fill tensors with a number.
// Random ones are in random.cpp; tensors from Python data are the bindings' business.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/device/cuda.h"
#include "core/device/threads.h"
#include "core/ops/lift.h"
#include "core/ops/op.h"
#include "core/ops/random/generate.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/default_device.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 32768;  // elements that are worth a thread

Tensor fresh(ShapeRef size, std::optional<DType> dtype, std::optional<Device> device) {
  return empty(size, dtype.value_or(default_dtype()), device.value_or(default_device()));
}

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

template <class Sequence>
Tensor generated(const Tensor& out, const Sequence& sequence) {
  if (out.device().is_cpu()) generate_cpu(out, sequence);
  else if (out.device().is_cuda()) generate_cuda(out, sequence);
  return out;
}

Scalar as_integer(const Scalar& number) {
  double value = number.to<double>();
  CHECK(number.is_integral() || (value >= -0x1p63 && value < 0x1p63), "unsupported range: ", number,
        " is no int64");
  return number.to<int64_t>();
}

// How many of start, start + step, ... lie before end.
int64_t range_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  CHECK(!start.is_complex() && !end.is_complex() && !step.is_complex(), ErrorKind::kNotImplemented,
        "not implemented for complex numbers");
  double first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
  CHECK(by != 0, "step must be nonzero");
  CHECK(std::isfinite(first) && std::isfinite(last) && !std::isnan(by),
        "unsupported range: ", start, " to ", end, " by ", step);
  CHECK(by > 0 ? last >= first : last <= first,
        "upper bound and lower bound inconsistent with step "
        "sign: ",
        start, " to ", end, " by ", step);
  if (start.is_integral() && end.is_integral() && step.is_integral()) {
    __int128 distance = __int128(end.to<int64_t>()) - start.to<int64_t>(), s = step.to<int64_t>();
    __int128 length = distance / s + (distance % s != 0);
    CHECK(length <= INT64_MAX, "invalid size, possible overflow: ", start, " to ", end, " by ",
          step);
    return int64_t(length);
  }
  double length = std::ceil((last - first) / by);
  CHECK(length < 0x1p63, "invalid size, possible overflow: ", start, " to ", end, " by ", step);
  return int64_t(length);
}

Tensor range(Scalar start, Scalar end, Scalar step, std::optional<DType> dtype,
             std::optional<Device> device) {
  bool integral = start.is_integral() && end.is_integral() && step.is_integral();
  DType type = dtype.value_or(integral ? DType::int64 : default_dtype());
  CHECK(!is_bool(type) && !is_complex(type), ErrorKind::kNotImplemented, "not implemented for ",
        dtype_name(type));
  if (type == DType::int64)
    for (Scalar* number : {&start, &end, &step}) *number = as_integer(*number);
  Tensor out = fresh(Shape{range_length(start, end, step)}, type, device);
  return generated(out, Range{uint64_t(start.to<int64_t>()), uint64_t(step.to<int64_t>()),
                              start.to<double>(), step.to<double>()});
}

// `steps` numbers from start to end, both exact, or the powers of a base with such exponents.
Tensor spaced(const Scalar& start, const Scalar& end, int64_t steps, std::optional<double> base,
              std::optional<DType> dtype, std::optional<Device> device) {
  CHECK(steps >= 0, "number of steps must be non-negative, got ", steps);
  bool from_complex = start.is_complex() || end.is_complex();
  if (from_complex || (dtype && is_complex(*dtype))) {
    DType type = dtype.value_or(complex_dtype(default_dtype()));
    CHECK(is_complex(type), "complex numbers do not fit into dtype ", dtype_name(type),
          ". Use a complex dtype.");
    auto first = start.to<std::complex<double>>(), last = end.to<std::complex<double>>();
    auto along = [&](double from, double to) {
      return spaced(from, to, steps, std::nullopt, real_dtype(type), device);
    };
    Tensor line =
        call<"complex", Tensor>(along(first.real(), last.real()), along(first.imag(), last.imag()));
    return base ? pow(wrapped_number(*base), line) : line;
  }
  Tensor out = fresh(Shape{steps}, dtype, device);
  double first = start.to<double>(), last = end.to<double>();
  if (is_integral(out.dtype())) first = std::trunc(first), last = std::trunc(last);
  if (steps == 1) last = first;
  double by = steps > 1 ? (last - first) / double(steps - 1) : 0;
  if (out.dtype() == DType::float32) {  // ends and step are of the dtype, too
    float from = float(first), to = float(last);
    by = steps > 1 ? (to - from) / float(steps - 1) : 0;
    first = from;
    last = to;
  }
  return generated(out, Spaced{first, last, by, base.value_or(0), steps, base.has_value()});
}

// A tensor that stands for one end of a line.
Scalar end_of(const Tensor& end, const Tensor& other) {
  CHECK(end.dim() == 0 && other.dim() == 0,
        "only supports 0-dimensional start and end tensors, but "
        "got ",
        end.dim(), " and ", other.dim(), " dimension(s).");
  return item(end);
}

// The places (row, column) of a matrix, row by row, whose columns are those from begin(d) to below
// end(d), where d is the column of the diagonal in that row: shape (2, count).
template <class Begin, class End>
Tensor kept_places(int64_t rows, int64_t columns, int64_t offset, std::optional<DType> dtype,
                   std::optional<Device> device, Begin begin, End end) {
  CHECK(rows >= 0 && columns >= 0, "row and col must be non-negative, got ", rows, " and ",
        columns);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  CHECK(rows <= kMost && columns <= kMost, ErrorKind::kOutOfMemory,
        "no memory for the places in a matrix of ", rows, " x ", columns);
  const int64_t diagonal = std::max(-rows, std::min(offset, columns));
  auto within = [=](int64_t column) { return std::clamp<int64_t>(column, 0, columns); };
  auto first = [=](int64_t r) { return within(begin(r + diagonal)); };
  auto length = [=](int64_t r) { return within(end(r + diagonal)) - first(r); };
  auto before = [=](int64_t r) {
    int64_t count = 0;
    for (int64_t above = 0; above < r; ++above) count += length(above);
    return count;
  };
  int64_t count = before(rows);
  Tensor out = fresh(Shape{2, count}, dtype.value_or(DType::int64), device);
  bool is_here = out.device().is_cpu() && out.dtype() == DType::int64;
  Tensor places = is_here ? out : empty(out.sizes(), DType::int64);
  parallel_for(0, rows, kGrain / (columns + 1) + 1, [&](int64_t start, int64_t stop) {
    int64_t *row = places.data<int64_t>() + before(start), *column = row + count;
    for (int64_t r = start; r < stop; ++r) {
      row = std::fill_n(row, length(r), r);
      std::iota(column, column + length(r), first(r));
      column += length(r);
    }
  });
  copy_into(out, places);
  return out;
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
  .sparse  = sparse_zeros_like,
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
  .forward = [](const Tensor& input, Scalar fill_value, std::optional<DType> dtype,
                std::optional<Device> device, std::optional<MemoryFormat> memory_format) {
    return per_sample(filled(fresh_like(input, dtype, device, memory_format), fill_value), input);
  },
})

OP(new_empty, "(Tensor input, int[] size, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(A tensor of undefined values with the dtype of input.)",
  .variants = method,
  .seen    = Seen::whole,
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

OP(arange, "(Scalar end, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(0, 1, 2, ... below end: int64 for an int, else the default float dtype.)",
  .forward = [](Scalar end, std::optional<DType> dtype, std::optional<Device> device) {
    return range(0, end, 1, dtype, device);
  },
})

OP(arange_start, "arange.start(Scalar start, Scalar end, Scalar step=1, *, dtype? dtype=None, "
                 "device? device=None) -> Tensor", {
  .doc     = R"(start, start + step, ... before end: ceil((end - start) / step) numbers.)",
  .forward = [](Scalar start, Scalar end, Scalar step, std::optional<DType> dtype,
                std::optional<Device> device) {
    return range(start, end, step, dtype, device);
  },
})

OP(linspace, "(Scalar start, Scalar end, int steps, *, dtype? dtype=None, "
             "device? device=None) -> Tensor", {
  .doc     = R"(`steps` evenly spaced numbers from start to end, both included.)",
  .forward = [](Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype,
                std::optional<Device> device) {
    return spaced(start, end, steps, std::nullopt, dtype, device);
  },
})

OP(logspace, "(Scalar start, Scalar end, int steps, float base=10.0, *, dtype? dtype=None, "
             "device? device=None) -> Tensor", {
  .doc     = R"(`steps` numbers from base**start to base**end, evenly spaced in their logarithm.)",
  .forward = [](Scalar start, Scalar end, int64_t steps, double base, std::optional<DType> dtype,
                std::optional<Device> device) {
    return spaced(start, end, steps, base, dtype, device);
  },
})

OP(linspace_tensors, "linspace.tensors(Tensor|Scalar start, Tensor|Scalar end, int steps, *, "
                     "dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(The ends may be 0-d tensors, which get no gradient.)",
  .forward = [](const Tensor& start, const Tensor& end, int64_t steps, std::optional<DType> dtype,
                std::optional<Device> device) {
    return spaced(end_of(start, end), end_of(end, start), steps, std::nullopt, dtype, device);
  },
})

OP(logspace_tensors, "logspace.tensors(Tensor|Scalar start, Tensor|Scalar end, int steps, "
                     "float base=10.0, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(The exponents may be 0-d tensors, which get no gradient.)",
  .forward = [](const Tensor& start, const Tensor& end, int64_t steps, double base,
                std::optional<DType> dtype, std::optional<Device> device) {
    return spaced(end_of(start, end), end_of(end, start), steps, base, dtype, device);
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

OP(tril_indices, "(int row, int col, int offset=0, *, dtype? dtype=None, "
                 "device? device=None) -> Tensor", {
  .doc     = R"(Rows and columns of the lower triangle of a row x col matrix: (2, count).)",
  .forward = [](int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                std::optional<Device> device) {
    return kept_places(row, col, offset, dtype, device, [](int64_t) { return 0; },
                       [](int64_t diagonal) { return diagonal + 1; });
  },
})

OP(triu_indices, "(int row, int col, int offset=0, *, dtype? dtype=None, "
                 "device? device=None) -> Tensor", {
  .doc     = R"(Rows and columns of the upper triangle of a row x col matrix: (2, count).)",
  .forward = [](int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                std::optional<Device> device) {
    return kept_places(row, col, offset, dtype, device, [](int64_t diagonal) { return diagonal; },
                       [=](int64_t) { return col; });
  },
})

OP(fill_, "(Tensor! input, Scalar value) -> Tensor", {
  .doc     = R"(Sets all elements to one value.)",
  .fills   = true,
  .batch   = by_elements,
  .forward = [](const Tensor& input, Scalar value) { return filled(input, value); },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); })),
})

OP(fill_tensor_, "fill_.Tensor(Tensor! input, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(Sets all elements to the value of a 0-d tensor.)",
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& value) {
    return copy_(input, batch.has("value") ? Batch::padded(value, batch.rank("input")) : value);
  },
  .forward = [](const Tensor& input, const Tensor& value) {
    CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
          value.dim(), " dimensions.");
    copy_into(input, value);
    return input;
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); }),
                   d<"value">([](const Tensor& g) { return g; })),
})

OP(fill, "(Tensor input, Scalar value) -> Tensor", {
  .doc     = R"(A copy of input with all elements set to one value.)",
  .variants = function,
  .forward = [](const Tensor& input, Scalar value) {
    return call<"fill_", Tensor>(clone(input), value);
  },
})

OP(fill_tensor, "fill.Tensor(Tensor input, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(A copy of input with all elements set to the value of a 0-d tensor.)",
  .variants = function,
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
