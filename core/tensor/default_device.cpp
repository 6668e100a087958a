// Defines the default device of a thread.
#include "core/tensor/default_device.h"

namespace rushlight {
namespace {

thread_local Device place;

}  // namespace

Device default_device() { return place; }
void set_default_device(Device device) { place = device; }

Tensor fresh(ShapeRef size, std::optional<DType> dtype, std::optional<Device> device) {
  return empty(size, dtype.value_or(default_dtype()), device.value_or(default_device()));
}

}  // namespace rushlight
