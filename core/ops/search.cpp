// Owns what is found in sorted rows: places for values, membership, and different elements.
#include "core/autograd/grad_mode.h"
#include "core/ops/index/index.h"
#include "core/ops/no_derivative.h"
#include "core/ops/op.h"
#include "core/ops/sort/sort.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// Where each value would be inserted into its sorted row; a NaN comes last.
Tensor search(const Tensor& sorted, const Tensor& values, bool right, bool out_int32) {
  CHECK(sorted.dim() > 0, "boundaries tensor must have at least one dim");
  bool one_row = sorted.dim() == 1;
  Shape leading(ShapeRef(sorted.sizes()).first(sorted.sizes().size() - 1));
  CHECK(one_row || (values.dim() == sorted.dim() &&
                    same_shape(ShapeRef(values.sizes()).first(leading.size()), leading)),
        "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
        "and input value tensor must match, but we got boundaries tensor ",
        sorted.sizes(), " and input value tensor ", values.sizes());
  const Tensor* both[] = {&sorted, &values};
  DType dtype = result_dtype(both);
  CHECK(!is_complex(dtype), ErrorKind::kNotImplemented, "not implemented for ", dtype_name(dtype));
  Device device = common_device(both);
  Tensor rows = to_contiguous(to_dtype(sorted, dtype));
  Tensor wanted = values.device() == device ? to_contiguous(to_dtype(values, dtype))
                                            : full({}, item(values), dtype, device);
  Tensor places = empty(values.sizes(), DType::int64, device);
  if (places.numel() > 0 && !places.device().is_meta())
    (places.device().is_cuda() ? search_rows_cuda : search_rows_cpu)(places, rows, wanted, right);
  return out_int32 ? to_dtype(places, DType::int32) : places;
}

// Samples of values (n, ...) in those of one row (n, length) or of as many dims.
Tensor search_samples(const Tensor& sorted, const Tensor& values, bool right, bool out_int32) {
  bool one_row = sorted.dim() == 2;
  Tensor wanted = one_row ? reshape(values, Shape{values.size(0), -1}) : values;
  Tensor places = call<"searchsorted", Tensor>(sorted, wanted, out_int32, right,
                                               std::optional<std::string_view>(), Tensor());
  return one_row ? reshape(places, values.sizes()) : places;
}

bool search_right(bool right, std::optional<std::string_view> side) {
  CHECK(!side || *side == "left" || *side == "right", "side can only be 'left' or 'right' but got ",
        *side);
  CHECK(!side || !right || *side == "right",
        "side and right can't be set to opposites, got side of left while "
        "right was True");
  return right || side == "right";
}

Tensor vector_of(const Tensor& input) { return reshape(input, Shape{-1}); }

// Whether each element equals one of a few others.
Tensor equals_any(const Tensor& elements, const Tensor& others) {
  Tensor found = elements == select(others, 0, 0);
  for (int64_t i = 1; i < others.numel(); ++i) found = found | (elements == select(others, 0, i));
  return found;
}

Tensor is_in(const Tensor& elements, const Tensor& test_elements) {
  constexpr int64_t kFew = 8;
  const Tensor others = vector_of(test_elements), *both[] = {&elements, &others};
  CHECK(!is_complex(result_dtype(both)), ErrorKind::kNotImplemented,
        "not implemented for complex numbers, which have no order");
  if (others.numel() == 0) return zeros(elements.sizes(), DType::bool_, common_device(both));
  if (others.numel() <= kFew) return equals_any(elements, others);
  Tensor sorted = sort_rows(others, 0, others.numel(), false).values;
  Tensor at = call<"clamp_max", Tensor>(search(sorted, elements, false, false),
                                        wrapped_number(others.numel() - 1));
  const Tensor places[] = {at};
  return index(sorted, places) == elements;
}

using Different = std::tuple<Tensor, Tensor, Tensor>;

// The different elements of integers that are near each other, without sorting.
std::optional<Different> count_integers(const Tensor& input, bool numbers) {
  if (!(is_integral(input.dtype()) || is_bool(input.dtype())) || input.dtype() == DType::uint64 ||
      input.numel() == 0 || input.device().is_meta())
    return {};
  Tensor whole = to_contiguous(to_dtype(vector_of(input), DType::int64));
  Bounds bounds = bounds_of(whole);
  if (uint64_t(bounds.greatest) - uint64_t(bounds.least) >= uint64_t(input.numel())) return {};
  Tensor number = whole - Scalar(bounds.least);
  Tensor counts = call<"bincount", Tensor>(number, Tensor(), int64_t(0));
  const Tensor places[] = {vector_of(nonzero_places(counts))}, at[] = {number};
  Tensor inverse = number;
  if (numbers) {
    Tensor rank = call<"cumsum", Tensor>(counts != 0, int64_t(0), std::optional<DType>());
    inverse = view(index(rank - Scalar(1), at), input.sizes());
  }
  Tensor values = to_dtype(places[0] + Scalar(bounds.least), input.dtype());
  return Different(values, inverse, index(counts, places));
}

// The same of truth values on the CPU.
Different count_truths(const Tensor& input, bool numbers) {
  const int64_t trues =
      item(call<"count_nonzero", Tensor>(input, std::optional<ShapeRef>())).to<int64_t>();
  const int64_t counted[] = {input.numel() - trues, trues};
  const bool has[] = {counted[0] > 0, counted[1] > 0};
  Tensor values = empty(Shape{has[0] + has[1]}, DType::bool_);
  Tensor counts = empty(values.sizes(), DType::int64), inverse = counts;
  for (int truth = 0, i = 0; truth < 2; ++truth) {
    if (!has[truth]) continue;
    values.data<bool>()[i] = truth;
    counts.data<int64_t>()[i++] = counted[truth];
  }
  if (numbers) inverse = has[0] ? cast(input, DType::int64) : zeros(input.sizes(), DType::int64);
  return {values, inverse, counts};
}

}  // namespace

OP(searchsorted, "(Tensor sorted_sequence, Tensor|Scalar input, *, bool out_int32=False, "
                 "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor", {
  .doc     = R"(Where to insert values into sorted rows so that they stay sorted.

That is before equal elements, or after them with right=True or side='right'. With sorter the rows
are sorted_sequence in the order of these places, as argsort gives them.

Example:
    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 4]))
    tensor([1, 2]))",
  .dtypes  = real,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, bool out_int32, bool right,
                std::optional<std::string_view> side, const Tensor&) {
    Tensor rows = batch.full("sorted_sequence"), sorter = batch.full("sorter");
    if (sorter.defined()) rows = gather(rows, -1, sorter);
    return search_samples(rows, batch.full("input"), search_right(right, side), out_int32);
  },
  .forward = [](const Tensor& sorted_sequence, const Tensor& input, bool out_int32, bool right,
                std::optional<std::string_view> side, const Tensor& sorter) {
    Tensor rows = sorted_sequence;
    if (sorter.defined()) {
      CHECK(sorter.sizes() == rows.sizes(), "boundary and sorter must have the same size, but got ",
            "boundary tensor ", rows.sizes(), " and got sorter tensor ", sorter.sizes());
      CHECK(sorter.dtype() == DType::int64, "sorter must be a tensor of long dtype but got dtype ",
            dtype_name(sorter.dtype()));
      rows = gather(rows, -1, sorter);
    }
    return search(rows, input, search_right(right, side), out_int32);
  },
})

OP(bucketize, "(Tensor|Scalar input, Tensor boundaries, *, bool out_int32=False, "
              "bool right=False) -> Tensor", {
  .doc     = R"(The number of the bucket between sorted boundaries that each element falls into.)",
  .dtypes  = real,
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& boundaries, bool out_int32,
                bool right) {
    if (!batch.has("boundaries"))
      return call<"bucketize", Tensor>(input, boundaries, out_int32, right);
    return search_samples(boundaries, batch.full("input"), right, out_int32);
  },
  .forward = [](const Tensor& input, const Tensor& boundaries, bool out_int32, bool right) {
    CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
          boundaries.dim(), ")");
    return search(boundaries, input, right, out_int32);
  },
})

OP(isin, "(Tensor|Scalar elements, Tensor|Scalar test_elements, *, "
         "bool assume_unique=False, bool invert=False) -> Tensor", {
  .doc     = R"(Whether each element is among test_elements, or with invert=True whether it is not.

Either may be a number. assume_unique changes nothing.

Example:
    >>> torch.isin(torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 3]))
    tensor([[False,  True],
            [ True, False]]))",
  .dtypes  = real,
  .batch   = [](const Batch& batch, const Tensor& elements, const Tensor& test_elements,
                bool assume_unique, bool invert) {
    if (!batch.has("test_elements"))
      return call<"isin", Tensor>(elements, test_elements, assume_unique, invert);
    Tensor tests = reshape(test_elements, Shape{batch.size(), -1});
    Tensor rows = reshape(batch.full("elements"), Shape{batch.size(), -1});
    Tensor same = unsqueeze(rows, 2) == unsqueeze(tests, 1);
    Tensor found = call<"any", Tensor>(same, std::optional<ShapeRef>(Shape{2}), false);
    found = reshape(found, batch.full("elements").sizes());
    return invert ? logical_not(found) : found;
  },
  .forward = [](const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
    Tensor found = is_in(elements, test_elements);
    return invert ? logical_not(found) : found;
  },
})

OP(nonzero_static, "(Tensor input, *, int size, int fill_value=-1) -> Tensor", {
  .doc     = R"(The places of the first `size` elements that are not zero, one row each.

Rows that are missing are filled: the shape is always (size, dims).

Example:
    >>> torch.nonzero_static(torch.tensor([0, 5, 7]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]]))",
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, int64_t size, int64_t fill_value) {
    CHECK(size >= 0, "'size' must be an non-negative integer, but is ", size);
    Tensor result = full(Shape{size, input.dim()}, fill_value, DType::int64, input.device());
    if (input.device().is_meta()) return result;
    Tensor places = nonzero_places(input);
    int64_t count = std::min(size, places.size(0));
    copy_into(narrow(result, 0, 0, count), narrow(places, 0, 0, count));
    return result;
  },
})

OP(_unique,
   "(Tensor input, bool numbers=True) -> (Tensor values, Tensor inverse, Tensor counts)", {
  .home    = "private",
  .doc     = R"(The different elements, which of them each element is, and how often each occurs.

Without `numbers` the second result has no meaning.)",
  .dtypes  = real,
  .forward = [](const Tensor& input, bool numbers) {
    if (is_bool(input.dtype()) && input.device().is_cpu()) return count_truths(input, numbers);
    if (std::optional<Different> counted = count_integers(input, numbers)) return *counted;
    Sorted sorted = sort_rows(vector_of(input), 0, input.numel(), false);
    auto [values, runs, counts] =
        call<"_unique_consecutive", Different>(sorted.values, numbers, true);
    if (!numbers) return Different(values, runs, counts);
    Tensor inverse = empty(runs.sizes(), DType::int64, input.device());
    const Tensor places[] = {sorted.indices};
    index_put_(inverse, places, runs, false);
    return Different(values, view(inverse, input.sizes()), counts);
  },
  .saves   = saves<>,
  .grads   = grads(d<"input">([](TensorList, bool) { return no_derivative("input"); })),
})

OP(_unique_consecutive,
   "(Tensor input, bool numbers, bool lengths=True) -> "
   "(Tensor values, Tensor inverse, Tensor counts)", {
  .home    = "private",
  .doc     = R"(The slices along the first dim that differ from the one before, the number of the
run of equal ones that each slice is in, and the lengths of the runs. NaN differs from all.

Without `numbers` the second result has no meaning, without `lengths` the third.)",
  .forward = [](const Tensor& input, bool numbers, bool lengths) {
    int64_t length = input.size(0);
    Device device = input.device();
    Tensor differs = empty(Shape{length}, DType::bool_, device);
    if (length > 0) {
      Tensor changes = narrow(input, 0, 1, length - 1) != narrow(input, 0, 0, length - 1);
      if (input.dim() > 1) {
        Tensor slices = reshape(changes, Shape{length - 1, input.numel() / length});
        changes = call<"any", Tensor>(slices, std::optional<ShapeRef>(Shape{1}), false);
      }
      call<"fill_", Tensor>(narrow(differs, 0, 0, 1), Scalar(true));
      copy_into(narrow(differs, 0, 1, length - 1), changes);
    }
    Tensor starts = vector_of(nonzero_places(differs));
    Tensor runs = starts, counts = starts;
    if (lengths) {
      const Tensor bounds[] = {starts, full(Shape{1}, length, DType::int64, device)};
      counts = narrow(cat(bounds, 0), 0, 1, starts.numel()) - starts;
    }
    if (numbers)
      runs = call<"cumsum", Tensor>(differs, int64_t(0), std::optional<DType>()) - Scalar(1);
    const Tensor at_starts[] = {starts};
    return Different(index(input, at_starts), runs, counts);
  },
  .saves   = saves<>,
  .grads   = grads(d<"input">([](TensorList, bool, bool) { return no_derivative("input"); })),
})

}  // namespace rushlight
