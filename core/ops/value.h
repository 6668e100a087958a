// Owns Value, an argument of an op as the parser hands it over, and OpEntry, the row of the op
// table that bindings, stubs, docs and tests read.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/autograd/node.h"
#include "core/base/schema.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tensor.h"

namespace rushlight {

class Generator;
class Batch;

// A view on data that the parser owns for the length of the call. monostate is Python's None.
using Value = std::variant<std::monostate, const Tensor*, TensorList, int64_t, ShapeRef, double,
                           bool, std::string_view, Scalar, DType, Device, MemoryFormat, Generator*>;

using Result = std::variant<Tensor, std::vector<Tensor>, bool, int64_t, double, Scalar, DType>;

using BoxedCall = Result (*)(const Value* args);
using BoxedCallInto = Result (*)(const Value* args, const Tensor& out);
using BoxedCallBatched = Result (*)(const Batch& batch, const Value* args);
// Makes the node of a call; edge_of(argument) is where its gradient goes. `overwritten` when the
// first argument is about to be written in place.
using EdgeOf = std::function<Edge(const Tensor&)>;
using BoxedNode = NodePtr (*)(const Value* args, bool overwritten, const EdgeOf& edge_of);
// Lets the node keep what it needs of the results. Unless they `are_own`, they have another history
// than this node, and are kept with it, as inputs are.
using BoxedKeep = void (*)(Node& node, const Result& result, bool are_own);

// What handlers of __torch_dispatch__ see of a call; see Note [Dispatch to Python].
enum class Seen : uint8_t {
  by_default,        // the op, if it has a gradient of its own, else those that it is made of
  whole,             // the op: it has a kernel of its own
  whole_unrecorded,  // the op, a kernel of PyTorch's; its parts while they are recorded
  never,  // its integers say where others begin and end, so only its caller can pass them
};

// How an op works on a batch of samples; see core/ops/batch.h.
enum class BatchRule : uint8_t {
  unsaid,
  own,
  elements,
  dims,
  new_dim,
  sizes,
  last_dims,
  matrices,
  images
};

// What autocast does to the arguments of an op, per device; see Note [Autocast].
enum class CastTo : uint8_t { keep, lower, single, widest, as_given };
struct Autocast {
  CastTo cpu = CastTo::keep, cuda = CastTo::keep;
  constexpr bool casts() const { return cpu != CastTo::keep || cuda != CastTo::keep; }
  constexpr Autocast without_casts() const {
    return casts() ? Autocast{CastTo::as_given, CastTo::as_given} : Autocast{};
  }
};

// A set of dtypes, one bit each.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  template <class Predicate>
  constexpr explicit DTypeSet(Predicate in) {
    for (int i = 0; i < kDTypeCount; ++i)
      if (in(DType(i))) bits_ |= 1u << i;
  }
  constexpr bool contains(DType t) const { return bits_ >> int(t) & 1; }

 private:
  uint32_t bits_ = 0;
};

inline constexpr DTypeSet all_dtypes([](DType) { return true; });
inline constexpr DTypeSet floating([](DType t) { return is_floating(t); });
inline constexpr DTypeSet floating_or_complex([](DType t) {
  return is_floating(t) || is_complex(t);
});
inline constexpr DTypeSet full_precision([](DType t) { return is_full_precision(t); });
inline constexpr DTypeSet real([](DType t) { return !is_complex(t) && !is_float8(t); });
inline constexpr DTypeSet numeric([](DType t) { return !is_bool(t) && !is_float8(t); });
inline constexpr DTypeSet real_numeric([](DType t) {
  return !is_bool(t) && !is_complex(t) && !is_float8(t);
});
inline constexpr DTypeSet integral_or_bool([](DType t) { return is_integral(t) || is_bool(t); });

// The forms in which Python sees an op.
enum Variants : unsigned {
  automatic = 0,  // by home, see resolve_variants in op_table.cpp
  function = 1,   // torch.name(...)
  method = 2,     // input.name(...)
  inplace = 4,    // input.name_(...)
};
constexpr Variants operator|(Variants a, Variants b) { return Variants(unsigned(a) | unsigned(b)); }

// Whether a call returns its input as it is, by the input and the argument after it.
using ReturnsInput = bool (*)(const Tensor& input, const Value& second);

struct OpEntry {
  const char* cpp_name;
  Schema schema;
  // "torch", "torch nn.functional", "linalg", ...; "private" shows in _C only, "core" nowhere: such
  // ops trust their arguments.
  const char* home;
  const char* aliases;             // other names, separated by spaces; each has a row of its own
  std::string_view alias_of = {};  // in such a row, the name of the op
  const char* doc;
  DTypeSet dtypes;
  Variants variants;
  BoxedCall call;
  BoxedCall call_inplace = nullptr;   // null when there is no such form
  BoxedCallInto call_into = nullptr;  // tries to write into `out`; null when the op cannot
  const Formula* formula = nullptr;   // of the forward, when it is one
  BoxedNode make_node = nullptr;      // null when it leaves none on the tape
  BoxedKeep keep_results = nullptr;   // null together with that
  BatchRule batch_rule;
  BoxedCallBatched call_batched = nullptr;  // its own rule, or null
  bool is_view;
  bool draws;
  ReturnsInput returns_input;  // null when it never does
  bool differentiable;
  bool composed;  // of other ops, as far as can be seen; see Plan::kComposed
  Seen seen;
  Autocast autocast;
  const char* no_gpu;  // why it has no form for CUDA; empty when it has one
  const char* file;
  int line;
};

// All ops, sorted by name and overload.
const std::vector<OpEntry>& op_table();
// The row of the block of this C++ name.
const OpEntry& entry_of(const char* cpp_name);

namespace detail {
struct Registration {
  explicit Registration(const OpEntry& entry);
};
}  // namespace detail

}  // namespace rushlight
