// Defines lifted tensors and the levels of a thread.
#include "core/tensor/lift.h"

#include <algorithm>
#include <atomic>

namespace rushlight {
namespace {

thread_local std::vector<Level> levels;

const Level& open_level(Level level) {
  static std::atomic<uint64_t> last{0};
  level.id = ++last;
  levels.push_back(level);
  return levels.back();
}

// A tensor of these sizes and strides without elements.
Tensor hollow(const Tensor& behind, ShapeRef sizes, ShapeRef strides, IntrusivePtr<Lift> lift) {
  Tensor lifted = empty(Shape{0}, behind.dtype());
  TensorImpl& impl = *lifted.impl();
  impl.storage = StorageImpl::none(behind.device());
  impl.sizes = sizes;
  impl.strides = strides;
  impl.layout_changed();
  impl.requires_grad = behind.requires_grad();
  impl.lift = std::move(lift);
  impl.parts_changed();
  return lifted;
}

}  // namespace

const std::vector<Level>& open_levels() { return levels; }

const Level& open_batch_level(int64_t size, Randomness randomness) {
  return open_level({0, LevelKind::batch, size, randomness});
}

const Level& open_dual_level() { return open_level({0, LevelKind::dual}); }

void close_level(uint64_t id) {
  std::erase_if(levels, [&](const Level& level) { return level.id == id; });
}

std::vector<Level> exchange_levels(std::vector<Level> others) {
  return std::exchange(levels, std::move(others));
}

Tensor tangent_of(const Tensor& t, const Level& level) {
  return is_lifted_at(t, level) ? t.impl()->lift->tangent : Tensor();
}

const Tensor& bottom(const Tensor& t) {
  const Tensor* plain = &t;
  while (is_lifted(*plain)) plain = &plain->impl()->lift->value;
  return *plain;
}

Tensor lift_samples(const Tensor& samples, const Level& level, const Tensor& base) {
  ASSERT(samples.dim() > 0 && samples.size(0) == level.size);
  return hollow(samples, ShapeRef(samples.sizes()).subspan(1),
                ShapeRef(samples.strides()).subspan(1),
                IntrusivePtr<Lift>::adopt(new Lift(level, samples, {}, base)));
}

Tensor lift_dual(const Tensor& value, const Tensor& tangent, const Level& level,
                 const Tensor& base) {
  ASSERT(value.sizes() == tangent.sizes());
  return hollow(value, value.sizes(), value.strides(),
                IntrusivePtr<Lift>::adopt(new Lift(level, value, tangent, base)));
}

Tensor base_of_view(const Tensor& viewed, const Level& level) {
  if (!is_lifted_at(viewed, level)) return {};
  // A chain of views is freed by recursion, so a long one leaves some out.
  const Tensor* base = &viewed;
  for (int length = 0; length < 64; ++length) {
    const Tensor& next = base->impl()->lift->base;
    if (!next.defined()) return viewed;
    base = &next;
    if (!is_lifted(*base)) return viewed;
  }
  return *base;
}

void take_lift(const Tensor& to, const Tensor& other) {
  TensorImpl& impl = *to.impl();
  const TensorImpl& from = *other.impl();
  impl.storage = from.storage;
  impl.offset = from.offset;
  impl.sizes = from.sizes;
  impl.strides = from.strides;
  impl.dtype = from.dtype;
  if (from.lift && from.lift->base.is(to))  // a view of the tensor that it becomes
    impl.lift = IntrusivePtr<Lift>::adopt(
        new Lift(from.lift->level, from.lift->value, from.lift->tangent, impl.lift->base));
  else impl.lift = from.lift;
  impl.parts_changed();
  impl.requires_grad = from.requires_grad;
  impl.layout_changed();
}

NeedsElements::NeedsElements(const Tensor& hollow)
    : Error(ErrorKind::kRuntime,
            !is_lifted(hollow)
                ? "a tensor made by _make_wrapper_subclass has no elements of its own. Let the "
                  "__torch_dispatch__ of its class do what is asked for, with the tensors inside."
            : level_of(hollow).kind == LevelKind::batch
                ? "the elements of a tensor inside vmap are not known while the function runs: it "
                  "stands for many samples at once. Use torch.where in place of `if`, and keep "
                  ".item(), float() and NumPy out of the function."
                : "a dual tensor has no memory of its own. Take its value with "
                  "forward_ad.unpack_dual(tensor).primal.") {}

}  // namespace rushlight
