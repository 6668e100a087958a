// Owns the ops that make sequences: numbers in even steps, and the places of a triangle.
#include <cmath>
#include <limits>
#include <numeric>

#include "core/device/threads.h"
#include "core/ops/op.h"
#include "core/ops/random/generate.h"
#include "core/tensor/default_device.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 32768;  // places that are worth a thread

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
        "upper bound and lower bound inconsistent with step sign: ", start, " to ", end, " by ",
        step);
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
  if (type == DType::int64) {
    bool has_steps = step.to<double>() != 0;
    for (Scalar* number : {&start, &end, &step}) *number = as_integer(*number);
    CHECK(!has_steps || step.to<int64_t>() != 0, ErrorKind::kValue,
          "step must be nonzero, but as an integer it is 0. Use a floating-point dtype.");
  }
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
        "only supports 0-dimensional start and end tensors, but got ", end.dim(), " and ",
        other.dim(), " dimension(s).");
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

}  // namespace

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

}  // namespace rushlight
