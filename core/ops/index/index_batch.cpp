// Defines input[indices] and writing there for all samples of vmap at once.
//
// Where only input has samples, these are one more whole dim in front. Where indices have, sample n
// picks from place n of that dim, which the numbers of the samples say as one more index tensor;
// the dims of the indices then come in front of all others, and are moved to where they belong.
#include <algorithm>

#include "core/ops/batch.h"
#include "core/ops/index/index.h"
#include "core/tensor/dims.h"

namespace rushlight {
namespace {

// Index tensors by dim, and how they lie in what is picked from one sample.
struct Indices {
  std::vector<Tensor> list;  // those with samples have them by dim 0
  std::vector<bool> has_samples;
  int64_t first = 0;  // the first dim that is indexed
  int64_t rank = 0;   // of the indices, when broadcast
  bool adjacent = true;

  bool any_samples() const { return std::ranges::count(has_samples, true) > 0; }
  // Where the dims of the indices stand in what is picked.
  int64_t place() const { return adjacent ? first : 0; }
};

Indices read_indices(const Batch& batch, TensorList given) {
  Indices out;
  for (size_t k = 0; k < given.size(); ++k) {
    bool samples = batch.has("indices", k);
    if (!is_mask(given[k])) {
      out.list.push_back(given[k]);
      out.has_samples.push_back(samples);
      continue;
    }
    CHECK(!samples,
          "a mask that depends on the sample of vmap picks another number of elements for each. "
          "Use torch.where(mask, a, b), which has the same shape for all samples.");
    if (given[k].dim() == 0) continue;
    for (const Tensor& column : call<"nonzero_tuple", std::vector<Tensor>>(given[k], true)) {
      out.list.push_back(column);
      out.has_samples.push_back(false);
    }
  }
  int64_t last = -1;
  for (size_t d = 0; d < out.list.size(); ++d) {
    if (!out.list[d].defined()) continue;
    if (last < 0) out.first = int64_t(d);
    else out.adjacent &= last + 1 == int64_t(d);
    last = int64_t(d);
    out.rank = std::max(out.rank, out.list[d].dim() - out.has_samples[d]);
  }
  for (size_t d = 0; d < out.list.size(); ++d)
    if (out.has_samples[d]) out.list[d] = Batch::padded(out.list[d], out.rank);
  return out;
}

// `count` dims from one place on moved to another.
Tensor moved(const Tensor& t, int64_t from, int64_t count, int64_t to) {
  if (from == to || count == 0) return t;
  Shape source, destination;
  for (int64_t d = 0; d < count; ++d) {
    source.push_back(from + d);
    destination.push_back(to + d);
  }
  return call<"movedim", Tensor>(t, ShapeRef(source), ShapeRef(destination));
}

std::vector<Tensor> after(const Tensor& first, const std::vector<Tensor>& list) {
  std::vector<Tensor> all{first};
  all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<Tensor> numbered(const Batch& batch, const Indices& at) {
  Shape like(size_t(at.rank) + 1, 1);
  Device device;
  for (const Tensor& index : at.list)
    if (index.defined()) device = index.device();
  return after(batch.numbers(empty(like, DType::int64, device)), at.list);
}

// The only index is a mask with samples: elements stay in their places.
Tensor write_masked(const Batch& batch, const Tensor& input, TensorList indices, size_t place,
                    const Tensor& values, bool accumulate) {
  Tensor mask = indices[place];
  int64_t rank = input.dim() - 1, masked = mask.dim() - 1, rest = rank - int64_t(place) - masked;
  bool only = std::ranges::count_if(indices, &Tensor::defined) == 1;
  int64_t own = batch.rank("values"), at = own - rest - 1;  // where values say which element
  Tensor value = batch.has("values") ? values : unsqueeze(values, 0);
  if (only && place == 0 && at == 0 && value.size(1) > 1) {  // the number of the true element
    Tensor flat = reshape(mask, Shape{batch.size(), -1});
    Tensor count =
        call<"cumsum", Tensor>(cast(flat, DType::bool_), int64_t(1), std::optional<DType>());
    const Tensor number[] = {batch.numbers(flat),
                             call<"clamp_min", Tensor>(count - Scalar(1), wrapped_number(0))};
    Shape sizes = mask.sizes();
    for (int64_t d = 2; d < value.dim(); ++d) sizes.push_back(value.size(d));
    value = reshape(index(batch.full("values"), number), sizes);
    for (int64_t d = 0; d < rest; ++d) mask = unsqueeze(mask, -1);
    value = cast(value, input.dtype());
    return where(cast(mask, DType::bool_), accumulate ? input + value : value, input);
  }
  CHECK(only && (at < 0 || value.size(at + 1) == 1) && at <= int64_t(place),
        "a mask that depends on the sample of vmap takes one value for all of its elements, got "
        "values of shape ",
        Shape(ShapeRef(value.sizes()).subspan(1)), ". Use torch.where(mask, values, input).");
  value = Batch::padded(value, rest + 1);
  for (int64_t d = 1; d < masked; ++d) value = unsqueeze(value, std::max<int64_t>(at, 0) + 1);
  for (int64_t d = 0; d < rest; ++d) mask = unsqueeze(mask, -1);
  for (size_t d = 0; d < place; ++d) mask = unsqueeze(mask, 1);
  mask = cast(mask, DType::bool_);
  value = cast(Batch::padded(value, rank), input.dtype());
  return where(mask, accumulate ? input + value : value, input);
}

}  // namespace

Tensor index_samples(const Batch& batch, const Tensor& input, TensorList indices) {
  Indices at = read_indices(batch, indices);
  if (!at.any_samples()) {
    Tensor out = index(input, after(Tensor(), at.list));
    return at.adjacent ? out : moved(out, at.rank, 1, 0);
  }
  if (!batch.has("input")) {
    Tensor out = index(input, at.list);
    return moved(out, at.place(), 1, 0);
  }
  return moved(index(input, numbered(batch, at)), 1, at.rank, at.place() + 1);
}

Tensor index_put_samples(const Batch& batch, const Tensor& input, TensorList indices,
                         const Tensor& values, bool accumulate) {
  for (size_t k = 0; k < indices.size(); ++k)
    if (is_mask(indices[k]) && batch.has("indices", k))
      return write_masked(batch, input, indices, k, values, accumulate);
  Indices at = read_indices(batch, indices);
  int64_t indexed = std::ranges::count_if(at.list, &Tensor::defined);
  Tensor value = Batch::padded(batch.has("values") ? values : unsqueeze(values, 0),
                               input.dim() - 1 - indexed + at.rank);
  if (!at.any_samples())
    return index_put_(input, after(Tensor(), at.list),
                      at.adjacent ? value : moved(value, 0, 1, at.rank), accumulate);
  return index_put_(input, numbered(batch, at), moved(value, at.place() + 1, at.rank, 1),
                    accumulate);
}

}  // namespace rushlight
