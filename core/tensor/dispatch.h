// Owns what the core knows of ops that Python runs: modes of a thread, and classes of tensors.
//
// Note [Dispatch to Python]
// A mode (utils._python_dispatch) sees every op that its thread calls, a class with a
// __torch_dispatch__ every op that meets one of its tensors. Both stand below autograd: the node of
// a call is made from its arguments before, and from what the handler returned after it, and the
// handler runs unrecorded (ops/dispatch.cpp). Above them are autocast and the levels of transforms,
// so handlers see arguments in the dtypes that are computed with, and what is behind lifted
// tensors. A mode is a watcher of calls (autograd/call_watch.h), a tensor of a class a detour
// (Detour), so other calls pay nothing. An op made of other ops runs, and these are seen; a formula
// of a gradient runs as ops. While its handler runs a mode is not in force. Python's side is
// bindings/dispatch.cpp, which fills in `dispatch_hooks`.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

struct DispatchHooks {
  // What the class of a tensor makes of detach(), which copies of a handle are.
  Tensor (*detach)(const Tensor& tensor);
};
inline constinit DispatchHooks dispatch_hooks{};

// While set, the classes of this thread's tensors are not asked, and ops run as for any tensor.
inline constinit thread_local bool dispatch_disabled = false;

// Whether ops that meet the tensor go to its class. Those of a wrapper always do, since it has no
// elements; when classes are not to be asked this is an error.
inline bool is_dispatched(const Tensor& t) {
  return t.defined() && t.impl()->detours & (kIsDispatched | kIsWrapper) &&
         (!dispatch_disabled || t.impl()->detours & kIsWrapper);
}

}  // namespace rushlight
