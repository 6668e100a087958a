// Owns what an OP block does when it is called, and the node that it leaves on the tape.
//
// The life of a call: Invoke::plain (or ::inplace) checks dtypes, makes the node when some input
// wants a gradient, runs the forward, ties the results to the node. OpNode::backward() later calls
// the block's gradients, each only if its argument wants one.
#pragma once

#include <algorithm>

#include "core/autograd/node.h"
#include "core/autograd/saved_tensor.h"
#include "core/ops/op_def.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

// Which arguments of a joint gradient d<"a", "b"> want theirs.
template <size_t N>
using GradMask = std::array<bool, N>;

// A formula in a gradient: one loop, or ops when its own gradient may be asked for.
template <class F, class... Args>
Tensor evaluate(const Args&... args) {
  if (is_grad_enabled()) return Tensor(F::template apply<Tensor, double, Tensor>(args...));
  return pointwise<F>(args...);
}

namespace detail {

// Defined in op_table.cpp.
[[noreturn]] void refuse_dtype(DType dtype, DTypeSet allowed, const Schema& schema);

inline bool wants_grad(const Tensor& t) { return t.defined() && gradient_edge_exists(t); }
inline bool wants_grad(TensorList list) {
  for (const Tensor& t : list)
    if (wants_grad(t)) return true;
  return false;
}
template <class T>
bool wants_grad(const T&) {
  return false;
}

template <class T>
double to_double(const T& value) {
  if constexpr (std::is_same_v<T, Scalar>) return value.template to<double>();
  else return double(value);
}

template <class Block>
class OpNode final : public Node {
  using P = Plan<Block>;
  using T = Types<Block>;
  static constexpr const Schema& schema = Block::schema;

  // Attributes are the arguments that are not tensors, in the order of the schema.
  static constexpr size_t kAttributes = [] {
    size_t n = 0;
    for (int i = 0; i < schema.arg_count; ++i) n += !is_tensor_type(schema.args[size_t(i)].type);
    return n;
  }();
  static constexpr auto kAttributeArgs = [] {
    std::array<size_t, kAttributes> at{};
    size_t n = 0;
    for (int i = 0; i < schema.arg_count; ++i)
      if (!is_tensor_type(schema.args[size_t(i)].type)) at[n++] = size_t(i);
    return at;
  }();
  template <size_t... I>
  static auto attributes_type(std::index_sequence<I...>)
      -> std::tuple<typename Kept<typename T::template Arg<kAttributeArgs[I]>>::type...>;
  using AttributeIndices = std::make_index_sequence<kAttributes>;
  using Attributes = decltype(attributes_type(AttributeIndices()));
  using GradientIndices = std::make_index_sequence<std::tuple_size_v<typename P::Gradients>>;
  using ReturnType = typename T::Return;

 public:
  const char* op() const override { return schema.name_text; }

  // Ties the node to its inputs and keeps what gradients will read. `overwritten` when the first
  // argument is about to be written in place.
  template <class... Args>
  void keep_inputs(bool overwritten, const Args&... args) {
    auto all = std::tie(args...);
    [&]<size_t... G>(std::index_sequence<G...>) {
      (add_edges<std::tuple_element_t<G, typename P::Gradients>>(all), ...);
    }(GradientIndices());
    [&]<size_t... S>(std::index_sequence<S...>) {
      (keep_input<S>(all, overwritten), ...);
    }(std::make_index_sequence<P::kSaved>());
    [&]<size_t... A>(std::index_sequence<A...>) {
      (keep_attribute(std::get<A>(attributes_), std::get<kAttributeArgs[A]>(all)), ...);
    }(AttributeIndices());
  }

  void keep_results(const ReturnType& result) {
    [&]<size_t... S>(std::index_sequence<S...>) {
      (keep_result<S>(result), ...);
    }(std::make_index_sequence<P::kSaved>());
  }

  void backward(TensorList grads, std::span<Tensor> input_grads) override {
    size_t edge = 0;
    [&]<size_t... G>(std::index_sequence<G...>) {
      (run<std::tuple_element_t<G, typename P::Gradients>>(grads, input_grads, edge), ...);
    }(GradientIndices());
  }

  void release_saved() override {
    std::apply([](auto&... item) { (release(item), ...); }, saved_);
  }

 private:
  template <class G, class All>
  void add_edges(const All& all) {
    if constexpr (G::exists) {
      [&]<size_t... I>(std::index_sequence<I...>) {
        (add_edge(std::get<size_t(schema.index_of(G::arguments[I]))>(all)), ...);
      }(std::make_index_sequence<G::arguments.size()>());
    }
  }
  void add_edge(const Tensor& t) { edges.push_back(t.defined() ? gradient_edge(t) : Edge{}); }
  void add_edge(TensorList list) {
    for (const Tensor& t : list) add_edge(t);
  }

  // Whether some gradient that will run reads saved item S.
  template <size_t S>
  bool is_read() const {
    size_t edge = 0;
    bool read = false;
    [&]<size_t... G>(std::index_sequence<G...>) {
      ((read |= is_read_by<S, std::tuple_element_t<G, typename P::Gradients>>(edge)), ...);
    }(GradientIndices());
    return read;
  }
  template <size_t S, class G>
  bool is_read_by(size_t& edge) const {
    if constexpr (!G::exists) {
      return false;
    } else {
      bool wanted = false;
      size_t count = edge_count<G>();
      for (size_t i = 0; i < count; ++i) wanted |= wants(edge + i);
      edge += count;
      return wanted && P::template reads<G>(S);
    }
  }
  // A list argument stands for all remaining edges.
  template <class G>
  size_t edge_count() const {
    constexpr size_t first = size_t(schema.index_of(G::arguments[0]));
    if constexpr (schema.args[first].type == ArgType::tensor_list) return edges.size();
    else return G::arguments.size();
  }

  template <size_t S, class All>
  void keep_input(const All& all, bool overwritten) {
    constexpr int arg = P::argument_of(S);
    if constexpr (arg >= 0) {
      const auto& value = std::get<size_t(arg)>(all);
      auto& item = std::get<S>(saved_);
      if constexpr (P::is_shape(S) && P::is_list(S)) {
        for (const Tensor& t : value) item.push_back(t.sizes());
      } else if constexpr (P::is_shape(S)) {
        item = value.sizes();
      } else if constexpr (P::is_list(S)) {
        if (!is_read<S>()) return;
        for (const Tensor& t : value) item.push_back(SavedTensor::input(t, false));
      } else {
        if (is_read<S>()) item = SavedTensor::input(value, overwritten && arg == 0);
      }
    }
  }
  template <size_t S>
  void keep_result(const ReturnType& result) {
    if constexpr (P::argument_of(S) < 0) {
      if (!is_read<S>()) return;
      constexpr size_t slot = size_t(P::result_of(S));
      if constexpr (Returns<ReturnType>::tuple)
        std::get<S>(saved_) = SavedTensor::result(std::get<slot>(result), slot);
      else std::get<S>(saved_) = SavedTensor::result(result, slot);
    }
  }
  template <class To, class From>
  static void keep_attribute(To& to, const From& from) {
    if constexpr (std::is_same_v<From, std::optional<ShapeRef>>) {
      if (from) to.emplace(*from);
    } else {
      to = To(from);
    }
  }

  template <class G>
  void run(TensorList grads, std::span<Tensor> input_grads, size_t& edge) {
    if constexpr (G::exists) {
      size_t first = edge, count = edge_count<G>();
      edge += count;
      bool wanted = false;
      for (size_t i = 0; i < count; ++i) wanted |= wants(first + i);
      if (!wanted) return;
      const auto& g = gradient_argument(grads);
      if constexpr (G::arguments.size() > 1) {
        GradMask<G::arguments.size()> mask;
        for (size_t i = 0; i < mask.size(); ++i) mask[i] = wants(first + i);
        assign(call_lambda<G>(g, mask), input_grads.subspan(first));
      } else if constexpr (IsFormula<typename G::function>::value) {
        input_grads[first] = call_formula<typename G::function::formula>(g);
      } else {
        assign(call_lambda<G>(g), input_grads.subspan(first));
      }
    }
  }
  static void assign(Tensor grad, std::span<Tensor> to) { to[0] = std::move(grad); }
  static void assign(std::vector<Tensor> grads, std::span<Tensor> to) {
    for (size_t i = 0; i < grads.size(); ++i) to[i] = std::move(grads[i]);
  }
  template <class... Tensors>
  static void assign(std::tuple<Tensors...> grads, std::span<Tensor> to) {
    size_t i = 0;
    std::apply([&](auto&... g) { ((to[i++] = std::move(g)), ...); }, grads);
  }

  // One result: its gradient. Several: all of them, undefined where nothing flowed.
  static decltype(auto) gradient_argument(const TensorList& grads) {
    if constexpr (Returns<ReturnType>::tensor) return (grads[0]);
    else return (grads);
  }

  static void release(SavedTensor& saved) { saved.reset(); }
  static void release(std::vector<SavedTensor>& list) {
    for (SavedTensor& saved : list) saved.reset();
  }
  static void release(const auto&) {}  // shapes cost little

  template <size_t S>
  decltype(auto) saved() const {
    const auto& item = std::get<S>(saved_);
    if constexpr (P::is_shape(S)) {
      return (item);
    } else if constexpr (P::is_list(S)) {
      std::vector<Tensor> list;
      for (const SavedTensor& saved : item) list.push_back(saved.unpack(*this));
      return list;
    } else {
      return item.unpack(*this);
    }
  }

  // Calls a gradient lambda with (g, saved..., attributes..., mask...), or without the attributes.
  template <class G, class Grad, class... Mask>
  auto call_lambda(const Grad& g, const Mask&... mask) {
    constexpr auto used = [] {
      std::array<size_t, kMaxArgs> at{};
      size_t n = 0;
      for (size_t i = 0; i < P::kSaved; ++i)
        if (P::template reads<G>(i)) at[n++] = i;
      return std::pair(at, n);
    }();
    typename G::function function;
    return [&]<size_t... S, size_t... A>(std::index_sequence<S...>, std::index_sequence<A...>) {
      if constexpr (std::is_invocable_v<
                        decltype(function), const Grad&, decltype(saved<used.first[S]>())...,
                        const std::tuple_element_t<A, Attributes>&..., const Mask&...>)
        return function(g, saved<used.first[S]>()..., std::get<A>(attributes_)..., mask...);
      else return function(g, saved<used.first[S]>()..., mask...);
    }(std::make_index_sequence<used.second>(), AttributeIndices());
  }

  template <class F>
  Tensor call_formula(const Tensor& g) {
    constexpr FormulaNames names = read_names(F::formula.params);
    static_assert(names.list[0] == "g", "the first parameter of a gradient formula is g");
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return evaluate<F>(g, formula_argument<F, I + 1>()...);
    }(std::make_index_sequence<names.count - 1>());
  }
  template <class F, size_t I>
  auto formula_argument() const {
    constexpr std::string_view name = read_names(F::formula.params).list[I];
    constexpr int saved_at = P::saved_index(name);
    if constexpr (saved_at >= 0) {
      return Tensor(saved<size_t(saved_at)>());
    } else {
      constexpr int arg = schema.index_of(name);
      static_assert(arg >= 0,
                    "a parameter of a gradient formula is g, something saved, or an attribute");
      constexpr size_t attribute = [] {
        size_t n = 0;
        while (kAttributeArgs[n] != size_t(arg)) ++n;
        return n;
      }();
      return to_double(std::get<attribute>(attributes_));
    }
  }

  // How item S of .saves is kept.
  template <size_t S>
  using Item = std::conditional_t<P::is_shape(S), Shape, SavedTensor>;
  template <size_t... S>
  static auto items_type(std::index_sequence<S...>)
      -> std::tuple<std::conditional_t<P::is_list(S), std::vector<Item<S>>, Item<S>>...>;

  decltype(items_type(std::make_index_sequence<P::kSaved>())) saved_;
  Attributes attributes_;
};

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
    if constexpr (P::kInplaceFlag >= 0 && P::kRecords)
      if (std::get<size_t(P::kInplaceFlag)>(std::tie(args...))) return inplace(args...);
    try {
      check_dtype(args...);
      if constexpr (!P::kRecords) {
        R result = forward(args...);
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
    try {
      const Tensor& self = first(args...);
      check_dtype(args...);
      prepare_write(args...);
      NodePtr node;
      bool records = is_grad_enabled() && (wants_grad(args) || ...);
      if constexpr (P::kRecords) {
        if (records) node = make_node(true, args...);
      } else {
        CHECK(!records, ErrorKind::kNotImplemented,
              "has no derivative, so it cannot write a tensor "
              "that requires grad. Use its form without the underscore.");
      }
      {
        GradModeGuard unrecorded(false);
        if constexpr (P::kWritesInto) {
          forward_into(&self, args...);
        } else {
          Tensor result = forward(args...);
          CHECK(result.sizes() == self.sizes(), "output with shape ", self.sizes(),
                " doesn't match the broadcast shape ", result.sizes());
          CHECK(can_cast(result.dtype(), self.dtype()), "result type ", dtype_name(result.dtype()),
                " can't be cast to the desired output type ", dtype_name(self.dtype()));
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

  static Result boxed(const Value* values) { return boxed_with<&plain>(values, Indices()); }
  static Result boxed_inplace(const Value* values) {
    return boxed_with<&inplace>(values, Indices());
  }

 private:
  using Indices = typename Types<Block>::Indices;
  template <auto function, size_t... I>
  static Result boxed_with(const Value* values, std::index_sequence<I...>) {
    return box(function(unbox<Args>(values[I])...));
  }

  static const char* inplace_name() {
    static const std::string name = std::string(Block::schema.name) + "_";
    return name.c_str();
  }
  static const Tensor& first(const Tensor& t, const auto&...) { return t; }

  static R forward(Args... args) {
    if constexpr (P::kWritesInto) return forward_into(nullptr, args...);
    else return Forward{}(args...);
  }
  static R forward_into(const Tensor* into, Args... args) {
    if constexpr (IsFormula<Forward>::value)
      return call_forward_formula<Block, typename Forward::formula>(into, args...);
    else return Forward{}(args..., into);
  }

  template <class First, class... Rest>
  static void check_dtype(const First& first, const Rest&...) {
    if constexpr (std::is_same_v<First, Tensor>)
      if (first.defined() && !Block::def.dtypes.contains(first.dtype())) [[unlikely]]
        refuse_dtype(first.dtype(), Block::def.dtypes, Block::schema);
  }
  static void check_dtype() {}

  static void prepare_write(Args... args) {
    check_inplace(first(args...), is_grad_enabled() && (wants_grad(args) || ...));
  }
  static void finish_write(const Tensor& self, const NodePtr& node) {
    if (!self.impl()->untracked)
      self.storage()->bump_version(P::kMutates ? Block::schema.name_text : inplace_name());
    if (!node) return;
    if constexpr (P::kRecords) static_cast<OpNode<Block>&>(*node).keep_results(self);
    rewrite_history(self, node);
  }

  static NodePtr make_node(bool overwritten, Args... args) {
    auto* node = new OpNode<Block>();
    NodePtr owner = NodePtr::adopt(node);
    node->keep_inputs(overwritten, args...);
    return owner;
  }

  static void finish(const R& result, const NodePtr& node, Args... args) {
    if constexpr (Returns<R>::tensor && Block::schema.args[0].type == ArgType::tensor)
      if (result.is(first(args...))) return;  // the input itself: nothing was done
    if constexpr (Block::def.is_view)
      tie_views(result, first(args...),
                is_grad_enabled() ? ViewOrigin::normal : ViewOrigin::made_without_grad);
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
  // Tensors made under inference_mode never enter the tape; an input handed through stays as it
  // was.
  template <class T>
  static void mark_inference(const T& result, const Args&... args) {
    auto mark = [&](const Tensor& t) {
      if (t.defined() && !(is_same(t, args) || ...)) t.impl()->inference = true;
    };
    if constexpr (Returns<R>::tensor) mark(result);
    else if constexpr (Returns<R>::list) std::for_each(result.begin(), result.end(), mark);
    else if constexpr (Returns<R>::tuple)
      std::apply([&](const auto&... t) { (mark(t), ...); }, result);
  }
  static bool is_same(const Tensor& t, const Tensor& arg) { return t.is(arg); }
  template <class Arg>
  static bool is_same(const Tensor&, const Arg&) {
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

template <class Block>
OpEntry make_entry(const char* file, int line) {
  using Call = Invoke<Block>;
  using P = Plan<Block>;
  constexpr auto& def = Block::def;
  OpEntry entry{Block::name, Block::schema, def.home,     def.aliases,  "",
                def.doc,     def.dtypes,    def.variants, &Call::boxed, nullptr,
                nullptr,     P::kRecords,   file,         line};
  if constexpr (Returns<typename Types<Block>::Return>::tensor && !P::kMutates &&
                Block::schema.arg_count > 0)
    if constexpr (Block::schema.args[0].type == ArgType::tensor)
      if (P::kWritesInto || (def.variants & inplace)) entry.call_inplace = &Call::boxed_inplace;
  if constexpr (IsFormula<typename P::Forward>::value)
    entry.formula = &P::Forward::formula::formula;
  return entry;
}

}  // namespace detail
}  // namespace rushlight
