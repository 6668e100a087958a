// Declares calls that Python runs in place of the op; see Note [Dispatch to Python] in
// tensor/dispatch.h.
#pragma once

#include <span>

#include "core/ops/value.h"
#include "core/tensor/dispatch.h"

namespace rushlight {

// As what an op is called: x.add(y), x.add_(y), torch.add(x, y, out=z).
enum class CallForm : uint8_t { plain, inplace, into };

// Whether an op is not asked about itself, as the ops that it is made of will be.
bool is_run_in_parts(const OpEntry& entry);
// Whether a mode is to be told of a call. It is not of what runs in parts, and not of what only
// looks at a tensor; what is lifted is lowered first.
bool is_seen_by_modes(const OpEntry& entry, std::span<const Value> args);

// Lets Python run a call, and makes the node that the op would have made.
Result call_dispatched(const OpEntry& entry, CallForm form, std::span<const Value> args,
                       const Tensor* out = nullptr);

// Calls the handler, a mode's or a class's; set by the bindings.
inline Result (*call_handler)(const OpEntry& entry, CallForm form, std::span<const Value> args,
                              const Tensor* out) = nullptr;

}  // namespace rushlight
