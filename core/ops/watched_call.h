// Owns what happens around a call of an op while something watches: the profiler notes it,
// autocast changes the dtype of its arguments, and a mode may run in its place.
//
// Note [Autocast]
// In an autocast region an op with a field .autocast gets its floating-point arguments in another
// dtype, by a cast that is recorded: `lower` in the region's dtype, for products and convolutions,
// which that makes faster; `single` in float32, for what needs the digits; `widest` in the widest
// dtype among the arguments; `as_given` in their own, for an op made of others that would cast. An
// op without the field is made of ops that decide, or runs as given. float64 is left alone, and so
// are calls in place and with out=. Inside such an op autocast is off, and so it is in backward:
// gradients have the dtypes of their values. A parameter (a float32 leaf that requires grad) is
// cast once in a region and kept, since a model may use it often; casts are forgotten at the end of
// the outermost region.
// The bits of a byte of the thread say who watches, so a call that nobody watches tests one byte.
#pragma once

#include <optional>
#include <span>

#include "core/autograd/profiler.h"
#include "core/ops/dispatch.h"

namespace rushlight {

class WatchedCall {
 public:
  // Begins the call of an op; what its arguments become is in `values`.
  WatchedCall(const char* name, const Autocast& autocast, std::span<Value> values);
  WatchedCall(const WatchedCall&) = delete;
  // What a mode of this thread returns for the call, if one sees it; else the op is to run.
  std::optional<Result> dispatch(const char* cpp_name, CallForm form, const Tensor* out = nullptr);
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  void cast(CastTo to, DType lower, std::span<Value> values);

  std::span<const Value> values_;
  std::optional<ProfiledScope> range_;
  std::optional<NoAutocastGuard> uncast_;
  std::vector<Tensor> casts_;
  std::vector<std::vector<Tensor>> lists_;
};

// Forgets the casts of parameters on this thread.
void clear_autocast_cache();

}  // namespace rushlight
