// Defines which calls Python runs, and what autograd does around them.
#include "core/ops/dispatch.h"

#include <algorithm>

#include "core/autograd/call_watch.h"
#include "core/autograd/node.h"
#include "core/ops/lift.h"
#include "core/ops/visit_tensors.h"
#include "core/tensor/generator.h"

namespace rushlight {
namespace {

template <class Is>
bool is_any(std::span<const Value> args, const Is& is) {
  bool found = false;
  visit_tensors(args, [&](const Tensor& t) { found |= t.defined() && is(t); });
  return found;
}

bool is_mutating(const OpEntry& entry) {
  return entry.schema.arg_count > 0 && entry.schema.args[0].type == ArgType::tensor_mutable;
}

const Tensor* first_of(std::span<const Value> args) {
  const Tensor* const* first = args.empty() ? nullptr : std::get_if<const Tensor*>(&args[0]);
  return first ? *first : nullptr;
}

// What has been written is that tensor, whatever the handler returned.
Result finish_write(const OpEntry& entry, const Tensor& self, const NodePtr& node,
                    uint32_t version) {
  if (!self.impl()->untracked && self.storage()->version() == version)
    self.storage()->bump_version(entry.schema.name_text);
  if (node && is_differentiable(self.dtype())) {
    entry.keep_results(*node, self, true);
    rewrite_history(self, node);
  }
  return self;
}

// A tensor of the same sizes and dtype on meta.
Tensor outline(const Tensor& t) {
  if (!t.defined()) return t;
  Tensor meta = empty_strided(t.sizes(), t.strides(), t.dtype(), Device{DeviceType::meta});
  meta.impl()->wrapped_number = t.impl()->wrapped_number;
  return meta;
}

// What the op gives for arguments of these sizes and dtypes, on meta; nothing where their elements
// must be known.
std::optional<Result> outline(const OpEntry& entry, std::span<const Value> args) {
  if (is_any(args, [](const Tensor& t) { return t.is_sparse(); })) return std::nullopt;
  std::vector<Value> values(args.begin(), args.end());
  std::vector<Tensor> tensors(args.size());
  std::vector<std::vector<Tensor>> lists(args.size());
  Generator* generator = &default_generator();
  for (size_t i = 0; i < args.size(); ++i) {
    if (entry.schema.args[i].type == ArgType::device_optional) {
      values[i] = Device{DeviceType::meta};
    } else if (auto* one = std::get_if<const Tensor*>(&args[i])) {
      values[i] = &(tensors[i] = outline(**one));
    } else if (auto* list = std::get_if<TensorList>(&args[i])) {
      for (const Tensor& t : *list) lists[i].push_back(outline(t));
      values[i] = TensorList(lists[i]);
    } else if (auto* given = std::get_if<Generator*>(&args[i])) {
      generator = *given;
    }
  }
  struct Scope {
    uint8_t watchers = std::exchange(call_watch.watchers, uint8_t(0));
    Generator* generator;
    uint64_t offset = generator->offset();
    ~Scope() {
      call_watch.watchers = watchers;
      generator->set_offset(offset);
    }
  } unwatched{.generator = generator};
  GradModeGuard unrecorded(false);
  try {
    return entry.call(values.data());
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The ops that an op is made of trust what the others gave. So what a handler returns looks like
// what the op would have given, wherever that can be told.
void check_results(const OpEntry& entry, std::span<const Value> args, TensorList results) {
  std::optional<Result> outlined = outline(entry, args);
  if (!outlined) return;
  auto* one = std::get_if<Tensor>(&*outlined);
  TensorList expected = one ? TensorList(one, 1) : TensorList(std::get<1>(*outlined));
  CHECK(results.size() == expected.size(), "__torch_dispatch__ returned ", results.size(),
        " tensors for ", entry.schema.name, ", which gives ", expected.size(), ".");
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor &found = results[i], &like = expected[i];
    if (!found.defined() && !like.defined()) continue;
    CHECK(found.defined() && like.defined() && found.sizes() == like.sizes() &&
              found.dtype() == like.dtype(),
          "__torch_dispatch__ returned ",
          found.defined() ? std::string(dtype_name(found.dtype())) + " of shape " : "nothing",
          found.defined() ? found.sizes() : Shape(), " for ", entry.schema.name,
          like.defined() ? ", whose result is " : ", which gives none.",
          like.defined() ? std::string(dtype_name(like.dtype())) + " of shape " : "",
          like.defined() ? like.sizes() : Shape(),
          ". A handler returns what has the shape and the dtype of the op's result.");
  }
}

// Makes a handler's result a view of the tensor whose memory it shares. The handler ran unrecorded:
// if its ops made a view, that has an origin which forbids writes.
void tie_view(const Tensor& view, const Tensor& input, bool one_of_many) {
  if (!(view.storage() == input.storage()) || view.is(input)) return;
  get_meta(view).view.reset();
  set_view(view, input,
           one_of_many           ? ViewOrigin::one_of_many
           : is_grad_enabled()   ? ViewOrigin::normal
           : grad_mode.inference ? ViewOrigin::made_in_inference
                                 : ViewOrigin::made_without_grad);
}

bool is_composed(const OpEntry& entry) {
  if (!entry.composed || entry.seen == Seen::whole) return false;
  auto args = std::span(entry.schema.args).first(size_t(entry.schema.arg_count));
  bool has_tensors =
      std::ranges::any_of(args, [](const Arg& arg) { return is_tensor_type(arg.type); });
  // What is made from nothing is made by a kernel.
  return has_tensors || !entry.schema.returns[0].type.starts_with("Tensor");
}

bool is_recorded(std::span<const Value> args) {
  return is_grad_enabled() && is_any(args, gradient_edge_exists);
}

bool does_nothing(const OpEntry& entry, std::span<const Value> args) {
  const Tensor* input = entry.returns_input ? first_of(args) : nullptr;
  return input && entry.returns_input(*input, args[1]);
}

// The op that is to run in parts when it is called next, and the one that does.
thread_local const OpEntry *parted_next = nullptr, *parted = nullptr;

Result call_in_parts(const OpEntry& entry, std::span<const Value> args) {
  struct Scope {
    const OpEntry* outer;
    ~Scope() { parted = outer, parted_next = nullptr; }
  } scope{std::exchange(parted, &entry)};
  parted_next = &entry;
  return entry.call(args.data());
}

}  // namespace

bool is_run_in_parts(const OpEntry& entry) {
  if (std::exchange(parted_next, nullptr) == &entry) return true;
  return is_composed(entry) && entry.seen != Seen::whole_unrecorded;
}

bool is_seen_by_modes(const OpEntry& entry, std::span<const Value> args) {
  if (entry.seen == Seen::never) return false;
  bool whole = entry.seen == Seen::whole_unrecorded && !is_recorded(args);
  if ((is_composed(entry) && !whole) || does_nothing(entry, args)) return false;
  return !is_any(args, is_lifted) && !(entry.draws && inside_batch_level());
}

Result call_dispatched(const OpEntry& entry, CallForm form, std::span<const Value> args,
                       const Tensor* out) {
  bool is_parted = form == CallForm::plain && entry.seen == Seen::whole_unrecorded;
  if (is_parted && parted != &entry && is_recorded(args)) return call_in_parts(entry, args);
  if (does_nothing(entry, args)) return *first_of(args);
  bool writes = form == CallForm::inplace || (form == CallForm::plain && is_mutating(entry));
  bool records = form != CallForm::into && is_recorded(args);
  const Tensor* first = first_of(args);
  Tensor self = writes && first ? *first : Tensor();
  if (self.defined()) check_rewrite(self, records);
  NodePtr node;
  if (records && entry.make_node) node = entry.make_node(args.data(), writes, gradient_edge);
  uint32_t version = self.defined() ? self.storage()->version() : 0;
  Result result = [&] {
    GradModeGuard unrecorded(false);
    return call_handler(entry, form, args, out);
  }();
  if (self.defined()) return finish_write(entry, self, node, version);

  auto* one = std::get_if<Tensor>(&result);
  auto* many = std::get_if<std::vector<Tensor>>(&result);
  if (!one && !many) return result;
  std::span<Tensor> results = one ? std::span(one, 1) : std::span(*many);
  if (form == CallForm::plain) check_results(entry, args, results);
  if (first && one && one->is(*first)) return result;  // the input itself: nothing was done
  for (Tensor& t : results) {
    auto is_it = [&](const Tensor& arg) { return arg.is(t); };
    bool is_taken = node && t.defined() && (is_any(args, is_it) || gradient_edge_exists(t));
    if (is_taken) t = detach(t);
    if (t.defined() && entry.is_view && first) tie_view(t, *first, !one);
  }
  if (!node) return result;
  entry.keep_results(*node, result, true);
  for (uint32_t slot = 0; slot < results.size(); ++slot) {
    const Tensor& t = results[slot];
    if (t.defined() && is_differentiable(t.dtype())) set_history(t, node, slot);
    else if (node->results.size() <= slot) node->results.resize(slot + 1);
  }
  return result;
}

}  // namespace rushlight
