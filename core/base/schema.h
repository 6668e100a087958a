// Owns Schema: the signature of an op, parsed from its string at compile time.
//
//   "(Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None) ->
//    (Tensor values, Tensor indices)"
//
// A list of tensors called *tensors may be given without brackets, as Python's own *args are.
// A string that does not read so is a compile error on the line of the op. A leading word names
// the op where the C++ name cannot: "max.dim(...)" is overload `dim` of `max`.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace rushlight {

enum class ArgType : unsigned char {
  tensor,                  // Tensor         const Tensor&; Tensor|Scalar takes a number, too
  tensor_optional,         // Tensor?        const Tensor&, undefined for None; Tensor|Scalar?
  tensor_mutable,          // Tensor!        const Tensor&, written in place
  tensor_list,             // Tensor[]       TensorList
  tensor_list_optional,    // Tensor?[]      TensorList, undefined where None
  integer,                 // int            int64_t
  integer_optional,        // int?           std::optional<int64_t>
  ints,                    // int[]          ShapeRef; int[2] takes one int for both
  ints_optional,           // int[]?         std::optional<ShapeRef>
  real,                    // float          double
  real_optional,           // float?         std::optional<double>
  boolean,                 // bool           bool
  boolean_optional,        // bool?          std::optional<bool>
  string,                  // str            std::string_view
  string_optional,         // str?           std::optional<std::string_view>
  number,                  // Scalar         Scalar
  number_optional,         // Scalar?        std::optional<Scalar>
  dtype_optional,          // dtype?         std::optional<DType>
  device_optional,         // device?        std::optional<Device>
  memory_format_optional,  // memory_format?  std::optional<MemoryFormat>
  generator_optional,      // Generator?      Generator*
};

struct Arg {
  ArgType type{};
  std::string_view name;
  std::string_view default_text;  // as in Python; empty when required
  int expand_to = 0;              // int[N]: one int stands for N of them
  bool keyword_only = false;
  bool has_default = false;
  bool takes_number = false;  // for a tensor
  bool one_by_one = false;    // for a list of tensors: *tensors, which needs no brackets
};

struct Return {
  std::string_view type;  // "Tensor", "Tensor[]", "bool", "int", "float", "str", "dtype"
  std::string_view name;  // empty unless the returns are named
};

inline constexpr int kMaxArgs = 16;
inline constexpr int kMaxReturns = 4;

struct Schema {
  std::string_view name;      // "max"
  std::string_view overload;  // "dim", or empty
  char name_text[40]{};       // the name again, with a terminating zero
  std::array<Arg, kMaxArgs> args{};
  int arg_count = 0;
  std::array<Return, kMaxReturns> returns{};
  int return_count = 0;

  constexpr int index_of(std::string_view arg) const {
    for (int i = 0; i < arg_count; ++i)
      if (args[size_t(i)].name == arg) return i;
    return -1;
  }
  constexpr int return_index(std::string_view name) const {
    for (int i = 0; i < return_count; ++i)
      if (returns[size_t(i)].name == name) return i;
    return -1;
  }
  // Lets a number stand for each tensor, as for the operands of a formula: torch.mul(2, x) reads as
  // well as torch.mul(x, 2). What is the only operand stays a tensor.
  constexpr void take_numbers() {
    bool has_other = arg_count > 1 && args[1].type == ArgType::tensor;
    for (int i = has_other ? 0 : 1; i < arg_count; ++i)
      args[size_t(i)].takes_number = args[size_t(i)].type <= ArgType::tensor_optional;
  }
};

// How schemas spell the types; where a type has two spellings the first is its name.
struct ArgTypeText {
  std::string_view text;
  ArgType type;
};
inline constexpr ArgTypeText kArgTypeTexts[] = {{"Tensor", ArgType::tensor},
                                                {"Tensor?", ArgType::tensor_optional},
                                                {"Tensor!", ArgType::tensor_mutable},
                                                {"Tensor|Scalar", ArgType::tensor},
                                                {"Tensor|Scalar?", ArgType::tensor_optional},
                                                {"Tensor[]", ArgType::tensor_list},
                                                {"Tensor?[]", ArgType::tensor_list_optional},
                                                {"int", ArgType::integer},
                                                {"int?", ArgType::integer_optional},
                                                {"int[]", ArgType::ints},
                                                {"int[]?", ArgType::ints_optional},
                                                {"float", ArgType::real},
                                                {"float?", ArgType::real_optional},
                                                {"bool", ArgType::boolean},
                                                {"bool?", ArgType::boolean_optional},
                                                {"str", ArgType::string},
                                                {"str?", ArgType::string_optional},
                                                {"Scalar", ArgType::number},
                                                {"Scalar?", ArgType::number_optional},
                                                {"dtype?", ArgType::dtype_optional},
                                                {"device?", ArgType::device_optional},
                                                {"memory_format?", ArgType::memory_format_optional},
                                                {"Generator?", ArgType::generator_optional}};
constexpr std::string_view text_of(ArgType type) {
  for (const ArgTypeText& e : kArgTypeTexts)
    if (e.type == type) return e.text;
  return {};
}

constexpr bool is_tensor_type(ArgType t) { return t <= ArgType::tensor_list_optional; }
constexpr bool is_tensor_list(ArgType t) {
  return t == ArgType::tensor_list || t == ArgType::tensor_list_optional;
}

namespace detail {

constexpr std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n')) s.remove_suffix(1);
  return s;
}

// Cuts the text before the first `separator` outside brackets off `rest`.
constexpr std::string_view next_part(std::string_view& rest, char separator) {
  int depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    char c = rest[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth == 0) {
      std::string_view part = rest.substr(0, i);
      rest.remove_prefix(i + 1);
      return trim(part);
    }
  }
  std::string_view part = rest;
  rest = {};
  return trim(part);
}

consteval ArgType parse_type(std::string_view t, int& expand_to) {
  if (t.starts_with("int[") && t != "int[]" && t != "int[]?") {
    expand_to = t[4] - '0';
    if (t == "int[1]" || t == "int[2]" || t == "int[3]") return ArgType::ints;
    if (t == "int[1]?" || t == "int[2]?" || t == "int[3]?") return ArgType::ints_optional;
    throw "an int list reads int[], int[1], int[2] or int[3], with or without ?";
  }
  for (const ArgTypeText& e : kArgTypeTexts)
    if (e.text == t) return e.type;
  throw "unknown argument type in the schema; base/schema.h lists them";
}

}  // namespace detail

// `cpp_name` is the name of the OP block, used when the text starts with "(".
consteval Schema parse_schema(std::string_view cpp_name, std::string_view text) {
  using namespace detail;
  Schema out;
  size_t open = text.find('('), arrow = text.rfind("->");
  if (open == text.npos || arrow == text.npos)
    throw "a schema reads (Type name=default, ...) -> Type";
  size_t close = text.rfind(')', arrow);
  std::string_view full_name = open == 0 ? cpp_name : trim(text.substr(0, open));
  size_t dot = full_name.find('.');
  out.name = full_name.substr(0, dot);
  if (dot != full_name.npos) out.overload = full_name.substr(dot + 1);
  if (out.name.size() >= sizeof(out.name_text)) throw "the name of an op has at most 39 characters";
  for (size_t i = 0; i < out.name.size(); ++i) out.name_text[i] = out.name[i];

  bool keyword_only = false;
  std::string_view rest = text.substr(open + 1, close - open - 1);
  while (!trim(rest).empty()) {
    std::string_view one = next_part(rest, ',');
    if (one == "*") {
      keyword_only = true;
      continue;
    }
    size_t space = one.find(' ');
    if (space == one.npos) throw "every argument of a schema needs a type and a name";
    if (out.arg_count == kMaxArgs) throw "too many arguments; raise kMaxArgs in base/schema.h";
    Arg& arg = out.args[size_t(out.arg_count++)];
    arg.type = parse_type(one.substr(0, space), arg.expand_to);
    arg.takes_number = one.starts_with("Tensor|");
    arg.keyword_only = keyword_only;
    std::string_view name = trim(one.substr(space + 1));
    arg.one_by_one = name.starts_with('*');
    if (arg.one_by_one) {
      if (arg.type != ArgType::tensor_list) throw "only a Tensor[] may be called *name";
      name.remove_prefix(1);
    }
    size_t equals = name.find('=');
    arg.name = name.substr(0, equals);
    arg.has_default = equals != name.npos;
    if (arg.has_default) arg.default_text = name.substr(equals + 1);
  }

  std::string_view returns = trim(text.substr(arrow + 2));
  if (returns.starts_with('(')) {
    returns = returns.substr(1, returns.size() - 2);
    while (!trim(returns).empty()) {
      std::string_view one = next_part(returns, ',');
      size_t space = one.find(' ');
      if (out.return_count == kMaxReturns)
        throw "too many returns; raise kMaxReturns in base/schema.h";
      out.returns[size_t(out.return_count++)] = {
          one.substr(0, space),
          space == one.npos ? std::string_view{} : trim(one.substr(space + 1))};
    }
  } else {
    out.returns[0] = {returns, {}};
    out.return_count = 1;
  }
  return out;
}

// A string as a template argument: d<"input">.
template <size_t N>
struct FixedString {
  char text[N];
  consteval FixedString(const char (&s)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

}  // namespace rushlight
