// Owns the op table: OP blocks register here while the library is loaded.
#include <algorithm>
#include <string>

#include "core/ops/record.h"

namespace rushlight {
namespace {

std::vector<OpEntry>& entries() {
  static std::vector<OpEntry> entries;
  return entries;
}

// torch ops on a Tensor are functions and methods; formulas can write their input in place.
Variants resolve_variants(const OpEntry& e) {
  if (e.variants != automatic) return e.variants;
  bool on_tensor = e.schema.arg_count > 0 && e.schema.args[0].name == "input" &&
                   is_tensor_type(e.schema.args[0].type);
  if (std::string_view(e.home) != "torch" || !on_tensor) return function;
  if (e.schema.args[0].type == ArgType::tensor_mutable) return function | method;
  return e.formula ? function | method | inplace : function | method;
}

}  // namespace

const std::vector<OpEntry>& op_table() {
  static const bool sorted = [] {
    std::sort(entries().begin(), entries().end(), [](const OpEntry& a, const OpEntry& b) {
      return std::pair(a.schema.name, a.schema.overload) < std::pair(b.schema.name, b.schema.overload);
    });
    return true;
  }();
  (void)sorted;
  return entries();
}

detail::Registration::Registration(const OpEntry& entry) {
  entries().push_back(entry);
  OpEntry& e = entries().back();
  e.variants = resolve_variants(e);
  if (!(e.variants & inplace)) e.call_inplace = nullptr;
}

void detail::refuse_dtype(DType dtype, DTypeSet allowed, const Schema& schema) {
  std::string remedy;
  if (is_complex(dtype)) {
    remedy = "Use torch.real(input) or torch.abs(input).";
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
