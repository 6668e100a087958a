// Declares what happens to calls with lifted arguments; see Note [Lifted tensors] in tensor/lift.h.
#pragma once

#include "core/ops/value.h"
#include "core/tensor/lift.h"

namespace rushlight {

// Whether a batch level is open for the ops that are called now. While a level's arguments are
// lowered, that level and those inside it are not.
bool inside_batch_level();
// Sets from which level on levels are not, none for UINT64_MAX; returns what it was.
uint64_t exchange_hidden_levels(uint64_t from);

// Runs the op on what is behind its lifted arguments, and lifts the result. Also runs one that
// draws random numbers inside a batch level.
// An op that writes its first argument writes a copy of it instead, which is the result.
Result call_lifted(const OpEntry& entry, std::span<const Value> args);
// The same, or call_dispatched() for a call that has nothing to do with levels.
Result call_led_away(const OpEntry& entry, std::span<const Value> args);
// Writes `result` over a tensor when one of them is lifted. What was plain becomes dual; it cannot
// become a batch of samples.
void overwrite_lifted(const Tensor& self, const Tensor& result);

// Whether anything behind a tensor, or its tangents, is lifted at a level.
bool involves(const Tensor& t, const Level& level);
// The samples of a tensor at a batch level by dim 0, even if it is lifted at levels inside that
// one: these stay on top. A tensor that is not lifted at the level is the same for each sample.
Tensor samples_of(const Tensor& t, const Level& level);
// The reverse.
Tensor from_samples(const Tensor& samples, const Level& level);
// A plain tensor, with memory of its own for each sample that `like` stands for.
Tensor per_sample(const Tensor& t, const Tensor& like);
// A copy of input that can be written with what depends on others: it has all of their samples.
Tensor copy_to_write(const Tensor& input, TensorList others);
inline Tensor copy_to_write(const Tensor& input, std::initializer_list<Tensor> others) {
  return copy_to_write(input, TensorList(others.begin(), others.size()));
}
// The value and the tangent of a tensor at a dual level in the same way; no tangent is undefined.
Tensor value_at(const Tensor& t, const Level& level);
Tensor tangent_at(const Tensor& t, const Level& level);
Tensor from_value(const Tensor& value, const Tensor& tangent, const Level& level);
// A tensor of equal value that new gradients end at. Within vmap each sample has its own.
Tensor fresh_input(const Tensor& t);
// An equal tensor without history; a dual one keeps its tangent, which detach() does not.
Tensor without_history(const Tensor& t);

// lift_dual.cpp
Result call_dual(const OpEntry& entry, std::span<const Value> args, const Level& level);

// Gives the user a warning; set by the bindings.
inline void (*warn_user)(const std::string& text) = nullptr;

}  // namespace rushlight
