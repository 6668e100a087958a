// Owns the walk over the tensors among the arguments of an op.
#pragma once

#include <algorithm>
#include <span>

#include "core/ops/value.h"

namespace rushlight {

// Calls visit for each, those in lists too, from left to right; they may be undefined.
template <class Visit>
void visit_tensors(std::span<const Value> args, const Visit& visit) {
  for (const Value& value : args) {
    if (auto* one = std::get_if<const Tensor*>(&value)) visit(**one);
    else if (auto* list = std::get_if<TensorList>(&value)) std::ranges::for_each(*list, visit);
  }
}

}  // namespace rushlight
