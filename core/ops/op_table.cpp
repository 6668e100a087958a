// Owns the op table: OP blocks register here while the library is loaded.
#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>

#include "core/ops/record.h"

namespace rushlight {
namespace {

std::vector<OpEntry>& entries() {
  static std::vector<OpEntry> entries;
  return entries;
}

// torch ops on a Tensor are functions and methods, and in-place methods where the forward can write
// into its input.
Variants resolve_variants(const OpEntry& e) {
  if (e.variants != automatic) return e.variants;
  bool on_tensor = e.schema.arg_count > 0 && e.schema.args[0].name == "input" &&
                   is_tensor_type(e.schema.args[0].type);
  std::string_view home = e.home;
  if (home.substr(0, home.find(' ')) != "torch" || !on_tensor) return function;
  if (e.schema.args[0].type == ArgType::tensor_mutable) return function | method;
  return e.call_inplace ? function | method | inplace : function | method;
}

}  // namespace

const std::vector<OpEntry>& op_table() {
  static const bool sorted = [] {
    std::sort(entries().begin(), entries().end(), [](const OpEntry& a, const OpEntry& b) {
      return std::tuple(a.schema.name, std::string_view(a.home), a.schema.overload) <
             std::tuple(b.schema.name, std::string_view(b.home), b.schema.overload);
    });
    return true;
  }();
  (void)sorted;
  return entries();
}

const OpEntry& entry_of(const char* cpp_name) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const OpEntry*> rows;
    for (const OpEntry& entry : op_table())
      if (entry.alias_of.empty()) rows[entry.cpp_name] = &entry;
    return rows;
  }();
  return *rows.at(cpp_name);
}

detail::Registration::Registration(const OpEntry& entry) {
  OpEntry resolved = entry;
  resolved.variants = resolve_variants(resolved);
  if (!(resolved.variants & inplace)) resolved.call_inplace = nullptr;
  entries().push_back(resolved);
  for (std::string_view rest = entry.aliases; !rest.empty();) {
    std::string_view alias = next_part(rest, ' ');
    OpEntry row = resolved;
    if (size_t dot = alias.rfind('.'); dot != alias.npos) {  // a function of that module only
      static std::deque<std::string> homes;
      row.home = homes.emplace_back(alias.substr(0, dot)).c_str();
      row.variants = function;
      row.call_inplace = nullptr;
      alias.remove_prefix(dot + 1);
    }
    row.alias_of = entry.schema.name;
    row.schema.name = alias;
    std::fill(std::copy(alias.begin(), alias.end(), row.schema.name_text),
              std::end(row.schema.name_text), '\0');
    entries().push_back(row);
  }
}

namespace {

template <class Is>
bool is_any(TensorList list, const Is& is) {
  return std::any_of(list.begin(), list.end(), is);
}

}  // namespace

bool detail::is_sparse(TensorList list) {
  return is_any(list, [](const Tensor& t) { return is_sparse(t); });
}
bool detail::is_any_lifted(TensorList list) {
  return is_any(list, [](const Tensor& t) { return is_lifted(t); });
}
bool detail::is_led_away(TensorList list) {
  return is_any(list, [](const Tensor& t) { return is_led_away(t); });
}

Tensor detail::with_zero_of(const Tensor& input, const Tensor& gradient) {
  return gradient_edge_exists(input) ? add(gradient, sign(input), 0) : gradient;
}

void detail::refuse_dtype(DType dtype, DTypeSet allowed, const Schema& schema) {
  std::string remedy;
  if (is_complex(dtype)) {
    remedy = "Use torch.real(input) or torch.abs(input).";
  } else if (is_bool(dtype) && (schema.name.ends_with("sub") || schema.name == "neg")) {
    remedy = "Use ~input to invert a mask, or input.float().";
  } else if (allowed.contains(DType::float32)) {
    remedy = "Use input.float()";
    remedy += schema.index_of("dtype") >= 0 ? ", or pass dtype=float32." : ".";
  } else {
    remedy = "Use input.long().";
  }
  CHECK(false, ErrorKind::kNotImplemented, "not implemented for ", dtype_name(dtype), ". ", remedy);
  __builtin_unreachable();
}

}  // namespace rushlight
