// Owns what an OP block does when it is called.
//
// The life of a call: Invoke::plain (or ::inplace) lets watchers see it, checks dtypes, makes the
// node when some input wants a gradient, runs the forward, ties the results to the node.
#pragma once

#include <algorithm>
#include <array>

#include "core/autograd/needs.h"
#include "core/ops/batch.h"
#include "core/ops/lift.h"
#include "core/ops/op_node.h"
#include "core/ops/sparse/sparse.h"
#include "core/ops/watched_call.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace detail {

// Defined in op_table.cpp.
[[noreturn]] void refuse_dtype(DType dtype, DTypeSet allowed, const Schema& schema);
// Makes what an op returned the new content of the tensor that it writes, which is sparse or is
// written from a sparse one.
void replace(const Tensor& self, const Tensor& result);

inline bool is_hollow(const Tensor& t) { return t.defined() && t.is_hollow(); }
inline bool is_hollow(TensorList list) {
  return std::any_of(list.begin(), list.end(), [](auto& t) { return is_hollow(t); });
}
template <class T>
constexpr bool is_hollow(const T&) {
  return false;
}
// What kind of hollow tensor an argument of an op is, or a list has.
inline bool is_sparse(const Tensor& t) { return t.defined() && t.is_sparse(); }
inline bool is_any_lifted(const Tensor& t) { return is_lifted(t); }
inline bool is_led_away(const Tensor& t) { return is_lifted(t) || is_dispatched(t); }
bool is_sparse(TensorList list);
bool is_any_lifted(TensorList list);
bool is_led_away(TensorList list);
template <class T>
constexpr bool is_sparse(const T&) {
  return false;
}
template <class T>
constexpr bool is_any_lifted(const T&) {
  return false;
}
template <class T>
constexpr bool is_led_away(const T&) {
  return false;
}

// Calls a forward that is a formula with the arguments that its parameters name.
template <class Block, class F, class... Args>
Tensor call_forward_formula(const Tensor* into, const Args&... args) {
  constexpr FormulaNames names = read_names(F::formula.params);
  constexpr size_t operand_count = F::formula.counts.operands;
  auto all = std::tie(args...);
  std::array<const Tensor*, operand_count> operands;
  std::array<Scalar, names.count - operand_count> scalars;
  auto place = [&](size_t i, const auto& arg) {
    if constexpr (std::is_same_v<std::decay_t<decltype(arg)>, Tensor>) operands[i] = &arg;
    else if constexpr (std::is_same_v<std::decay_t<decltype(arg)>, Scalar>)
      scalars[i - operand_count] = arg;
    else scalars[i - operand_count] = Scalar(double(arg));
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    (place(I, std::get<size_t(Block::schema.index_of(names.list[I]))>(all)), ...);
  }(std::make_index_sequence<names.count>());
  return pointwise(F::formula, operands, scalars, into);
}

template <class Block, class Pointer = typename Types<Block>::Pointer>
struct Invoke;

template <class Block, class R, class... Args>
struct Invoke<Block, R (*)(Args...)> {
  using P = Plan<Block>;
  using Forward = typename P::Forward;

  static R plain(Args... args) {
    if (call_watch.watchers & P::kWatchers) [[unlikely]]
      if (call_watch.sees_call()) return watched(args...);
    if constexpr (P::kInplaceFlag >= 0 && P::kRecords)
      if (std::get<size_t(P::kInplaceFlag)>(std::tie(args...))) return inplace(args...);
    try {
      if ((is_hollow(args) || ...)) [[unlikely]] {
        if ((is_led_away(args) || ...)) return led_away(args...);
        if constexpr (!P::kSparseByForward)
          if ((is_sparse(args) || ...)) return sparse(nullptr, args...);
      }
      if constexpr (P::kDraws)
        if (inside_batch_level()) [[unlikely]]
          return led_away(args...);
      check_dtype(args...);
      if constexpr (!P::kRecords) {
        R result = forward(args...);
        if constexpr (!Block::def.is_view) own(result);
        if (grad_mode.inference) [[unlikely]]
          mark_inference(result, args...);
        return result;
      } else {
        NodePtr node;
        if constexpr (P::kMutates) prepare_write(args...);
        if (is_grad_enabled() && (wants_grad(args) || ...)) node = make_node(P::kMutates, args...);
        R result = [&] {
          GradModeGuard unrecorded(false);
          return forward(args...);
        }();
        if constexpr (!Block::def.is_view) own(result);
        if constexpr (P::kMutates) finish_write(result, node);
        else finish(result, node, args...);
        if (grad_mode.inference) [[unlikely]]
          mark_inference(result, args...);
        return result;
      }
    } catch (Error& error) {
      error.name_op(Block::schema.name_text);
      throw;
    }
  }

  // The in-place form: the result goes into the first argument.
  static R inplace(Args... args) {
    if (call_watch.watchers & P::kWatchers) [[unlikely]]
      if (call_watch.sees_call()) return watched_inplace(args...);
    try {
      const Tensor& self = first(args...);
      if ((is_hollow(args) || ...)) [[unlikely]] {
        if ((is_led_away(args) || ...)) return led_away_inplace(args...);
        if ((is_sparse(args) || ...)) return inplace_sparse(self, args...);
      }
      check_dtype(args...);
      prepare_write(args...);
      NodePtr node;
      bool records = is_grad_enabled() && (wants_grad(args) || ...);
      if constexpr (P::kRecords) {
        if (records) node = make_node(true, args...);
      } else if (records) {  // made of other ops, which record themselves, or without a gradient
        Tensor result = forward(args...);
        check_fits(result, self);
        needs::copy_(self, result);
        return self;
      }
      {
        GradModeGuard unrecorded(false);
        if constexpr (P::kWritesInto) {
          forward_into(&self, args...);
        } else {
          Tensor result = forward(args...);
          check_fits(result, self);
          copy_into(self, result);
        }
      }
      finish_write(self, node);
      return self;
    } catch (Error& error) {
      error.name_op(inplace_name());
      throw;
    }
  }

  // The out= form: writes into `out` if the result has its shape; returns the result elsewhere if
  // not. Never recorded.
  static R into(const Tensor& out, Args... args) {
    if (call_watch.watchers & P::kWatchers) [[unlikely]]
      if (call_watch.sees_call()) return watched_into(out, args...);
    try {
      if ((is_hollow(args) || ...)) [[unlikely]]
        return plain(args...);
      check_dtype(args...);
      GradModeGuard unrecorded(false);
      const Tensor* operands[] = {operand(args)...};
      return forward_into(has_broadcast_shape(out, operands) ? &out : nullptr, args...);
    } catch (Error& error) {
      error.name_op(Block::schema.name_text);
      throw;
    }
  }

  static NodePtr boxed_node(const Value* values, bool overwritten, const EdgeOf& edge_of) {
    auto* node = new OpNode<Block>();
    NodePtr owner = NodePtr::adopt(node);
    [&]<size_t... I>(std::index_sequence<I...>) {
      node->keep_inputs(overwritten, edge_of, unbox<Args>(values[I])...);
    }(Indices());
    return owner;
  }
  static void boxed_keep(Node& node, const Result& result, bool are_own) {
    auto as_input = [](const Tensor& t, uint32_t) { return SavedTensor::input(t, false); };
    static_cast<OpNode<Block>&>(node).keep_results(unbox_result<R>(Result(result)),
                                                   are_own ? &SavedTensor::result : +as_input);
  }
  static Result boxed_batched(const Batch& batch, const Value* values) {
    static_assert(std::is_invocable_r_v<R, typename P::Batching, const Batch&, Args...>,
                  "the function .batch does not match the schema string");
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return box(R(Block::def.batch(batch, unbox<Args>(values[I])...)));
    }(Indices());
  }

  static Result boxed(const Value* values) { return boxed_with<&plain>(values, Indices()); }
  static Result boxed_inplace(const Value* values) {
    return boxed_with<&inplace>(values, Indices());
  }
  static Result boxed_into(const Value* values, const Tensor& out) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return Result(into(out, unbox<Args>(values[I])...));
    }(Indices());
  }

 private:
  using Indices = typename Types<Block>::Indices;
  template <auto function, size_t... I>
  static Result boxed_with(const Value* values, std::index_sequence<I...>) {
    return box(function(unbox<Args>(values[I])...));
  }

  static const char* inplace_name() {
    static constexpr auto name = [] {
      std::array<char, sizeof(Schema::name_text) + 1> text{};
      std::ranges::copy(Block::schema.name, text.begin());
      text[Block::schema.name.size()] = '_';
      return text;
    }();
    return name.data();
  }
  static const Tensor& first(const Tensor& t, const auto&...) { return t; }
  static const Tensor* operand(const Tensor& t) { return t.defined() ? &t : nullptr; }
  static const Tensor* operand(const auto&) { return nullptr; }

  static R forward(Args... args) {
    if constexpr (P::kWritesInto) return forward_into(nullptr, args...);
    else return Forward{}(args...);
  }
  static R forward_into(const Tensor* into, Args... args) {
    if constexpr (IsFormula<Forward>::value)
      return call_forward_formula<Block, typename Forward::formula>(into, args...);
    else return Forward{}(args..., into);
  }

  [[gnu::cold]] static R watched(Args... args) {
    std::array<Value, sizeof...(Args)> values{to_value(args)...};
    WatchedCall call(Block::schema.name_text, Block::def.autocast, values);
    if (auto result = call.dispatch(Block::name, CallForm::plain))
      return unbox_result<R>(std::move(*result));
    return unbox_result<R>(boxed(values.data()));
  }
  // What is written keeps its dtype, so nothing is cast.
  [[gnu::cold]] static R watched_inplace(Args... args) {
    std::array<Value, sizeof...(Args)> values{to_value(args)...};
    WatchedCall call(inplace_name(), Block::def.autocast.without_casts(), values);
    if (auto result = call.dispatch(Block::name, CallForm::inplace))
      return unbox_result<R>(std::move(*result));
    return inplace(args...);
  }
  [[gnu::cold]] static R watched_into(const Tensor& out, Args... args) {
    std::array<Value, sizeof...(Args)> values{to_value(args)...};
    WatchedCall call(Block::schema.name_text, Block::def.autocast.without_casts(), values);
    if (auto result = call.dispatch(Block::name, CallForm::into, &out))
      return unbox_result<R>(std::move(*result));
    return into(out, args...);
  }

  static bool is_only_dispatched(Args... args) {
    return (is_led_away(args) || ...) && !(is_any_lifted(args) || ...);
  }
  // What the op does when an argument is lifted or dispatched, see Note [Lifted tensors] and
  // Note [Dispatch to Python].
  [[gnu::cold]] static R led_away(Args... args) {
    if constexpr (P::kComposed)
      if (is_only_dispatched(args...) ? is_run_in_parts(entry_of(Block::name)) : !P::kDraws) try {
          return forward(args...);
        } catch (const NeedsElements&) {  // not made of ops alone
        }
    if constexpr (P::kMutates) {
      return led_away_inplace(args...);
    } else {
      const std::array<Value, sizeof...(Args)> values{to_value(args)...};
      return unbox_result<R>(call_led_away(entry_of(Block::name), values));
    }
  }
  [[gnu::cold]] static R led_away_inplace(Args... args) {
    if (!is_only_dispatched(args...)) return lifted_inplace(args...);
    const OpEntry& entry = entry_of(Block::name);
    if constexpr (P::kComposed && !P::kMutates && Returns<R>::tensor)
      if (is_run_in_parts(entry)) {
        const Tensor& self = first(args...);
        Tensor result = forward(args...);
        check_fits(result, self);
        needs::copy_(self, result);
        return self;
      }
    const std::array<Value, sizeof...(Args)> values{to_value(args)...};
    return unbox_result<R>(
        call_dispatched(entry, P::kMutates ? CallForm::plain : CallForm::inplace, values));
  }
  [[gnu::cold]] static R lifted_inplace(Args... args) {
    const Tensor& self = first(args...);
    std::array<Value, sizeof...(Args)> values{to_value(args)...};
    if constexpr (P::kInplaceFlag >= 0) values[size_t(P::kInplaceFlag)] = false;
    Tensor before;  // what a node keeps of the input must not be overwritten
    if (!P::kMutates && is_grad_enabled() && (wants_grad(args) || ...)) {
      before = needs::clone(self);
      values[0] = &before;
    }
    Result result = P::kMutates ? call_lifted(entry_of(Block::name), values) : boxed(values.data());
    if constexpr (!Returns<R>::tensor) {
      ASSERT(false);
    } else {
      check_fits(std::get<Tensor>(result), self);
      overwrite_lifted(self, std::get<Tensor>(result));
      return self;
    }
  }

  // What the op does when an argument is sparse.
  [[gnu::cold]] static R sparse(const Tensor* into, Args... args) {
    if constexpr (P::kSparseByForward) return plain(args...);
    else if constexpr (P::kSparseByEntries) return by_entries(args...);
    else if constexpr (!std::is_same_v<typename P::Sparse, RefusesSparse>)
      return call_sparse(into, args...);
    else (refuse_if_sparse(args), ...);
    __builtin_unreachable();
  }
  static R call_sparse([[maybe_unused]] const Tensor* into, Args... args) {
    using Function = typename P::Sparse;
    static_assert(std::is_invocable_r_v<R, Function, Args...> ||
                      std::is_invocable_r_v<R, Function, Args..., const Tensor*>,
                  "the function .sparse does not match the schema string");
    if constexpr (std::is_invocable_v<Function, Args..., const Tensor*>)
      return Block::def.sparse(args..., into);
    else return Block::def.sparse(args...);
  }
  template <class... Rest>
  static Tensor by_entries(const Tensor& input, const Rest&... rest) {
    (refuse_if_sparse(rest), ...);
    constexpr bool coalesces = std::is_same_v<typename P::Sparse, ByValues>;
    Tensor entries = coalesces ? coalesced(input) : input;
    Tensor values = sparse_values(entries), result = plain(values, rest...);
    // What was done in place has a history, although it is the same tensor.
    if constexpr (P::kInplaceFlag < 0)
      if (result.is(values)) return entries;
    return sparse_like(result, entries);
  }
  static void refuse_if_sparse(const Tensor& t) {
    if (is_sparse(t)) refuse_sparse(t);
  }
  static void refuse_if_sparse(TensorList list) {
    for (const Tensor& t : list) refuse_if_sparse(t);
  }
  static void refuse_if_sparse(const auto&) {}

  [[gnu::cold]] static R inplace_sparse(const Tensor& self, Args... args) {
    prepare_write(args...);
    bool records = is_grad_enabled() && (wants_grad(args) || ...);
    Tensor result = sparse(records || self.is_sparse() ? nullptr : &self, args...);
    if (!result.is(self)) {
      check_fits(result, self);
      replace(self, result);
    }
    if (!self.impl()->untracked) self.storage()->bump_version(inplace_name());
    return self;
  }

  template <class First, class... Rest>
  static void check_dtype(const First& first, const Rest&...) {
    if constexpr (std::is_same_v<First, Tensor>)
      if (first.defined() && !Block::def.dtypes.contains(first.dtype())) [[unlikely]]
        refuse_dtype(first.dtype(), Block::def.dtypes, Block::schema);
  }
  static void check_dtype() {}

  static void check_fits(const Tensor& result, const Tensor& self) {
    CHECK(result.sizes() == self.sizes(), "output with shape ", self.sizes(),
          " doesn't match the broadcast shape ", result.sizes());
    CHECK(can_cast(result.dtype(), self.dtype()), "result type ", dtype_name(result.dtype()),
          " can't be cast to the desired output type ", dtype_name(self.dtype()));
  }
  static void prepare_write(Args... args) {
    check_inplace(first(args...), is_grad_enabled() && (wants_grad(args) || ...), Block::def.fills);
  }
  static void finish_write(const Tensor& self, const NodePtr& node) {
    if (!self.impl()->untracked)
      self.storage()->bump_version(P::kMutates ? Block::schema.name_text : inplace_name());
    if (!node || !is_differentiable(self.dtype())) return;
    if constexpr (P::kRecords) static_cast<OpNode<Block>&>(*node).keep_results(self);
    rewrite_history(self, node);
  }

  static NodePtr make_node(bool overwritten, Args... args) {
    auto* node = new OpNode<Block>();
    NodePtr owner = NodePtr::adopt(node);
    node->keep_inputs(overwritten, &gradient_edge, args...);
    return owner;
  }

  static void finish(const R& result, const NodePtr& node, Args... args) {
    if constexpr (Returns<R>::tensor && Block::schema.args[0].type == ArgType::tensor)
      if (result.is(first(args...))) return;  // the input itself: nothing was done
    if constexpr (Block::def.is_view)
      tie_views(result, first(args...),
                is_grad_enabled()     ? ViewOrigin::normal
                : grad_mode.inference ? ViewOrigin::made_in_inference
                                      : ViewOrigin::made_without_grad);
    if (!node) return;
    static_cast<OpNode<Block>&>(*node).keep_results(result);
    if constexpr (Returns<R>::tensor) {
      set_result(result, node, 0);
    } else if constexpr (Returns<R>::list) {
      for (size_t i = 0; i < result.size(); ++i) set_result(result[i], node, uint32_t(i));
    } else if constexpr (Returns<R>::tuple) {
      uint32_t slot = 0;
      std::apply([&](const auto&... t) { (set_result(t, node, slot++), ...); }, result);
    }
  }
  static void own([[maybe_unused]] const R& result) {
    if constexpr (Returns<R>::tensor) own_one(result);
    else if constexpr (Returns<R>::tuple) std::apply([](auto&... t) { (own_one(t), ...); }, result);
  }
  static void own_one(const Tensor& t) {
    if (t.defined() && t.impl()->autograd) adopt_base(t);
  }
  // Tensors made under inference_mode never enter the tape; a view of an input is what that is.
  template <class T>
  static void mark_inference(const T& result, const Args&... args) {
    auto mark = [&](const Tensor& t) {
      if (t.defined() && !(looks_into(t, args) || ...)) t.impl()->inference = true;
    };
    if constexpr (Returns<R>::tensor) mark(result);
    else if constexpr (Returns<R>::list) std::for_each(result.begin(), result.end(), mark);
    else if constexpr (Returns<R>::tuple)
      std::apply([&](const auto&... t) { (mark(t), ...); }, result);
  }
  static bool looks_into(const Tensor& t, const Tensor& arg) {
    return arg.defined() && t.storage() == arg.storage();
  }
  template <class Arg>
  static bool looks_into(const Tensor&, const Arg&) {
    return false;
  }
  static void set_result(const Tensor& t, const NodePtr& node, uint32_t slot) {
    if (t.defined() && is_differentiable(t.dtype())) set_history(t, node, slot);
    else if (node->results.size() <= slot) node->results.resize(slot + 1);
  }
  static void tie_views(const Tensor& view, const Tensor& input, ViewOrigin origin) {
    if (view.storage() == input.storage() && !view.is(input)) set_view(view, input, origin);
  }
  static void tie_views(const std::vector<Tensor>& views, const Tensor& input, ViewOrigin) {
    for (const Tensor& view : views) set_view(view, input, ViewOrigin::one_of_many);
  }
};

template <BatchRule rule>
constexpr BatchRule rule_of(ByRule<rule>) {
  return rule;
}
template <class Own>
constexpr BatchRule rule_of(Own) {
  return BatchRule::own;
}

template <class Block>
OpEntry make_entry(const char* file, int line) {
  using Call = Invoke<Block>;
  using P = Plan<Block>;
  constexpr auto& def = Block::def;
  OpEntry entry{.cpp_name = Block::name,
                .schema = Block::schema,
                .home = def.home,
                .aliases = def.aliases,
                .doc = def.doc,
                .dtypes = def.dtypes,
                .variants = def.variants,
                .call = &Call::boxed,
                .batch_rule = rule_of(def.batch),
                .is_view = def.is_view,
                .draws = P::kDraws,
                .returns_input = def.returns_input,
                .differentiable = P::kRecords,
                .composed = P::kComposed,
                .seen = def.seen,
                .autocast = def.autocast,
                .no_gpu = def.gpu.missing,
                .file = file,
                .line = line};
  if constexpr (Returns<typename Types<Block>::Return>::tensor && !P::kMutates &&
                Block::schema.arg_count > 0)
    if constexpr (Block::schema.args[0].type == ArgType::tensor)
      if (P::kWritesInto || (def.variants & inplace)) entry.call_inplace = &Call::boxed_inplace;
  if constexpr (P::kWritesInto) entry.call_into = &Call::boxed_into;
  if constexpr (IsFormula<typename P::Forward>::value) {
    entry.formula = &P::Forward::formula::formula;
    entry.schema.take_numbers();
    if (entry.batch_rule == BatchRule::unsaid) entry.batch_rule = BatchRule::elements;
  }
  if constexpr (rule_of(typename P::Batching()) == BatchRule::own)
    entry.call_batched = &Call::boxed_batched;
  if constexpr (P::kRecords) {
    entry.make_node = &Call::boxed_node;
    entry.keep_results = &Call::boxed_keep;
  }
  return entry;
}

}  // namespace detail
}  // namespace rushlight
