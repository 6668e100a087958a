#include "core/ops/watched_call.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "core/autograd/needs.h"
#include "core/ops/visit_tensors.h"

namespace rushlight {
namespace {

// The cast of a parameter, with the version that it was made of.
struct KeptCast {
  Tensor source, cast;
  uint32_t version;
};
// Those with a history, and those made without recording.
using KeptCasts = std::array<std::unordered_map<const TensorImpl*, KeptCast>, 2>;
KeptCasts& kept_casts() {
  thread_local auto casts = std::make_unique<KeptCasts>();  // see Note [Static TLS]
  return *casts;
}

bool is_castable(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::float64 && !t.is_sparse();
}

Tensor cast_to(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  bool keeps = autocast_mode.keeps_casts && autocast_mode.depth > 0 &&
               t.dtype() == DType::float32 && t.requires_grad() && !t.is_hollow() && is_leaf(t);
  if (!keeps) return needs::to_dtype(t, dtype);
  KeptCast& kept = kept_casts()[is_grad_enabled()][t.impl()];
  uint32_t version = t.storage()->version();
  if (!kept.cast.defined() || kept.cast.dtype() != dtype || kept.version != version)
    kept = {t, needs::to_dtype(t, dtype), version};
  return kept.cast;
}

}  // namespace

WatchedCall::WatchedCall(const char* name, const Autocast& autocast, std::span<Value> values)
    : values_(values) {
  if (current_profile) {
    range_.emplace(name, RangeKind::op);
    if (current_profile->notes_shapes)
      visit_tensors(values, [](const Tensor& t) {
        current_profile->ranges.back().shapes.push_back(t.defined() ? t.sizes() : Shape());
      });
  }
  if (call_watch.watchers & kWatchedByAutocast) {
    std::optional<Device> device;
    visit_tensors(values, [&](const Tensor& t) {
      if (t.defined() && !device) device = t.device();
    });
    const auto* mode = device ? find_autocast(device->type) : nullptr;
    CastTo to = !mode || !mode->enabled ? CastTo::keep
                : device->is_cpu()      ? autocast.cpu
                                        : autocast.cuda;
    if (to != CastTo::keep) {
      if (to != CastTo::as_given) cast(to, mode->dtype, values);
      uncast_.emplace();
    }
  }
  call_watch.passes = call_watch.watchers & watchers_of(autocast.casts());
}

std::optional<Result> WatchedCall::dispatch(const char* cpp_name, CallForm form,
                                            const Tensor* out) {
  if (!(call_watch.watchers & kWatchedByModes)) return std::nullopt;
  const OpEntry& entry = entry_of(cpp_name);
  if (!is_seen_by_modes(entry, values_)) return std::nullopt;
  // With the argument inplace=True the op is called in place, and seen then.
  int flag =
      form == CallForm::plain && entry.differentiable ? entry.schema.index_of("inplace") : -1;
  if (flag >= 0 && std::get<bool>(values_[size_t(flag)])) return std::nullopt;
  call_watch.passes = false;
  return call_dispatched(entry, form, values_, out);
}

void WatchedCall::cast(CastTo to, DType lower, std::span<Value> values) {
  DType dtype = to == CastTo::single ? DType::float32 : lower;
  if (to == CastTo::widest)
    visit_tensors(values, [&](const Tensor& t) {
      if (is_castable(t) && t.dtype() == DType::float32) dtype = DType::float32;
    });
  casts_.reserve(values.size());
  lists_.reserve(values.size());
  auto cast_one = [&](const Tensor& t) { return is_castable(t) ? cast_to(t, dtype) : t; };
  for (Value& value : values) {
    if (auto* one = std::get_if<const Tensor*>(&value)) {
      value = &casts_.emplace_back(cast_one(**one));
    } else if (auto* list = std::get_if<TensorList>(&value)) {
      std::vector<Tensor>& cast = lists_.emplace_back();
      for (const Tensor& t : *list) cast.push_back(cast_one(t));
      value = TensorList(cast);
    }
  }
}

void clear_autocast_cache() { kept_casts() = {}; }

}  // namespace rushlight
