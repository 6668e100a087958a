// Owns what Python says to the watchers of calls: autocast and the profiler.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/python.h"
#include "core/ops/watched_call.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace rushlight::python {
namespace {

AutocastMode::OnDevice& autocast_of(const std::string& device_type) {
  for (DeviceType type : {DeviceType::cpu, DeviceType::cuda})
    if (device_type == device_type_name(type)) return *find_autocast(type);
  CHECK(false, "autocast: unsupported device_type '", device_type, "'. It is 'cpu' or 'cuda'.");
}

nb::list ranges_of(const Profile& profile) {
  static constexpr const char* kinds[] = {"op", "backward", "user"};
  nb::list out;
  for (const ProfiledRange& range : profile.ranges) {
    nb::list shapes;
    for (const Shape& shape : range.shapes) shapes.append(nb::tuple(nb::steal(wrap_size(shape))));
    out.append(nb::make_tuple(range.name, kinds[size_t(range.kind)], range.start, range.end,
                              range.parent, range.allocated, shapes,
                              describe_call_site(range.site)));
  }
  return out;
}

}  // namespace

void add_watchers(PyObject* module) {
  auto m = nb::borrow<nb::module_>(module);
  m.def(
      "_autocast",
      [](const std::string& device_type) {
        const auto& mode = autocast_of(device_type);
        return nb::make_tuple(mode.enabled, nb::steal(wrap_dtype(mode.dtype)));
      },
      "device_type"_a, "(enabled, dtype) of autocast on a device.");
  m.def(
      "_set_autocast",
      [](const std::string& device_type, bool enabled, nb::handle d) {
        auto& mode = autocast_of(device_type);
        CHECK(read_dtype(d.ptr(), mode.dtype), ErrorKind::kType,
              "autocast: invalid dtype object: it must be a torch.dtype such as "
              "torch.bfloat16, not ",
              Py_TYPE(d.ptr())->tp_name, ".");
        mode.enabled = enabled;
        update_autocast_watch();
      },
      "device_type"_a, "enabled"_a, "dtype"_a, "Sets these for this thread.");
  m.def(
      "autocast_increment_nesting", [] { return ++autocast_mode.depth; },
      "Enters a context of autocast; returns how many there are.");
  m.def(
      "autocast_decrement_nesting", [] { return --autocast_mode.depth; },
      "Leaves a context of autocast; returns how many are left.");
  m.def("clear_autocast_cache", &clear_autocast_cache,
        "Forgets the casts of parameters that autocast kept.");
  m.def(
      "is_autocast_cache_enabled", [] { return autocast_mode.keeps_casts; },
      "Whether autocast keeps the casts of parameters.");
  m.def(
      "set_autocast_cache_enabled", [](bool enabled) { autocast_mode.keeps_casts = enabled; },
      "enabled"_a, "Sets whether autocast keeps the casts of parameters.");

  m.def("_start_profile", &start_profile, "shapes"_a, "memory"_a, "sites"_a,
        "Begins to note what this thread runs.");
  m.def(
      "_stop_profile", [] { return ranges_of(*stop_profile()); },
      "Ends it: (name, kind, start, end, parent, allocated, shapes, site) of each range, times in "
      "ns.");
  m.def(
      "_begin_range",
      [](std::string name) {
        RangeId range = begin_range(std::move(name), RangeKind::user);
        return nb::make_tuple(range.profile, range.index);
      },
      "name"_a, "Begins a named range where this thread is profiled; returns what names it.");
  m.def(
      "_end_range", [](int64_t profile, int64_t index) { end_range({profile, index}); },
      "profile"_a, "index"_a, "Ends a range, unless its profile is over.");
}

}  // namespace rushlight::python
