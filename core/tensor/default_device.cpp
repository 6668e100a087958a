// Defines the default device of a thread.
#include "core/tensor/default_device.h"

namespace rushlight {
namespace {

thread_local Device place;

}  // namespace

Device default_device() { return place; }
void set_default_device(Device device) { place = device; }

}  // namespace rushlight
