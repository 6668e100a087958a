// Owns lifted tensors: what stands for a tensor inside vmap and in forward-mode differentiation.
//
// Note [Lifted tensors]
// A transform opens a level. Within a batch level (vmap) a lifted tensor of shape S stands for each
// of n tensors of that shape, which lie behind it in one of shape (n, *S). Within a dual level a
// lifted tensor is a value together with its derivative along a direction, the tangent. To the
// function of the user both look like any tensor: the impl has its sizes and its dtype, but no
// elements, as data() says when it is asked.
// What is behind a lifted tensor may be lifted itself, at a level that was opened earlier. An op
// that meets a lifted argument leaves the usual path (ops/lift.cpp): it lowers the arguments of the
// innermost level, calls ops on what was behind them, and lifts the results. So the tape and the
// kernels know nothing of levels: the history of a lifted tensor is that of the tensor behind it,
// and it has none itself.
#pragma once

#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace rushlight {

enum class LevelKind : uint8_t { batch, dual };
// What random ops do inside vmap: refuse, draw for each sample, draw once for all.
enum class Randomness : uint8_t { error, different, same };

struct Level {
  uint64_t id = 0;  // grows: a level opened inside another has the larger one; 0 is none
  LevelKind kind = LevelKind::batch;
  int64_t size = 0;  // of a batch
  Randomness randomness = Randomness::error;
};

// The levels that are open on this thread, outermost first.
const std::vector<Level>& open_levels();
const Level& open_batch_level(int64_t size, Randomness randomness);
const Level& open_dual_level();
void close_level(uint64_t id);
// Opens other levels in place of all those of this thread, which are returned.
std::vector<Level> exchange_levels(std::vector<Level> levels);

class Lift final : public RefCounted {
 public:
  Lift(const Level& level_in, Tensor value_in, Tensor tangent_in, Tensor base_in)
      : level(level_in),
        value(std::move(value_in)),
        tangent(std::move(tangent_in)),
        base(std::move(base_in)) {}
  static void destroy(Lift* lift) { delete lift; }

  const Level level;
  const Tensor value;    // all samples, by dim 0; or the primal value
  const Tensor tangent;  // of a dual tensor, with the sizes and dtype of its value
  const Tensor base;     // of a view: the lifted tensor that gets what is written to the view
};

inline bool is_lifted(const Tensor& t) { return t.defined() && t.impl()->lift; }
inline const Level& level_of(const Tensor& lifted) { return lifted.impl()->lift->level; }
inline bool is_lifted_at(const Tensor& t, const Level& level) {
  return is_lifted(t) && level_of(t).id == level.id;
}
// What is behind a tensor that is lifted at this level; another tensor itself.
inline const Tensor& lowered(const Tensor& t, const Level& level) {
  return is_lifted_at(t, level) ? t.impl()->lift->value : t;
}
// The tangent of a tensor that is lifted at this level; undefined, which is zero, for another one.
Tensor tangent_of(const Tensor& t, const Level& level);
// The plain tensor at the bottom, which has the history.
const Tensor& bottom(const Tensor& t);

// One sample of `samples` (n, ...), at a batch level of size n.
Tensor lift_samples(const Tensor& samples, const Level& level, const Tensor& base = {});
Tensor lift_dual(const Tensor& value, const Tensor& tangent, const Level& level,
                 const Tensor& base = {});
// What a view of `viewed` at this level is a view of; undefined if that is not lifted there.
Tensor base_of_view(const Tensor& viewed, const Level& level);
// Makes a lifted tensor stand for what another one stands for, or be that if it is not lifted.
void take_lift(const Tensor& to, const Tensor& other);

// Thrown where elements are asked for that a lifted tensor, or a wrapper, does not have. An op made
// of other ops is done again another way when it meets this, see ops/lift.cpp.
class NeedsElements final : public Error {
 public:
  explicit NeedsElements(const Tensor& hollow);
};

}  // namespace rushlight
