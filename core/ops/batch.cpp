// Defines the batching rules, see batch.h.
#include "core/ops/batch.h"

#include <algorithm>
#include <numeric>

#include "core/autograd/needs.h"
#include "core/ops/joined_samples.h"
#include "core/ops/lift.h"
#include "core/tensor/generator.h"

namespace rushlight {
namespace {

// These sizes and then those of `rest`.
Shape joined(Shape sizes, ShapeRef rest) {
  for (int64_t size : rest) sizes.push_back(size);
  return sizes;
}

Tensor spread(const Tensor& t, int64_t size) { return expand(t, joined({size}, t.sizes())); }

bool names_dims(std::string_view arg) {
  static constexpr std::string_view names[] = {"dim",    "dims",      "dim0",       "dim1",
                                               "dim2",   "dimension", "start_dim",  "end_dim",
                                               "source", "axis",      "destination"};
  return std::ranges::find(names, arg) != std::end(names);
}

// How many dims a sample has without its N: 3 for the (C, H, W) of conv2d.
std::optional<int64_t> image_rank(std::string_view op) {
  for (size_t i = 0; i + 1 < op.size(); ++i)
    if (op[i] >= '1' && op[i] <= '3' && op[i + 1] == 'd') return op[i] - '0' + 1;
  return std::nullopt;
}

}  // namespace

Batch::Batch(const OpEntry& entry_in, const Level& level_in, std::span<const Value> args)
    : entry(entry_in),
      level(level_in),
      values_(args.begin(), args.end()),
      tensors_(args.size()),
      lists_(args.size()),
      in_lists_(args.size()),
      batched_(args.size()),
      shapes_(args.size()) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (auto* one = std::get_if<const Tensor*>(&args[i])) {
      batched_[i] = is_lifted_at(**one, level);
      set(i, lowered(**one, level));
    } else if (auto* list = std::get_if<TensorList>(&args[i])) {
      for (const Tensor& t : *list) {
        in_lists_[i].push_back(is_lifted_at(t, level));
        lists_[i].push_back(lowered(t, level));
      }
      batched_[i] = std::ranges::count(in_lists_[i], true) > 0;
      values_[i] = TensorList(lists_[i]);
    }
  }
  if (writes_input()) {  // the caller's stays as it is
    set(0, clone(full(size_t(0))));
    batched_[0] = true;
  }
}

size_t Batch::index(std::string_view arg) const { return size_t(entry.schema.index_of(arg)); }

Tensor Batch::full(size_t arg) const {
  return batched_[arg] || !is_tensor(arg) ? tensors_[arg] : spread(tensors_[arg], size());
}

Shape Batch::dims(ShapeRef dims, int64_t rank) {
  Shape all;
  for (int64_t d : dims) all.push_back(dim(d, rank));
  return all;
}

Shape Batch::with_samples(ShapeRef sizes) const { return joined({size()}, sizes); }

Tensor Batch::padded(Tensor samples, int64_t rank) {
  while (samples.dim() < rank + 1) samples = unsqueeze(samples, 1);
  return samples;
}

Tensor Batch::numbers(const Tensor& samples) const {
  Shape sizes(samples.sizes().size(), 1);
  sizes[0] = size();
  Tensor numbers = empty(sizes, DType::int64);
  std::iota(numbers.data<int64_t>(), numbers.data<int64_t>() + size(), 0);
  return numbers.device() == samples.device() ? numbers
                                              : needs::to_device(numbers, samples.device());
}

void Batch::set(size_t arg, Tensor value) {
  tensors_[arg] = std::move(value);
  values_[arg] = &tensors_[arg];
}

void Batch::spread_all() {
  for (size_t i = 0; i < values_.size(); ++i) {
    bool number = is_tensor(i) && tensors_[i].impl()->wrapped_number;
    if (is_tensor(i) && (batched_[i] || !number)) {
      set(i, full(i));
      batched_[i] = true;
    }
    for (size_t k = 0; k < lists_[i].size(); ++k) {
      if (lists_[i][k].defined() && !in_lists_[i][k]) lists_[i][k] = spread(lists_[i][k], size());
      in_lists_[i][k] = true;
    }
  }
}

Result Batch::call() const { return entry.call(values_.data()); }

Result Batch::run() {
  switch (entry.batch_rule) {
    case BatchRule::own: return entry.call_batched(*this, values_.data());
    case BatchRule::elements: return by_elements();
    case BatchRule::dims: return by_dims(false);
    case BatchRule::new_dim: return by_dims(true);
    case BatchRule::sizes: return by_sizes();
    case BatchRule::last_dims: return by_last_dims();
    case BatchRule::matrices: return by_matrices();
    case BatchRule::images: return by_images();
    case BatchRule::unsaid: break;
  }
  return by_loop();
}

Result Batch::by_loop() {
  detail::warn_of_loop(entry);
  return by_samples();
}

Result Batch::by_elements() {
  int64_t most = 0;
  for (size_t i = 0; i < values_.size(); ++i)
    if (is_tensor(i)) most = std::max(most, rank(i));
  // A sample without dims takes part in promotion by its kind only; with the samples as a dim it
  // would take part fully, so it gets the dtype that comes out.
  std::optional<DType> promoted;
  for (size_t i = 0; i < values_.size(); ++i)
    if (is_tensor(i) && (rank(i) > 0 || most == 0) && !tensors_[i].impl()->wrapped_number)
      promoted = promoted ? promote(*promoted, tensors_[i].dtype()) : tensors_[i].dtype();
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!is_tensor(i)) continue;
    DType dtype = tensors_[i].dtype();
    if (rank(i) == 0 && promoted && !(i == 0 && writes_input()) && !is_bool(dtype) &&
        can_cast(dtype, *promoted) && !tensors_[i].impl()->wrapped_number)
      set(i, cast(tensors_[i], *promoted));
    if (batched_[i]) set(i, padded(tensors_[i], most));
  }
  return call();
}

Result Batch::by_dims(bool new_dim) {
  spread_all();
  size_t first = 0;
  while (!is_tensor(first) && lists_[first].empty()) ++first;
  const Tensor& input = is_tensor(first) ? tensors_[first] : lists_[first][0];
  int64_t logical = input.dim() - 1;
  bool was_scalar = logical == 0 && !new_dim && is_tensor(first);
  if (was_scalar)  // dims 0 and -1 of a sample without dims
    for (size_t i = 0; i < values_.size(); ++i)
      if (is_tensor(i) && tensors_[i].dim() == 1) set(i, unsqueeze(tensors_[i], 1));
  int64_t range = std::max<int64_t>(logical, 1) + new_dim * (logical > 0);
  for (size_t i = 0; i < values_.size(); ++i) {
    const Arg& arg = entry.schema.args[i];
    if (!names_dims(arg.name)) continue;
    if (auto* one = std::get_if<int64_t>(&values_[i])) {
      values_[i] = dim(*one, range);
    } else if (auto* some = std::get_if<ShapeRef>(&values_[i]); some && !some->empty()) {
      shapes_[i] = dims(*some, range);
      values_[i] = ShapeRef(shapes_[i]);
    } else if (arg.type == ArgType::integer_optional) {  // the one dim of all elements
      set(first, reshape(tensors_[first], Shape{size(), -1}));
      values_[i] = int64_t(1);
    } else if (arg.type == ArgType::ints_optional ||
               (arg.has_default && arg.type == ArgType::ints)) {
      for (int64_t d = 1; d <= range; ++d) shapes_[i].push_back(d);
      values_[i] = ShapeRef(shapes_[i]);
    }
  }
  return each_tensor(call(), [&](const Tensor& t) {
    return was_scalar && t.dim() == 2 && t.size(1) == 1 ? squeeze(t, 1) : t;
  });
}

Result Batch::by_sizes() {
  for (size_t i = 0; i < values_.size(); ++i) {
    std::string_view name = entry.schema.args[i].name;
    auto* sizes = std::get_if<ShapeRef>(&values_[i]);
    if (!sizes || (name != "size" && name != "sizes" && name != "shape")) continue;
    shapes_[i] = with_samples(*sizes);
    values_[i] = ShapeRef(shapes_[i]);
  }
  return call();
}

Result Batch::by_last_dims() {
  for (size_t i = 1; i < values_.size(); ++i)
    if (batched_[i]) return by_loop();
  return rank(size_t(0)) == 0 ? by_samples() : call();  // the op has to refuse such a sample
}

Result Batch::by_matrices() {
  if (rank(size_t(0)) < 2) return by_samples();
  spread_all();
  return call();
}

Result Batch::by_images() {
  for (size_t i = 1; i < values_.size(); ++i)
    if (batched_[i]) return by_loop();
  if (image_rank(entry.schema.name) == rank(size_t(0))) return call();  // the samples are the N
  CHECK(rank(size_t(0)) > 0, ErrorKind::kValue, "expects a tensor of shape (N, C, ...), got ()");
  int64_t each = tensors_[0].size(1);
  set(0, joined_samples(tensors_[0]));
  return each_tensor(call(), [&](const Tensor& t) { return parted_samples(t, size(), each); });
}

Result Batch::by_samples(Generator* generator) {
  CHECK(size() > 0, "has no batching rule, so vmap over 0 samples is not possible.");
  std::vector<Result> results;
  uint64_t start = generator ? generator->offset() : 0;
  for (int64_t n = 0; n < size(); ++n) {
    std::vector<Value> values = values_;
    std::vector<Tensor> samples(values.size());
    std::vector<std::vector<Tensor>> lists = lists_;
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_tensor(i) && batched_[i]) values[i] = &(samples[i] = select(tensors_[i], 0, n));
      for (size_t k = 0; k < lists[i].size(); ++k)
        if (in_lists_[i][k]) lists[i][k] = select(lists[i][k], 0, n);
      if (!lists[i].empty()) values[i] = TensorList(lists[i]);
    }
    if (generator) generator->set_offset(start);
    results.push_back(entry.call(values.data()));
  }
  return each_tensor(Result(results[0]), [&](const Tensor&, size_t k) {
    std::vector<Tensor> samples;
    for (const Result& result : results) {
      auto* list = std::get_if<std::vector<Tensor>>(&result);
      samples.push_back(list ? list->at(k) : std::get<Tensor>(result));
    }
    return stack(samples, 0);
  });
}

}  // namespace rushlight
