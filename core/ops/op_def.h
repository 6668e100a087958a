// Owns the fields of an OP block and the checks on it that happen at compile time.
//
// What a block does when it is called is in record.h, what it leaves on the tape in op_node.h.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <type_traits>

#include "core/autograd/call_watch.h"
#include "core/ops/value.h"

namespace rushlight {

// ---- the fields of a block ----------------------------------------------------------------------

template <FixedString... names>
struct Saves {
  static constexpr std::array<std::string_view, sizeof...(names)> list{names.view()...};
};
template <FixedString... names>
inline constexpr Saves<names...> saves{};
template <FixedString... names>
struct Uses {
  static constexpr std::array<std::string_view, sizeof...(names)> list{names.view()...};
};
template <FixedString... names>
inline constexpr Uses<names...> uses{};

// A forward or a gradient that is a POINTWISE formula.
template <class F>
struct FormulaRef {
  using formula = F;
};
template <class F>
inline constexpr FormulaRef<F> formula{};
// The gradient of a function of straight pieces, as relu: what follows g only picks the piece.
template <class F>
struct LinesRef : FormulaRef<F> {};
template <class F>
inline constexpr LinesRef<F> lines{};

struct UsesAll {};

// Why an op has no form for CUDA; empty when it has one.
struct GpuForm {
  const char* missing = "";
};
template <FixedString reason>
inline constexpr GpuForm none{reason.text};

// What autocast makes of an op's arguments, on all devices or on one.
namespace autocast {
inline constexpr Autocast lower{CastTo::lower, CastTo::lower};
inline constexpr Autocast single{CastTo::single, CastTo::single};
inline constexpr Autocast widest{CastTo::widest, CastTo::widest};
inline constexpr Autocast as_given{CastTo::as_given, CastTo::as_given};
constexpr Autocast on_cpu(Autocast cast) { return {cast.cpu, CastTo::keep}; }
constexpr Autocast on_cuda(Autocast cast) { return {CastTo::keep, cast.cuda}; }
}  // namespace autocast

// What an op does with sparse tensors, other than a function in the types of the schema.
struct RefusesSparse {};
struct ByForward {};
struct ByEntries {};
struct ByValues {};
inline constexpr ByForward by_forward{};
inline constexpr ByEntries by_entries{};
inline constexpr ByValues by_values{};

// How an op works on all samples of a batch at once, other than a function of a Batch and the types
// of the schema; see core/ops/batch.h.
template <BatchRule rule>
struct ByRule {};
inline constexpr ByRule<BatchRule::elements> by_elements{};
inline constexpr ByRule<BatchRule::dims> by_dims{};
inline constexpr ByRule<BatchRule::new_dim> by_new_dim{};
inline constexpr ByRule<BatchRule::sizes> by_sizes{};
inline constexpr ByRule<BatchRule::last_dims> by_last_dims{};
inline constexpr ByRule<BatchRule::matrices> by_matrices{};
inline constexpr ByRule<BatchRule::images> by_images{};

// The gradient of the named arguments: a formula, or a lambda that sees `Used` of what is saved.
template <class Function, class Used, FixedString... names>
struct Gradient {
  static constexpr std::array<std::string_view, sizeof...(names)> arguments{names.view()...};
  static constexpr bool exists = !std::is_void_v<Function>;
  using function = Function;
  using used = Used;
};
template <FixedString... names>
struct GradientOf {
  template <class Function>
  constexpr auto operator()(Function) const {
    return Gradient<Function, UsesAll, names...>{};
  }
  template <class Used, class Function>
  constexpr auto operator()(Used, Function) const {
    return Gradient<Function, Used, names...>{};
  }
};
template <FixedString... names>
inline constexpr GradientOf<names...> d{};
template <FixedString... names>
inline constexpr Gradient<void, UsesAll, names...> no_grad{};
template <class... Gradients>
constexpr std::tuple<Gradients...> grads(Gradients...) {
  return {};
}

template <class Forward, class Saved = Saves<>, class Gradients = std::tuple<>,
          class Sparse = RefusesSparse, class Batching = ByRule<BatchRule::unsaid>>
struct OpDef {
  const char* home = "torch";
  const char* doc = "";
  DTypeSet dtypes = all_dtypes;
  Variants variants = automatic;
  const char* aliases = "";  // separated by spaces
  bool is_view = false;
  bool draws = false;
  bool fills = false;
  ReturnsInput returns_input = nullptr;
  Seen seen = Seen::by_default;
  const char* node = nullptr;
  GpuForm gpu = {};
  Autocast autocast = {};
  Sparse sparse{};
  Batching batch{};
  Forward forward;
  Saved saves{};
  Gradients grads{};
};

namespace detail {

// ---- schema <-> C++ types -----------------------------------------------------------------------

template <ArgType type>
consteval auto cpp_type() {
  using enum ArgType;
  if constexpr (type == tensor || type == tensor_optional || type == tensor_mutable)
    return Tag<const Tensor&>{};
  else if constexpr (is_tensor_list(type)) return Tag<TensorList>{};
  else if constexpr (type == integer) return Tag<int64_t>{};
  else if constexpr (type == integer_optional) return Tag<std::optional<int64_t>>{};
  else if constexpr (type == ints) return Tag<ShapeRef>{};
  else if constexpr (type == ints_optional) return Tag<std::optional<ShapeRef>>{};
  else if constexpr (type == ArgType::real) return Tag<double>{};
  else if constexpr (type == real_optional) return Tag<std::optional<double>>{};
  else if constexpr (type == boolean) return Tag<bool>{};
  else if constexpr (type == boolean_optional) return Tag<std::optional<bool>>{};
  else if constexpr (type == string) return Tag<std::string_view>{};
  else if constexpr (type == string_optional) return Tag<std::optional<std::string_view>>{};
  else if constexpr (type == number) return Tag<Scalar>{};
  else if constexpr (type == number_optional) return Tag<std::optional<Scalar>>{};
  else if constexpr (type == dtype_optional) return Tag<std::optional<DType>>{};
  else if constexpr (type == device_optional) return Tag<std::optional<Device>>{};
  else if constexpr (type == memory_format_optional) return Tag<std::optional<MemoryFormat>>{};
  else return Tag<Generator*>{};
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
T unbox(const Value& value) {
  if constexpr (std::is_same_v<T, const Tensor&>) {
    static const Tensor undefined;
    const Tensor* const* tensor = std::get_if<const Tensor*>(&value);
    return tensor ? **tensor : undefined;
  } else if constexpr (IsOptional<T>::value) {
    if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
    return *std::get_if<typename T::value_type>(&value);
  } else if constexpr (std::is_same_v<T, Generator*>) {
    Generator* const* generator = std::get_if<Generator*>(&value);
    return generator ? *generator : nullptr;
  } else {
    return *std::get_if<T>(&value);
  }
}

// How a node keeps an argument after the call: spans become owners.
template <class T>
struct Kept {
  using type = T;
};
template <>
struct Kept<ShapeRef> {
  using type = Shape;
};
template <>
struct Kept<std::string_view> {
  using type = std::string;
};
template <class T>
struct Kept<std::optional<T>> {
  using type = std::optional<typename Kept<T>::type>;
};

template <const Schema& schema, size_t... I>
consteval auto return_type_of(std::index_sequence<I...>) {
  constexpr auto is = [](std::string_view t) { return schema.returns[0].type == t; };
  if constexpr (sizeof...(I) > 1) return Tag<std::tuple<decltype((void)I, Tensor())...>>{};
  else if constexpr (is("Tensor")) return Tag<Tensor>{};
  else if constexpr (is("Tensor[]")) return Tag<std::vector<Tensor>>{};
  else if constexpr (is("bool")) return Tag<bool>{};
  else if constexpr (is("int")) return Tag<int64_t>{};
  else if constexpr (is("float")) return Tag<double>{};
  else if constexpr (is("Scalar")) return Tag<Scalar>{};
  else if constexpr (is("dtype")) return Tag<DType>{};
  else
    static_assert(sizeof...(I) == 0,
                  "a schema returns Tensor, Tensor[], (Tensor a, Tensor b), bool, int, float, "
                  "Scalar or dtype");
}

template <class R>
struct Returns {
  static constexpr bool tensor = std::is_same_v<R, Tensor>;
  static constexpr bool list = std::is_same_v<R, std::vector<Tensor>>;
  static constexpr bool tuple =
      !tensor && !list && !std::is_scalar_v<R> && !std::is_same_v<R, Scalar>;
};
template <class R>
Result box(R&& result) {
  using Plain = std::decay_t<R>;
  if constexpr (Returns<Plain>::tuple) {
    return std::apply([](auto&&... t) { return std::vector<Tensor>{std::move(t)...}; },
                      std::move(result));
  } else {
    return Result(std::move(result));
  }
}

// The result of a boxed call in the types of the schema.
template <class R>
R unbox_result(Result&& result) {
  if constexpr (Returns<R>::tuple) {
    auto& list = std::get<std::vector<Tensor>>(result);
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R(std::move(list[I])...);
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    return std::get<R>(std::move(result));
  }
}

// An argument as the boxed calls take it.
template <class T>
Value to_value(const T& arg) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return arg.defined() ? Value(&arg) : Value();
  } else if constexpr (IsOptional<T>::value) {
    return arg ? to_value(*arg) : Value();
  } else if constexpr (std::is_same_v<T, Generator*>) {
    return arg ? Value(arg) : Value();
  } else {
    return Value(arg);
  }
}

template <class Block>
struct Types {
  static constexpr const Schema& schema = Block::schema;
  template <size_t I>
  using Arg = typename decltype(cpp_type<schema.args[I].type>())::type;
  using Indices = std::make_index_sequence<size_t(schema.arg_count)>;
  using Return = typename decltype(return_type_of<schema>(
      std::make_index_sequence<size_t(schema.return_count)>()))::type;

  template <size_t... I>
  static auto signature(std::index_sequence<I...>) -> Return (*)(Arg<I>...);
  using Pointer = decltype(signature(Indices()));
};
template <class Block>
using Signature = std::remove_pointer_t<typename Types<Block>::Pointer>;

// ---- checks on a block, with a sentence each ----------------------------------------------------

template <class T>
struct IsFormula : std::false_type {};
template <class F>
struct IsFormula<FormulaRef<F>> : std::true_type {};
template <class F>
struct IsFormula<LinesRef<F>> : std::true_type {};

template <class Function, class R, class... Args>
consteval bool has_signature(R (*)(Args...)) {
  if constexpr (IsFormula<Function>::value) {
    return true;
  } else {
    return std::is_same_v<decltype(&Function::operator()), R (Function::*)(Args...) const>;
  }
}
// Whether a forward can write its result into a tensor that it is given last.
template <class Function, class R, class... Args>
consteval bool takes_into(R (*)(Args...)) {
  return has_signature<Function>(static_cast<R (*)(Args..., const Tensor*)>(nullptr));
}

// The parameter names of a formula: "(T g, S beta)" -> g, beta.
struct FormulaNames {
  std::array<std::string_view, kMaxOperands + kMaxScalars> list{};
  size_t count = 0;
  constexpr bool contains(std::string_view name) const {
    for (size_t i = 0; i < count; ++i)
      if (list[i] == name) return true;
    return false;
  }
};
consteval FormulaNames read_names(std::string_view params) {
  FormulaNames names;
  std::string_view rest = params.substr(1, params.size() - 2);
  while (!trim(rest).empty()) {
    std::string_view one = next_part(rest, ',');
    names.list[names.count++] = trim(one.substr(one.find(' ')));
  }
  return names;
}

inline constexpr std::string_view kShapeSuffix = ".shape";

// What is known about the parts of a block when it is compiled.
template <class Block>
struct Plan {
  static constexpr const Schema& schema = Block::schema;
  using Def = std::remove_const_t<decltype(Block::def)>;
  using Forward = decltype(Def::forward);
  using Saved = decltype(Def::saves);
  using Gradients = decltype(Def::grads);
  using Sparse = decltype(Def::sparse);
  using Batching = decltype(Def::batch);
  static constexpr size_t kSaved = Saved::list.size();
  static constexpr bool kRecords = std::tuple_size_v<Gradients> != 0;
  static constexpr bool kMutates =
      schema.arg_count > 0 && schema.args[0].type == ArgType::tensor_mutable;

  static constexpr bool is_shape(size_t saved) {
    return Saved::list[saved].ends_with(kShapeSuffix);
  }
  // The argument behind "input" or "input.shape", or -1 for a result.
  static constexpr int argument_of(size_t saved) {
    std::string_view name = Saved::list[saved];
    if (is_shape(saved)) name.remove_suffix(kShapeSuffix.size());
    return schema.index_of(name);
  }
  // Whether it is a Tensor[] argument, or the shapes of one.
  static constexpr bool is_list(size_t saved) {
    int arg = argument_of(saved);
    return arg >= 0 && is_tensor_list(schema.args[size_t(arg)].type);
  }
  static constexpr int result_of(size_t saved) {
    return Saved::list[saved] == "result" ? 0 : schema.return_index(Saved::list[saved]);
  }
  static constexpr int saved_index(std::string_view name) {
    for (size_t i = 0; i < kSaved; ++i)
      if (Saved::list[i] == name) return int(i);
    return -1;
  }
  static consteval bool saves_are_known() {
    for (size_t i = 0; i < kSaved; ++i)
      if (argument_of(i) < 0 && result_of(i) < 0) return false;
    return true;
  }
  template <class... G>
  static consteval bool covers_tensors(std::tuple<G...>*) {
    std::array<bool, kMaxArgs> seen{};
    bool known = true;
    [[maybe_unused]] auto mark = [&](auto names) {
      for (std::string_view name : names) {
        if (schema.index_of(name) < 0) known = false;
        else seen[size_t(schema.index_of(name))] = true;
      }
    };
    (mark(G::arguments), ...);
    for (int i = 0; i < schema.arg_count; ++i)
      if (is_tensor_type(schema.args[size_t(i)].type) && !seen[size_t(i)]) return false;
    return known;
  }
  // Whether gradient G reads saved item i.
  template <class G>
  static constexpr bool reads(size_t i) {
    if constexpr (!G::exists) {
      return false;
    } else if constexpr (IsFormula<typename G::function>::value) {
      constexpr FormulaNames names = read_names(G::function::formula::formula.params);
      return names.contains(Saved::list[i]);
    } else if constexpr (std::is_same_v<typename G::used, UsesAll>) {
      return true;
    } else {
      for (std::string_view name : G::used::list)
        if (name == Saved::list[i]) return true;
      return false;
    }
  }

  static constexpr bool kTakesInto = takes_into<Forward>(typename Types<Block>::Pointer());
  // Whether the form for sparse tensors is the op itself, or the op of the values.
  static constexpr bool kSparseByForward = std::is_same_v<Sparse, ByForward>;
  static constexpr bool kSparseByEntries =
      std::is_same_v<Sparse, ByEntries> || std::is_same_v<Sparse, ByValues>;
  // Whether the forward can write into a given tensor, as in-place forms do.
  static constexpr bool kWritesInto = IsFormula<Forward>::value || kTakesInto;
  // Whether it is made of other ops, as far as can be seen here: or its kernel has no gradient.
  static constexpr bool kComposed = !kRecords && !IsFormula<Forward>::value &&
                                    std::is_same_v<Batching, ByRule<BatchRule::unsaid>>;
  // The position of the generator of random numbers, or -1.
  static constexpr int kGenerator = [] {
    for (int i = 0; i < schema.arg_count; ++i)
      if (schema.args[size_t(i)].type == ArgType::generator_optional) return i;
    return -1;
  }();
  // Whether it draws random numbers, which vmap must be asked about.
  static constexpr bool kDraws = kGenerator >= 0 || Block::def.draws;
  // Who may watch a call.
  static constexpr uint8_t kWatchers = watchers_of(Block::def.autocast.casts());
  // The position of an argument `bool inplace`, or -1.
  static constexpr int kInplaceFlag = schema.index_of("inplace");

  static_assert(kTakesInto || has_signature<Forward>(typename Types<Block>::Pointer()),
                "the forward function does not match the schema string");
  static_assert(
      saves_are_known(),
      "saves<...> names something that is neither an argument, \"argument.shape\", \"result\" "
      "nor a named return");
  static_assert(
      !kRecords || covers_tensors(static_cast<Gradients*>(nullptr)),
      "every Tensor argument needs d<\"name\">(...) or no_grad<\"name\">, and no other name");
};

}  // namespace detail
}  // namespace rushlight
