// Defines how a call with lifted arguments is brought down by a level, and what is written to them.
#include "core/ops/lift.h"

#include <mutex>
#include <set>

#include "core/autograd/needs.h"
#include "core/autograd/view_parent.h"
#include "core/ops/batch.h"
#include "core/ops/dispatch.h"
#include "core/ops/visit_tensors.h"
#include "core/tensor/generator.h"

namespace rushlight {
namespace {

// Levels from this one on are not there for what is called: it works on what is behind them.
thread_local uint64_t hidden_from = UINT64_MAX;

class BelowLevel {
 public:
  explicit BelowLevel(const Level& level) : previous_(hidden_from) { hidden_from = level.id; }
  ~BelowLevel() { hidden_from = previous_; }
  BelowLevel(const BelowLevel&) = delete;
  BelowLevel& operator=(const BelowLevel&) = delete;

 private:
  uint64_t previous_;
};

const Level* visible_batch_level() {
  const std::vector<Level>& levels = open_levels();
  for (size_t i = levels.size(); i-- > 0;)
    if (levels[i].kind == LevelKind::batch && levels[i].id < hidden_from) return &levels[i];
  return nullptr;
}

bool has_samples(const Tensor& t, const Level& level) {
  if (!is_lifted(t) || level_of(t).id < level.id) return false;
  return level_of(t).id == level.id || has_samples(t.impl()->lift->value, level);
}

bool is_open(const Level& level) {
  return std::ranges::any_of(open_levels(), [&](const Level& l) { return l.id == level.id; });
}

const Level* innermost(std::span<const Value> args) {
  const Level* innermost = nullptr;
  visit_tensors(args, [&](const Tensor& t) {
    if (is_lifted(t) && (!innermost || level_of(t).id > innermost->id)) innermost = &level_of(t);
  });
  return innermost;
}

Generator& generator_of(std::span<const Value> args) {
  for (const Value& value : args)
    if (auto* generator = std::get_if<Generator*>(&value)) return **generator;
  return default_generator();
}

bool has_lifted(std::span<const Value> args, const Level& level) {
  const Level* found = innermost(args);
  return found && found->id == level.id;
}

// A random op with its numbers as the level wants them.
Result draw(const OpEntry& entry, std::span<const Value> args, const Level& level) {
  CHECK(level.randomness != Randomness::error,
        "vmap: called random operation while in randomness error mode. Please either use the "
        "'same' or 'different' randomness flags on vmap or perform the randomness operation out of "
        "vmap");
  Batch batch(entry, level, args);
  bool depends = has_lifted(args, level);
  if (level.randomness == Randomness::different) {
    if (!depends) batch.spread_all();
    return each_tensor(batch.run(), [&](const Tensor& t) { return lift_samples(t, level); });
  }
  if (!depends) return entry.call(args.data());
  Generator& generator = generator_of(args);
  return each_tensor(batch.by_samples(&generator),
                     [&](const Tensor& t) { return lift_samples(t, level); });
}

Result call_batch(const OpEntry& entry, std::span<const Value> args, const Level& level) {
  CHECK(is_open(level),
        "a tensor of a vmap that has ended cannot be used. Return it from the function.");
  Batch batch(entry, level, args);
  Tensor base = entry.is_view ? base_of_view(*std::get<const Tensor*>(args[0]), level) : Tensor();
  return each_tensor(batch.run(), [&](const Tensor& t) { return lift_samples(t, level, base); });
}

// The innermost batch level at which anything behind the arguments has samples, tangents too.
const Level* batch_within(std::span<const Value> args) {
  const Level* found = nullptr;
  visit_tensors(args, [&](const Tensor& t) {
    for (const Level& level : open_levels())
      if (level.kind == LevelKind::batch && (!found || level.id > found->id) && involves(t, level))
        found = &level;
  });
  return found;
}

// Runs an op whose arguments are lifted at levels inside this one too, each sample on its own.
Result call_by_samples(const OpEntry& entry, std::span<const Value> args, const Level& level) {
  std::vector<Value> values(args.begin(), args.end());
  std::vector<Tensor> tensors(args.size());
  std::vector<std::vector<Tensor>> lists(args.size());
  auto outside = [&](const Tensor& t) {
    return involves(t, level) ? lift_samples(samples_of(t, level), level) : t;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (auto* one = std::get_if<const Tensor*>(&args[i])) {
      values[i] = &(tensors[i] = outside(**one));
    } else if (auto* list = std::get_if<TensorList>(&args[i])) {
      for (const Tensor& t : *list) lists[i].push_back(outside(t));
      values[i] = TensorList(lists[i]);
    }
  }
  detail::warn_of_loop(entry);
  return each_tensor(Batch(entry, level, values).by_samples(),
                     [&](const Tensor& t) { return from_samples(t, level); });
}

Result call_dual_or_by_samples(const OpEntry& entry, std::span<const Value> args,
                               const Level& level) {
  const Level* batch = batch_within(args);
  // What is made of other ops comes here only when they needed elements, and has no tangent itself.
  bool composed = !entry.differentiable && entry.batch_rule == BatchRule::unsaid;
  if (!batch || !composed) {
    try {
      return call_dual(entry, args, level);
    } catch (const NeedsElements&) {
      if (!batch) throw;
    }
  }
  return call_by_samples(entry, args, Level(*batch));
}

// Whether another tensor has samples at a batch level at which a tangent has none.
bool lacks_samples(const Tensor& tangent, const Tensor& other, const Level& level) {
  return level.kind == LevelKind::batch && involves(other, level) && !involves(tangent, level);
}

// A tangent with samples of its own wherever another one has them, in the same layout.
Tensor spread_like(Tensor tangent, const Tensor& other) {
  for (const Level& level : open_levels()) {
    if (!lacks_samples(tangent, other, level)) continue;
    Shape strides = tangent.strides();
    int64_t extent = 1;
    for (int64_t d = 0; d < tangent.dim(); ++d)
      extent += std::max<int64_t>(tangent.size(d) - 1, 0) * tangent.stride(d);
    strides.insert(0, extent);
    tangent = from_samples(needs::clone_strided(samples_of(tangent, level), strides), level);
  }
  return tangent;
}

// What a tensor is a view of, in the same memory; undefined if it is none.
Tensor base_of(const Tensor& t) {
  const Tensor* base = is_lifted(t) ? &t.impl()->lift->base : find_view_parent(t);
  if (base && base->defined() && bottom(*base).storage() == bottom(t).storage()) return *base;
  return is_lifted(t) ? Tensor() : view_base(t);
}

// What a tensor is a view of becomes what is behind that at a level.
void lower_base(const Tensor& view, const Level& level) {
  if (is_lifted(view)) {
    const Lift& lift = *view.impl()->lift;
    view.impl()->lift = IntrusivePtr<Lift>::adopt(
        new Lift(lift.level, lift.value, lift.tangent, lowered(lift.base, level)));
    return;
  }
  Tensor& root = get_meta(view).view->base;
  root = Tensor(lowered(root, level));
  if (Tensor* parent = find_view_parent(view)) *parent = Tensor(lowered(*parent, level));
}

// Gives a tensor, and what it is a view of, a tangent at a level where `other` can be written; zero
// if it has none.
void become_dual(const Tensor& t, const Tensor& other, const Level& level) {
  bool is_dual = is_lifted_at(t, level);
  if (is_dual && std::ranges::none_of(open_levels(), [&](const Level& batch) {
        return lacks_samples(t.impl()->lift->tangent, other, batch);
      }))
    return;
  Tensor base = base_of(t), value, tangent;
  if (base.defined()) {
    become_dual(base, other, level);
    Tensor whole = tangent_of(base, level);
    tangent = as_strided(whole, t.sizes(), t.strides(),
                         whole.offset() + bottom(t).offset() - bottom(base).offset());
  } else {
    Tensor before = is_dual ? t.impl()->lift->tangent : zeros_like(t);
    tangent = spread_like(needs::clone_strided(before, t.strides()), other);
  }
  if (is_dual) {
    value = t.impl()->lift->value;
  } else {
    value = shallow_copy(t);
    value.impl()->autograd = std::move(t.impl()->autograd);
    value.impl()->requires_grad = t.requires_grad();
    if (base.defined()) lower_base(value, level);
  }
  take_lift(t, lift_dual(value, tangent, level, base));
}

}  // namespace

bool inside_batch_level() { return !open_levels().empty() && visible_batch_level(); }

uint64_t exchange_hidden_levels(uint64_t from) { return std::exchange(hidden_from, from); }

void detail::warn_of_loop(const OpEntry& entry) {
  static std::mutex mutex;
  static std::set<std::string_view> warned;
  {
    std::lock_guard lock(mutex);
    if (!warned.insert(entry.schema.name).second) return;
  }
  if (warn_user)
    warn_user("vmap: " + std::string(entry.schema.name) +
              " has no batching rule here, so it runs sample by sample, which is slow.");
}

Result call_lifted(const OpEntry& entry, std::span<const Value> args) {
  const Level* found = innermost(args);
  if (entry.draws)
    if (const Level* drawing = visible_batch_level();
        drawing && (!found || drawing->id >= found->id)) {
      BelowLevel below(*drawing);
      return draw(entry, args, Level(*drawing));
    }
  Level level = *found;
  BelowLevel below(level);
  return level.kind == LevelKind::batch ? call_batch(entry, args, level)
                                        : call_dual_or_by_samples(entry, args, level);
}

Result call_led_away(const OpEntry& entry, std::span<const Value> args) {
  bool has_levels = innermost(args) || (entry.draws && visible_batch_level());
  return has_levels ? call_lifted(entry, args) : call_dispatched(entry, CallForm::plain, args);
}

void overwrite_lifted(const Tensor& self, const Tensor& result) {
  const Value both[] = {&self, &result};
  const Level* found = innermost(both);
  if (!found) return needs::copy_(self, result);
  Level level = *found;
  if (level.kind == LevelKind::batch) {
    CHECK(is_lifted_at(self, level),
          "vmap: inplace arithmetic(self, *extra_args) is not possible because the tensor is the "
          "same for all samples, and what is written depends on the sample. Use the form without "
          "underscore, or make the tensor with new_zeros of one that has samples.");
    overwrite_lifted(lowered(self, level), samples_of(result, level));
  } else {
    Tensor tangent = tangent_of(result, level);
    become_dual(self, tangent, level);
    overwrite_lifted(lowered(self, level), lowered(result, level));
    overwrite_lifted(tangent_of(self, level),
                     tangent.defined() ? tangent : zeros_like(self.impl()->lift->tangent));
  }
  for (Tensor written = self; written.defined(); written = base_of(written))
    written.impl()->requires_grad = bottom(written).requires_grad();
}

bool involves(const Tensor& t, const Level& level) {
  if (!is_lifted(t) || level_of(t).id < level.id) return false;
  const Lift& lift = *t.impl()->lift;
  return lift.level.id == level.id || involves(lift.value, level) || involves(lift.tangent, level);
}

Tensor samples_of(const Tensor& t, const Level& level) {
  if (is_lifted_at(t, level)) return lowered(t, level);
  if (is_lifted(t) && level_of(t).id > level.id) {
    const Lift& lift = *t.impl()->lift;
    Tensor samples = samples_of(lift.value, level);
    if (lift.level.kind == LevelKind::dual)
      return lift_dual(samples, samples_of(lift.tangent, level), lift.level);
    return lift_samples(transpose(samples, 0, 1), lift.level);
  }
  Shape sizes{level.size};
  for (int64_t size : t.sizes()) sizes.push_back(size);
  return expand(t, sizes);
}

Tensor from_samples(const Tensor& samples, const Level& level) {
  if (!is_lifted(samples) || level_of(samples).id < level.id) return lift_samples(samples, level);
  const Lift& lift = *samples.impl()->lift;
  if (lift.level.kind == LevelKind::dual)
    return lift_dual(from_samples(lift.value, level), from_samples(lift.tangent, level),
                     lift.level);
  return lift_samples(from_samples(transpose(lift.value, 0, 1), level), lift.level);
}

Tensor per_sample(const Tensor& t, const Tensor& like) {
  if (!is_lifted(like)) return t;
  const Lift& lift = *like.impl()->lift;
  if (lift.level.kind == LevelKind::dual) return per_sample(t, lift.value);
  return lift_samples(per_sample(clone(samples_of(t, lift.level)), lift.value), lift.level);
}

Tensor copy_to_write(const Tensor& input, TensorList others) {
  Tensor spread = input;
  for (const Level& level : open_levels())
    if (level.kind == LevelKind::batch && !has_samples(spread, level) &&
        std::ranges::any_of(others, [&](const Tensor& t) { return has_samples(t, level); }))
      spread = from_samples(samples_of(spread, level), level);
  return clone(spread);
}

Tensor value_at(const Tensor& t, const Level& level) {
  if (!is_lifted(t) || level_of(t).id <= level.id) return lowered(t, level);
  const Lift& lift = *t.impl()->lift;
  Tensor value = value_at(lift.value, level);
  return lift.level.kind == LevelKind::batch
             ? lift_samples(value, lift.level)
             : lift_dual(value, value_at(lift.tangent, level), lift.level);
}

Tensor tangent_at(const Tensor& t, const Level& level) {
  if (!is_lifted(t) || level_of(t).id <= level.id) return tangent_of(t, level);
  const Lift& lift = *t.impl()->lift;
  Tensor value = tangent_at(lift.value, level);
  if (lift.level.kind == LevelKind::batch)
    return value.defined() ? lift_samples(value, lift.level) : value;
  Tensor tangent = tangent_at(lift.tangent, level);
  if (!value.defined() && !tangent.defined()) return {};
  if (!value.defined()) value = zeros_like(tangent);
  return tangent.defined() ? lift_dual(value, tangent, lift.level) : value;
}

Tensor from_value(const Tensor& value, const Tensor& tangent, const Level& level) {
  const Value both[] = {&value, &tangent};
  const Level* found = innermost(both);
  if (!found || found->id < level.id) return lift_dual(value, tangent, level);
  Level inner = *found;
  if (inner.kind == LevelKind::batch)
    return lift_samples(from_value(samples_of(value, inner), samples_of(tangent, inner), level),
                        inner);
  auto part = [&](const Tensor& t) {
    Tensor along = tangent_of(t, inner);
    return along.defined() ? along : zeros_like(lowered(t, inner));
  };
  return lift_dual(from_value(lowered(value, inner), lowered(tangent, inner), level),
                   from_value(part(value), part(tangent), level), inner);
}

namespace {

Tensor with_fresh_bottom(const Tensor& t) {
  if (!is_lifted(t)) {
    // A view keeps what an outer derivative needs; without that, a leaf.
    if (t.requires_grad() && is_grad_enabled()) return call<"view_as", Tensor>(t, t);
    Tensor leaf = t.impl()->inference ? needs::clone(t) : detach(t);
    set_requires_grad(leaf, true);
    return leaf;
  }
  const Lift& lift = *t.impl()->lift;
  Tensor value = with_fresh_bottom(lift.value);
  return lift.level.kind == LevelKind::batch ? lift_samples(value, lift.level)
                                             : lift_dual(value, lift.tangent, lift.level);
}

}  // namespace

Tensor fresh_input(const Tensor& t) {
  Tensor spread = t;
  for (const Level& level : open_levels())
    if (level.kind == LevelKind::batch && !has_samples(spread, level))
      spread = from_samples(samples_of(spread, level), level);
  return with_fresh_bottom(spread);
}

Tensor without_history(const Tensor& t) {
  if (!is_lifted(t)) return detach(t);
  const Lift& lift = *t.impl()->lift;
  if (lift.level.kind == LevelKind::batch)
    return lift_samples(without_history(lift.value), lift.level);
  return lift_dual(without_history(lift.value), without_history(lift.tangent), lift.level);
}

}  // namespace rushlight
