// Owns what is found by rank: the k-th value, medians, quantiles and the mode. All but the mode are
// elements of sorted rows, which the CPU finds without sorting.
#include "core/ops/found_element.h"
#include "core/ops/op.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

constexpr DTypeSet quantile_dtypes([](DType t) {
  return t == DType::float32 || t == DType::float64;
});

using Pair = std::tuple<Tensor, Tensor>;

// A tensor with a dim to look along, and which it is.
struct Rows {
  Tensor tensor;
  int64_t dim;

  Rows(const Tensor& input, std::optional<int64_t> along)
      : tensor(along && input.dim() ? input : reshape(input, Shape{-1})),
        dim(along ? wrap_dim(*along, input.dim()) : 0) {}

  int64_t length() const { return tensor.size(dim); }
  // How many elements of each row are numbers; dim has size 1.
  Tensor count_numbers() const { return sum(logical_not(isnan(tensor)), ShapeRef(&dim, 1), true); }
  // The same rank, or ranks by row with size 1 along dim, for all.
  Tensor same_rank(int64_t rank) const {
    return full(one_along(), rank, DType::int64, tensor.device());
  }
  Shape one_along() const {
    Shape sizes = tensor.sizes();
    sizes[size_t(dim)] = 1;
    return sizes;
  }
};

Pair at_ranks(const Rows& rows, const Tensor& ranks) {
  return call<"_at_ranks", Pair>(rows.tensor, ranks, rows.dim);
}

// The one element that was found in each row.
Pair without_dim(const Rows& rows, const Pair& found, const Tensor& input, bool keepdim) {
  auto [values, indices] = found;
  if (keepdim && input.dim() != 0) return found;
  return {squeeze(values, rows.dim), squeeze(indices, rows.dim)};
}

// The ranks of medians_cpu, for all devices.
Tensor median_ranks(const Rows& rows, bool ignore_nan) {
  int64_t length = rows.length();
  Tensor middle = rows.same_rank((length - 1) / 2);
  if (!is_floating(rows.tensor.dtype())) return middle;
  Tensor count = rows.count_numbers();
  if (!ignore_nan) return where(count == Scalar(length), middle, count);
  return call<"clamp_min", Tensor>(floor_divide(count - Scalar(1), wrapped_number(2)),
                                   wrapped_number(0));
}

Pair median_along(const Tensor& input, int64_t dim, bool keepdim, bool ignore_nan) {
  check_extreme_exists(input, ShapeRef(&dim, 1));
  Rows rows(input, dim);
  return without_dim(rows, call<"_medians", Pair>(rows.tensor, rows.dim, ignore_nan), input,
                     keepdim);
}

Tensor median_of_all(const Tensor& input, bool ignore_nan) {
  if (input.numel() == 0) {
    double nan = std::numeric_limits<double>::quiet_NaN();
    return to_dtype(full({}, nan, DType::float64, input.device()), input.dtype());
  }
  return call<"_median", Tensor>(reshape(input, Shape{-1}), ignore_nan);
}

// Elements that equal the median share its gradient.
Tensor median_grad(const Tensor& g, const Tensor& input, const Tensor& result) {
  Tensor median = unsqueeze(result, -1);
  Tensor equal = equals_found(input, median);
  return select(equal, unsqueeze(g, -1) / sum(equal, Shape{-1}, true), 0.0);
}

// ---- quantiles ----------------------------------------------------------------------------------

enum class Interpolation { linear, lower, higher, midpoint, nearest };

Interpolation interpolation_of(std::string_view name) {
  if (name == "linear") return Interpolation::linear;
  if (name == "lower") return Interpolation::lower;
  if (name == "higher") return Interpolation::higher;
  if (name == "midpoint") return Interpolation::midpoint;
  CHECK(name == "nearest", "interpolation must be one of linear, lower, higher, midpoint or ",
        "nearest, but got ", name);
  return Interpolation::nearest;
}

// q as a tensor beside the input: a number, or a vector.
Tensor checked_fractions(const Tensor& input, const Tensor& q) {
  CHECK(input.numel() > 0, "input tensor must be non-empty");
  CHECK(q.dim() <= 1, "q must be a scalar or 1D tensor, but has shape ", q.sizes());
  bool number = q.impl()->wrapped_number;
  CHECK(number || q.dtype() == input.dtype(), "q tensor must be same dtype as the input tensor: q ",
        "is ", dtype_name(q.dtype()), ", input is ", dtype_name(input.dtype()));
  CHECK(number || q.device() == input.device(),
        "q tensor must be on the same device as the input tensor");
  if (q.device().is_cpu()) {
    Tensor fits = (q >= 0) & (q <= 1);
    CHECK(!has_values(fits) || all_true(fits), "q values must be in the range [0, 1]");
  }
  return number ? full({}, item(q), input.dtype(), input.device()) : q;
}

// The ranks of the quantiles, with fractions, by row.
Tensor quantile_ranks(const Rows& rows, const Tensor& fractions, bool ignore_nan) {
  Shape along(rows.tensor.sizes().size(), 1);
  along[size_t(rows.dim)] = fractions.numel();
  Tensor q = reshape(fractions, along);
  Tensor count = rows.count_numbers();
  if (ignore_nan) {
    Tensor last = cast(call<"clamp_min", Tensor>(count - Scalar(1), wrapped_number(0)), q.dtype());
    return q * last;
  }
  double last = double(rows.length() - 1);
  return where(count == Scalar(rows.length()), q * last, wrapped_number(last));
}

Tensor quantile_along(const Rows& rows, const Tensor& fractions, std::string_view interpolation,
                      bool ignore_nan) {
  Interpolation how = interpolation_of(interpolation);
  Tensor ranks = quantile_ranks(rows, fractions, ignore_nan);
  auto at = [&](const Tensor& whole) { return cast(whole, DType::int64); };
  switch (how) {
    case Interpolation::lower: return std::get<0>(at_ranks(rows, at(floor(ranks))));
    case Interpolation::higher: return std::get<0>(at_ranks(rows, at(ceil(ranks))));
    case Interpolation::nearest:
      return std::get<0>(at_ranks(rows, at(call<"round", Tensor>(ranks))));
    default: break;
  }
  Tensor below = floor(ranks);
  Tensor both[] = {at(below), at(ceil(ranks))};
  int64_t count = fractions.numel();
  Tensor values = std::get<0>(at_ranks(rows, cat(both, rows.dim)));
  Tensor lower = narrow(values, rows.dim, 0, count);
  Tensor weight = how == Interpolation::midpoint ? wrapped_number(0.5) : ranks - below;
  return call<"lerp", Tensor>(lower, narrow(values, rows.dim, count, count), weight);
}

Tensor quantile_of(const Tensor& input, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation, bool ignore_nan) {
  Tensor fractions = checked_fractions(input, q);
  Rows rows(input, dim);
  Tensor result = quantile_along(rows, fractions, interpolation, ignore_nan);
  // The quantiles stand along the dim: they become the first one, or none.
  result = call<"movedim_int", Tensor>(result, rows.dim, int64_t(0));
  if (fractions.dim() == 0) result = squeeze(result, 0);
  if (!keepdim) return input.dim() == 0 && dim ? reshape(result, fractions.sizes()) : result;
  Shape sizes = fractions.sizes();
  for (int64_t d = 0; d < input.dim(); ++d)
    sizes.push_back(!dim || d == rows.dim ? 1 : input.size(d));
  return reshape(result, sizes);
}

// ---- the mode -----------------------------------------------------------------------------------

// modes_cpu for all devices.
Tensor mode_places(const Rows& rows) {
  auto [values, places] = call<"sort", Pair>(rows.tensor, rows.dim, false, std::optional(true));
  int64_t length = rows.length(), dim = rows.dim;
  Shape along(rows.tensor.sizes().size(), 1);
  along[size_t(dim)] = length;
  Tensor at = reshape(call<"arange", Tensor>(Scalar(length), std::optional(DType::int64),
                                             std::optional(rows.tensor.device())),
                      along);
  Tensor differs = narrow(values, dim, 1, length - 1) != narrow(values, dim, 0, length - 1);
  Tensor first = zeros(rows.one_along(), DType::int64, rows.tensor.device());
  Tensor starts[] = {first, where(differs, narrow(at, dim, 1, length - 1), wrapped_number(0))};
  Tensor run_start = std::get<0>(call<"cummax", Pair>(cat(starts, dim), dim));
  Tensor longest = call<"argmax", Tensor>(at - run_start, std::optional(dim), true);
  return gather(places, dim, longest);
}

}  // namespace

OP(_at_ranks, "(Tensor input, Tensor ranks, int dim) -> (Tensor values, Tensor indices)", {
  .home    = "core",
  .doc     = R"(The elements that input, sorted along dim, has at ranks, and where they were.

ranks broadcast to the sizes of input but along dim.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, const Tensor& ranks, int64_t dim) {
    CHECK(input.dim() == ranks.dim() && input.dim() > 0 && ranks.dtype() == DType::int64,
          "ranks must be int64 and have as many dims as input, at least one, but are ",
          dtype_name(ranks.dtype()), " of shape ", ranks.sizes(), " for ", input.sizes());
    dim = wrap_dim(dim, input.dim());
    Shape sizes = input.sizes();
    sizes[size_t(dim)] = ranks.size(dim);
    Tensor all = expand(ranks, sizes);
    CHECK(input.size(dim) > 0 || all.numel() == 0, ErrorKind::kIndex, "dim ", dim,
          " must have non-zero size, but input has shape ", input.sizes());
    if (all.numel() == 0 || input.device().is_meta())
      return Pair(empty(sizes, input.dtype(), input.device()),
                  empty(sizes, DType::int64, input.device()));
    if (input.device().is_cuda()) {
      Sorted sorted = sort_rows(input, dim, input.size(dim), false);
      return Pair(gather(sorted.values, dim, all), gather(sorted.indices, dim, all));
    }
    Sorted found = rows_at_ranks_cpu(input, all, dim);
    return Pair(found.values, found.indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& shape,
                                 int64_t dim) {
                     return taken_backward(g[0], indices, shape, dim);
                   }),
                   no_grad<"ranks">),
})

OP(_medians,
   "(Tensor input, int dim, bool ignore_nan) -> (Tensor values, Tensor indices)", {
  .home    = "core",
  .doc     = R"(The medians along dim, of two elements in the middle the lower, and where they were.

A row with a NaN has NaN as its median, unless NaN is ignored; dim has size 1.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, bool ignore_nan) {
    check_extreme_exists(input, ShapeRef(&dim, 1));
    Rows rows(input, dim);
    if (!input.device().is_cpu() || input.numel() == 0)
      return at_ranks(rows, median_ranks(rows, ignore_nan));
    Sorted found = medians_cpu(rows.tensor, rows.dim, ignore_nan);
    return Pair(found.values, found.indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& shape,
                                 int64_t dim, bool) {
    return taken_backward(g[0], indices, shape, dim);
  })),
})

OP(_mode_places, "(Tensor input, int dim) -> Tensor", {
  .home    = "core",
  .doc     = R"(Where the last of the most frequent elements along dim are; dim has size 1.)",
  .dtypes  = real,
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim) {
    Rows rows(input, dim);
    if (rows.length() == 1) return zeros(input.sizes(), DType::int64, input.device());
    return input.device().is_cpu() ? modes_cpu(input, dim).indices : mode_places(rows);
  },
})

OP(_median, "(Tensor input, bool ignore_nan) -> Tensor", {
  .home    = "core",
  .doc     = R"(The medians along the last dim. Elements that equal one share its gradient.)",
  .dtypes  = real,
  .batch   = by_last_dims,
  .forward = [](const Tensor& input, bool ignore_nan) {
    return std::get<0>(median_along(input, -1, false, ignore_nan));
  },
  .saves   = saves<"input", "result">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& input, const Tensor& result, bool) {
                     return median_grad(g, input, result);
                   })),
})

OP(kthvalue, "(Tensor input, int k, int dim=-1, bool keepdim=False) -> (Tensor values, "
             "Tensor indices)", {
  .doc     = R"(The k-th smallest element along dim, and where it was.

Example:
    >>> torch.tensor([5, 1, 3]).kthvalue(2).values
    tensor(3))",
  .dtypes  = real,
  .forward = [](const Tensor& input, int64_t k, int64_t dim, bool keepdim) {
    check_extreme_exists(input, ShapeRef(&dim, 1));
    Rows rows(input, dim);
    CHECK(k >= 1 && k <= rows.length(), "selected number k out of range for dimension ", dim, ": ",
          k, " of ", rows.length(), " elements; k counts from 1");
    return without_dim(rows, at_ranks(rows, rows.same_rank(k - 1)), input, keepdim);
  },
})

OP(median, "(Tensor input) -> Tensor", {
  .doc     = R"(The median of all elements: of two in the middle the lower.

It is NaN when some element is. Elements that equal it share its gradient.)",
  .dtypes  = real,
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input) { return median_of_all(input, false); },
})

OP(median_dim,
   "median.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The medians along dim, of two elements in the middle the lower, and their positions.

A row with a NaN has NaN as its median.

Example:
    >>> torch.tensor([[1.0, 4.0, 2.0], [7.0, 5.0, 6.0]]).median(dim=1).values
    tensor([2., 6.]))",
  .dtypes  = real,
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, bool keepdim) {
    return median_along(input, dim, keepdim, false);
  },
})

OP(nanmedian, "(Tensor input) -> Tensor", {
  .doc     = R"(The median of the elements that are not NaN: of two in the middle the lower.)",
  .dtypes  = real,
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input) { return median_of_all(input, true); },
})

OP(nanmedian_dim,
   "nanmedian.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, "
   "Tensor indices)", {
  .doc     = R"(The medians along dim of the elements that are not NaN, and their positions.)",
  .dtypes  = real,
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, bool keepdim) {
    return median_along(input, dim, keepdim, true);
  },
})

OP(mode, "(Tensor input, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The most frequent elements along dim and their last positions.

Of several equally frequent ones the smallest counts.

Example:
    >>> torch.tensor([6, 5, 5, 1, 6, 5]).mode().values
    tensor(5))",
  .dtypes  = real,
  .forward = [](const Tensor& input, int64_t dim, bool keepdim) {
    check_extreme_exists(input, ShapeRef(&dim, 1));
    Rows rows(input, dim);
    Tensor places = contiguous(call<"_mode_places", Tensor>(rows.tensor, rows.dim));
    return without_dim(rows, {gather(rows.tensor, rows.dim, places), places}, input, keepdim);
  },
})

OP(quantile,
   "(Tensor input, Tensor|Scalar q, int? dim=None, bool keepdim=False, *, "
   "str interpolation='linear') -> Tensor", {
  .doc     = R"(The q-th quantiles along dim, or of all elements: q = 0.5 is the median.

q is a number or a vector, whose quantiles become the first dim. Between two elements the result is
linear in q, or the one that interpolation names: lower, higher, nearest, or their midpoint. A row
with a NaN has NaN as its quantiles.

Example:
    >>> torch.quantile(torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([0.25, 0.5]))
    tensor([0.7500, 1.5000]))",
  .dtypes  = quantile_dtypes,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
    return quantile_of(input, q, dim, keepdim, interpolation, false);
  },
})

OP(nanquantile,
   "(Tensor input, Tensor|Scalar q, int? dim=None, bool keepdim=False, *, "
   "str interpolation='linear') -> Tensor", {
  .doc     = R"(The q-th quantiles of the elements that are not NaN; see quantile.)",
  .dtypes  = quantile_dtypes,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
    return quantile_of(input, q, dim, keepdim, interpolation, true);
  },
})

}  // namespace rushlight
