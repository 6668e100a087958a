// Owns the node that an op leaves on the tape: what it keeps, and how its gradients are run.
//
// OpNode::backward() calls the block's gradients, each only if the walk asks for it.
#pragma once

#include <algorithm>

#include "core/autograd/node.h"
#include "core/autograd/saved_tensor.h"
#include "core/ops/op_def.h"

namespace rushlight {

// Which arguments of a joint gradient d<"a", "b"> want theirs.
template <size_t N>
using GradMask = std::array<bool, N>;

// A formula in a gradient: one loop, or ops when its own gradient may be asked for.
template <class F, class... Args>
Tensor evaluate(const Args&... args) {
  if (gradients_as_ops()) return Tensor(F::template apply<Tensor, double, Tensor>(args...));
  return pointwise<F>(args...);
}

namespace detail {

// The gradient and a zero of `input`, so that the second gradient of lines is zero and not missing.
// Defined in op_table.cpp.
Tensor with_zero_of(const Tensor& input, const Tensor& gradient);

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
  const char* named_for() const override { return Block::def.node ? Block::def.node : op(); }

  // Ties the node to its inputs and keeps what gradients will read. `overwritten` when the first
  // argument is about to be written in place. edge_of(tensor) is where the gradient of one goes.
  template <class EdgeOf, class... Args>
  void keep_inputs(bool overwritten, const EdgeOf& edge_of, const Args&... args) {
    auto all = std::tie(args...);
    [&]<size_t... G>(std::index_sequence<G...>) {
      (add_edges<std::tuple_element_t<G, typename P::Gradients>>(edge_of, all), ...);
    }(GradientIndices());
    [&]<size_t... S>(std::index_sequence<S...>) {
      (keep_input<S>(all, overwritten), ...);
    }(std::make_index_sequence<P::kSaved>());
    [&]<size_t... A>(std::index_sequence<A...>) {
      (keep_attribute(std::get<A>(attributes_), std::get<kAttributeArgs[A]>(all)), ...);
    }(AttributeIndices());
  }

  // `keep` is SavedTensor::result, unless the history of the results is not this node.
  void keep_results(const ReturnType& result,
                    SavedTensor (*keep)(const Tensor&, uint32_t) = &SavedTensor::result) {
    [&]<size_t... S>(std::index_sequence<S...>) {
      (keep_result<S>(result, keep), ...);
    }(std::make_index_sequence<P::kSaved>());
  }

  void backward(TensorList grads, std::span<Tensor> input_grads) override {
    size_t edge = 0;
    [&]<size_t... G>(std::index_sequence<G...>) {
      (run<std::tuple_element_t<G, typename P::Gradients>>(grads, input_grads, edge), ...);
    }(GradientIndices());
  }

  void visit_saved(const SavedVisitor& visit) const override {
    [&]<size_t... S>(std::index_sequence<S...>) {
      (show(visit, P::Saved::list[S], std::get<S>(saved_)), ...);
    }(std::make_index_sequence<P::kSaved>());
  }

  void release_saved() override {
    std::apply([](auto&... item) { (release(item), ...); }, saved_);
  }

 private:
  template <class G, class EdgeOf, class All>
  void add_edges(const EdgeOf& edge_of, const All& all) {
    if constexpr (G::exists) {
      [&]<size_t... I>(std::index_sequence<I...>) {
        (add_edge(edge_of, std::get<size_t(schema.index_of(G::arguments[I]))>(all)), ...);
      }(std::make_index_sequence<G::arguments.size()>());
    }
  }
  template <class EdgeOf>
  void add_edge(const EdgeOf& edge_of, const Tensor& t) {
    edges.push_back(t.defined() ? edge_of(t) : Edge{});
  }
  template <class EdgeOf>
  void add_edge(const EdgeOf& edge_of, TensorList list) {
    for (const Tensor& t : list) add_edge(edge_of, t);
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
    if constexpr (is_tensor_list(schema.args[first].type)) return edges.size();
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
  void keep_result(const ReturnType& result, SavedTensor (*keep)(const Tensor&, uint32_t)) {
    if constexpr (P::argument_of(S) < 0) {
      if (!is_read<S>()) return;
      constexpr size_t slot = size_t(P::result_of(S));
      if constexpr (Returns<ReturnType>::tuple)
        std::get<S>(saved_) = keep(std::get<slot>(result), slot);
      else std::get<S>(saved_) = keep(result, slot);
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
      for (size_t i = 0; i < count; ++i) wanted |= asks(first + i);
      if (!wanted) return;
      const auto& g = gradient_argument(grads);
      if constexpr (G::arguments.size() > 1) {
        GradMask<G::arguments.size()> mask;
        for (size_t i = 0; i < mask.size(); ++i) mask[i] = asks(first + i);
        assign(call_lambda<G>(g, mask), input_grads.subspan(first));
      } else if constexpr (IsFormula<typename G::function>::value) {
        using F = typename G::function::formula;
        input_grads[first] = call_formula<F>(g);
        if constexpr (std::is_same_v<typename G::function, LinesRef<F>>)
          if (gradients_as_ops())
            input_grads[first] = with_zero_of(formula_argument<F, 1>(), input_grads[first]);
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

  static void show(const SavedVisitor& visit, std::string_view name, const SavedTensor& saved) {
    visit(name, saved);
  }
  static void show(const SavedVisitor& visit, std::string_view name,
                   const std::vector<SavedTensor>& list) {
    for (const SavedTensor& saved : list) visit(name, saved);
  }
  static void show(const SavedVisitor&, std::string_view, const auto&) {}  // shapes

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

}  // namespace detail
}  // namespace rushlight
