// Owns reductions of segments: runs of slices that lie one after the other along a dim.
#include "core/ops/op.h"
#include "core/ops/real_number.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

// The starts of the segments and the end of the last one, along the last dim.
Tensor segment_bounds(const Tensor& data, const Tensor& lengths, const Tensor& offsets,
                      int64_t axis, bool unsafe) {
  CHECK(lengths.defined() || offsets.defined(), "Either lengths or offsets must be defined.");
  CHECK(!lengths.defined() || !offsets.defined(), "only one of lengths and offsets may be given");
  const Tensor& given = lengths.defined() ? lengths : offsets;
  const char* name = lengths.defined() ? "lengths" : "offsets";
  CHECK(is_integral(given.dtype()), ErrorKind::kNotImplemented, name, " must be integers, but are ",
        dtype_name(given.dtype()));
  CHECK(given.dim() == axis + 1 && axis < data.dim(), name, " of shape ", given.sizes(),
        " must have one dim more than axis, which is ", axis, ", and data of shape ", data.sizes(),
        " at least as many");
  for (int64_t d = 0; d < axis; ++d)
    CHECK(given.size(d) == data.size(d), name, " of shape ", given.sizes(), " must have the sizes ",
          "of data, ", data.sizes(), ", before axis ", axis);
  if (offsets.defined()) {
    CHECK(offsets.size(-1) > 0, "offsets must have the start of a segment or the end of the last");
    Tensor starts = cast(offsets, DType::int64);
    if (!unsafe && starts.device().is_cpu() && has_values(starts))
      CHECK(all_true(starts >= 0) && all_true(starts <= Scalar(data.size(axis))),
            "offsets must lie between 0 and data.size(axis) = ", data.size(axis),
            ", unless unsafe=True.");
    return starts;
  }
  Tensor counts = cast(lengths, DType::int64);
  if (!unsafe && counts.device().is_cpu() && has_values(counts)) {
    CHECK(all_true(counts >= 0), "lengths contains negative value!");
    CHECK(all_true(sum(counts, Shape{-1}) == Scalar(data.size(axis))),
          "Expected all rows of lengths along axis to sum to data.size(axis) = ", data.size(axis),
          ", unless unsafe=True.");
  }
  Shape first = counts.sizes();
  first.back() = 1;
  const Tensor both[] = {zeros(first, DType::int64, counts.device()),
                         call<"cumsum", Tensor>(counts, int64_t(-1), std::optional<DType>())};
  return cat(both, -1);
}

// The number of the segment that each slice is in, counted from 1; 0 before the first segment.
Tensor segment_of_slices(const Tensor& data, const Tensor& bounds, int64_t axis) {
  Tensor place = call<"arange", Tensor>(Scalar(data.size(axis)), std::optional(DType::int64),
                                        std::optional(data.device()));
  Shape sizes(ShapeRef(data.sizes()).first(size_t(axis) + 1));
  return call<"searchsorted", Tensor>(bounds, contiguous(expand(place, sizes)), false, true,
                                      std::optional<std::string_view>(), Tensor());
}

// A tensor of the leading dims with dims of size 1 behind, so that it broadcasts to data.
Tensor with_dims(const Tensor& t, int64_t dims) {
  Shape sizes = t.sizes();
  sizes.resize(size_t(dims), 1);
  return reshape(t, sizes);
}

double start_value(std::string_view reduce, std::optional<Scalar> initial) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (initial) return real_number(*initial, "initial");
  return reduce == "max" ? -inf : reduce == "min" ? inf : reduce == "prod" ? 1 : 0;
}

std::string_view scatter_name(std::string_view reduce) {
  if (reduce == "sum" || reduce == "mean") return "sum";
  if (reduce == "prod") return "prod";
  if (reduce == "max") return "amax";
  CHECK(reduce == "min", "unsupported reduction given! '", reduce,
        "'. Use sum, mean, max, min or prod.");
  return "amin";
}

}  // namespace

OP(segment_reduce,
   "(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
   "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor", {
  .doc     = R"(The sum, mean, max, min or prod of each segment of slices along axis.

Segments lie one after the other and have these lengths, or begin at these offsets, whose last is
the end of the last segment. Both have the sizes of data before axis. initial takes part in every
segment. unsafe leaves out the checks of the lengths.

Example:
    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([2, 1]))
    tensor([3., 3.]))",
  .dtypes  = floating,
  .forward = [](const Tensor& data, std::string_view reduce, const Tensor& lengths,
                const Tensor& indices, const Tensor& offsets, int64_t axis, bool unsafe,
                std::optional<Scalar> initial) {
    CHECK(!indices.defined(), ErrorKind::kNotImplemented,
          "indices are not supported. Use lengths or offsets.");
    CHECK(data.dim() > 0, "data must have at least one dim");
    std::string_view scatter = scatter_name(reduce);
    axis = wrap_dim(axis, data.dim());
    Tensor bounds = segment_bounds(data, lengths, offsets, axis, unsafe);
    int64_t segments = bounds.size(-1) - 1;
    Tensor place = expand(with_dims(segment_of_slices(data, bounds, axis), data.dim()),
                          data.sizes());
    // One row more at each end for slices outside of all segments.
    Shape sizes = data.sizes();
    sizes[size_t(axis)] = segments + 2;
    Tensor start = full(sizes, start_value(reduce, initial), data.dtype(), data.device());
    Tensor all = call<"scatter_reduce", Tensor>(start, axis, place, data, scatter, true);
    Tensor result = contiguous(narrow(all, axis, 1, segments));
    if (reduce != "mean") return result;
    Tensor count = slice(bounds, -1, 1, INT64_MAX, 1) - slice(bounds, -1, 0, -1, 1);
    if (initial) count = call<"clamp_min", Tensor>(count, wrapped_number(1));
    return result / cast(with_dims(count, data.dim()), data.dtype());
  },
})

}  // namespace rushlight
