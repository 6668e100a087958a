// Owns the entry points for memory, copies, streams and events. Everything has happened when a call
// returns, so streams and events are only kept account of, unless work is put off (queue.cpp).
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/shim/driver.h"
#include "tests/shim/graph.h"
#include "tests/shim/memory.h"

namespace shim {
namespace {

std::set<Stream*> streams;
std::set<Event*> events;
std::map<void*, size_t> host_memory;  // pinned

char* to_pointer(DevicePointer address) { return reinterpret_cast<char*>(address); }

// Gives back what the pool holds beyond its threshold, as the driver does when it waits.
void trim(Pool& pool, uint64_t keep) {
  pool.reserved = std::max(pool.used, std::min(pool.reserved, keep));
}

uint64_t* pool_attribute(Pool& pool, int key) {
  switch (key) {
    case 4: return &pool.threshold;
    case 5: return &pool.reserved;
    case 6: return &pool.reserved_high;
    case 7: return &pool.used;
    case 8: return &pool.used_high;
    default: return nullptr;
  }
}

Device* find_device(void* context) {
  auto found = std::find_if(devices.begin(), devices.end(),
                            [&](const auto& device) { return device.get() == context; });
  return found == devices.end() ? nullptr : found->get();
}

// Host memory must be the host's, for on a real device a pointer of the wrong kind goes wrong too.
bool is_pinned(const void* begin, size_t size) {
  auto after = host_memory.upper_bound(const_cast<void*>(begin));
  if (after == host_memory.begin()) return false;
  auto [start, bytes] = *std::prev(after);
  return static_cast<const char*>(begin) + size <= static_cast<char*>(start) + bytes;
}

bool is_host(const void* begin) { return begin && !device_memory.find_pages(begin); }

template <class Pattern>
Result set_memory(DevicePointer to, Pattern pattern, size_t count, void* stream) {
  Stream* queue = find_stream(stream);
  if (!queue) return kInvalidHandle;
  if (count == 0) return kSuccess;
  if (to % sizeof(pattern)) return kInvalidValue;
  return submit(queue, "memset", [=] {
    Access access;
    if (!access.open(to_pointer(to), count * sizeof(pattern))) return kInvalidValue;
    for (size_t i = 0; i < count; ++i)
      std::memcpy(to_pointer(to) + i * sizeof(pattern), &pattern, sizeof(pattern));
    return kSuccess;
  });
}

// Copies, of which `device` points to the part that is on the device. Host memory that is not
// pinned is read, or written, before the call returns.
Result copy_memory(const char* what, void* to, const void* from, DevicePointer device,
                   const void* host, size_t size, void* stream) {
  Stream* queue = find_stream(stream);
  if (!queue) return kInvalidHandle;
  if (size == 0) return kSuccess;
  if (!is_host(host)) return kInvalidValue;
  bool pinned = is_pinned(host, size);
  // A graph would copy from or to where it no longer is.
  if (capture_of(queue) && !pinned) {
    spoils_capture(queue);
    return kCaptureUnsupported;
  }
  std::shared_ptr<std::vector<char>> kept;
  if (!pinned && host == from) {
    const char* bytes = static_cast<const char*>(from);
    kept = std::make_shared<std::vector<char>>(bytes, bytes + size);
    from = kept->data();
  }
  Result result = submit(queue, what, [=] {
    Access access;
    if (!access.open(to_pointer(device), size)) return kInvalidValue;
    std::memcpy(to, from, size);
    (void)kept;  // lives as long
    return kSuccess;
  });
  return result == kSuccess && !pinned && host == to ? finish(queue) : result;
}

// Whoever asks sees that work goes on, once, for a program may ask until it is done.
Result answer_query(Stream* stream, uint64_t point) {
  if (!is_pending(stream, point)) return kSuccess;
  Result result = finish(stream, point);
  return result == kSuccess ? kNotReady : result;
}

Event* find_event(void* handle) {
  auto found = events.find(static_cast<Event*>(handle));
  return found == events.end() ? nullptr : *found;
}

}  // namespace

Stream* find_stream(void* handle) {
  constexpr uintptr_t kPerThread = 2;  // 1 and 2 are CUDA's names for the default streams
  if (reinterpret_cast<uintptr_t>(handle) <= kPerThread) return &current_device->default_stream;
  auto found = streams.find(static_cast<Stream*>(handle));
  return found == streams.end() || (*found)->device != current_device ? nullptr : *found;
}

}  // namespace shim

using namespace shim;

SHIM_API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  SHIM_ENTER();
  *total = kMemoryPerDevice;
  *free = kMemoryPerDevice - current_device->pool.reserved;
  return kSuccess;
}

namespace {

int allocate(DevicePointer* result, size_t size) {
  Pool& pool = current_device->pool;
  if (size > kMemoryPerDevice - pool.used) finish_all();  // may free memory
  if (size > kMemoryPerDevice - pool.used) return kOutOfMemory;
  char* memory = device_memory.allocate(size, current_device->index);
  if (!memory) return kOutOfMemory;
  pool.used += size;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved = std::max(pool.reserved, pool.used);
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  *result = reinterpret_cast<DevicePointer>(memory);
  return kSuccess;
}

int free_memory(DevicePointer memory) {
  Allocation* found = device_memory.find_pages(to_pointer(memory));
  if (!found || found->begin != to_pointer(memory)) return kInvalidValue;
  devices[found->device]->pool.used -= found->size;
  device_memory.free(found->begin);
  return kSuccess;
}

}  // namespace

SHIM_API int cuMemAllocAsync(DevicePointer* result, size_t size, void* stream) {
  SHIM_ENTER();
  Stream* queue = find_stream(stream);
  if (size == 0) return kInvalidValue;
  if (!queue) return kInvalidHandle;
  // It would be memory of the graph, which nobody here asks for.
  return spoils_capture(queue) ? int(kCaptureUnsupported) : allocate(result, size);
}

SHIM_API int cuMemFreeAsync(DevicePointer memory, void* stream) {
  SHIM_ENTER();
  Stream* queue = find_stream(stream);
  if (!queue) return kInvalidHandle;
  if (spoils_capture(queue)) return kCaptureUnsupported;
  Allocation* found = device_memory.find_pages(to_pointer(memory));
  if (!found || found->begin != to_pointer(memory)) return kInvalidValue;
  return submit(queue, "free", [=] { return Result(free_memory(memory)); });
}

SHIM_API int cuMemAlloc_v2(DevicePointer* result, size_t size) {
  SHIM_ENTER();
  if (is_forbidden()) return kCaptureUnsupported;
  return size == 0 ? int(kInvalidValue) : allocate(result, size);
}

SHIM_API int cuMemFree_v2(DevicePointer memory) {
  SHIM_ENTER();
  if (is_forbidden()) return kCaptureUnsupported;
  finish_all();
  return free_memory(memory);
}

SHIM_API int cuDeviceGetDefaultMemPool(void** pool, int device) {
  std::lock_guard lock(driver_mutex);
  if (devices.empty()) return kNotInitialized;
  if (device < 0 || size_t(device) >= devices.size()) return kInvalidDevice;
  *pool = &devices[device]->pool;
  return kSuccess;
}

SHIM_API int cuMemPoolSetAttribute(void* handle, int key, void* value) {
  std::lock_guard lock(driver_mutex);
  constexpr int kLastReuse = 3, kThreshold = 4, kReservedHigh = 6, kUsedHigh = 8;
  Pool& pool = *static_cast<Pool*>(handle);
  if (key >= 1 && key <= kLastReuse) return kSuccess;  // which order of reuse is allowed
  uint64_t wanted = *static_cast<uint64_t*>(value);
  if (key == kThreshold) {
    pool.threshold = wanted;
  } else if (key == kReservedHigh && wanted == 0) {
    pool.reserved_high = pool.reserved;
  } else if (key == kUsedHigh && wanted == 0) {
    pool.used_high = pool.used;
  } else {
    return kInvalidValue;
  }
  return kSuccess;
}

SHIM_API int cuMemPoolGetAttribute(void* handle, int key, void* value) {
  std::lock_guard lock(driver_mutex);
  uint64_t* attribute = pool_attribute(*static_cast<Pool*>(handle), key);
  if (attribute) *static_cast<uint64_t*>(value) = *attribute;
  return attribute ? kSuccess : kInvalidValue;
}

SHIM_API int cuMemPoolTrimTo(void* handle, size_t keep) {
  std::lock_guard lock(driver_mutex);
  trim(*static_cast<Pool*>(handle), keep);
  return kSuccess;
}

SHIM_API int cuMemHostAlloc(void** result, size_t size, unsigned) {
  SHIM_ENTER();
  constexpr size_t kPage = 4096;
  if (size == 0) return kInvalidValue;
  *result = std::aligned_alloc(kPage, (size + kPage - 1) / kPage * kPage);
  if (!*result) return kOutOfMemory;
  host_memory[*result] = size;
  return kSuccess;
}

SHIM_API int cuMemAllocHost_v2(void** result, size_t size) {
  return cuMemHostAlloc(result, size, 0);
}

SHIM_API int cuMemHostRegister_v2(void* memory, size_t size, unsigned) {
  SHIM_ENTER();
  return host_memory.try_emplace(memory, size).second ? kSuccess : kInvalidValue;
}

SHIM_API int cuMemHostUnregister(void* memory) {
  SHIM_ENTER();
  finish_all();
  return host_memory.erase(memory) ? kSuccess : kInvalidValue;
}

SHIM_API int cuMemFreeHost(void* memory) {
  SHIM_ENTER();
  finish_all();
  if (host_memory.erase(memory) == 0) return kInvalidValue;
  std::free(memory);
  return kSuccess;
}

SHIM_API int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t size, void* stream) {
  SHIM_ENTER();
  return copy_memory("copy to the device", to_pointer(to), from, to, from, size, stream);
}

SHIM_API int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t size, void* stream) {
  SHIM_ENTER();
  return copy_memory("copy to the host", to, to_pointer(from), from, to, size, stream);
}

SHIM_API int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t size, void* stream) {
  SHIM_ENTER();
  Stream* queue = find_stream(stream);
  if (!queue) return kInvalidHandle;
  if (size == 0) return kSuccess;
  return submit(queue, "copy", [=] {
    Access access;
    if (!access.open(to_pointer(to), size) || !access.open(to_pointer(from), size))
      return kInvalidValue;
    std::memmove(to_pointer(to), to_pointer(from), size);
    return kSuccess;
  });
}

SHIM_API int cuMemcpyPeerAsync(DevicePointer to, void* to_context, DevicePointer from,
                               void* from_context, size_t size, void* stream) {
  {
    SHIM_ENTER();
    Device *to_device = find_device(to_context), *from_device = find_device(from_context);
    if (!to_device || !from_device) return kInvalidContext;
    Allocation* target = device_memory.find(to_pointer(to), size);
    Allocation* source = device_memory.find(to_pointer(from), size);
    if (size && (!target || target->device != to_device->index)) return kInvalidValue;
    if (size && (!source || source->device != from_device->index)) return kInvalidValue;
  }
  return cuMemcpyDtoDAsync_v2(to, from, size, stream);
}

SHIM_API int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, void* stream) {
  SHIM_ENTER();
  return set_memory(to, value, count, stream);
}

SHIM_API int cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, void* stream) {
  SHIM_ENTER();
  return set_memory(to, value, count, stream);
}

SHIM_API int cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
  SHIM_ENTER();
  if (flags > 1) return kInvalidValue;
  *stream = *streams.insert(new Stream{.device = current_device}).first;
  return kSuccess;
}

SHIM_API int cuStreamDestroy_v2(void* handle) {
  SHIM_ENTER();
  Stream* stream = static_cast<Stream*>(handle);
  if (streams.erase(stream) == 0) return kInvalidHandle;
  static std::vector<std::unique_ptr<Stream>> retired;  // which events may still name
  retired.emplace_back(stream);
  return kSuccess;
}

SHIM_API int cuStreamQuery(void* stream) {
  SHIM_ENTER();
  Stream* queue = find_stream(stream);
  if (!queue) return kInvalidHandle;
  if (spoils_capture(queue)) return kCaptureUnsupported;
  return answer_query(queue, queue->queued);
}

SHIM_API int cuStreamSynchronize(void* stream) {
  SHIM_ENTER();
  Stream* queue = find_stream(stream);
  if (!queue) return kInvalidHandle;
  if (spoils_capture(queue)) return kCaptureUnsupported;
  Result result = finish(queue);
  trim(current_device->pool, current_device->pool.threshold);
  return result;
}

SHIM_API int cuCtxSynchronize() {
  {
    SHIM_ENTER();
    for (Stream* stream : streams) {
      if (stream->device == current_device && spoils_capture(stream)) return kCaptureUnsupported;
    }
    if (Result result = finish_all(); result != kSuccess) return result;
  }
  return cuStreamSynchronize(nullptr);
}

// The event may be another device's; that is what it is for.
SHIM_API int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  SHIM_ENTER();
  if (flags > 1) return kInvalidValue;
  Stream* queue = find_stream(stream);
  Event* awaited = find_event(event);
  if (!queue || !awaited) return kInvalidHandle;
  if (queue->capture || awaited->capture) return wait_in_capture(queue, *awaited);
  if (!awaited->stream) return kSuccess;
  return submit(queue, "wait",
                [from = awaited->stream, point = awaited->point] { return finish(from, point); });
}

SHIM_API int cuEventCreate(void** event, unsigned flags) {
  SHIM_ENTER();
  constexpr unsigned kBlocking = 1, kDisableTiming = 2;
  if (flags & ~(kBlocking | kDisableTiming)) return kInvalidValue;
  *event =
      *events
           .insert(new Event{.device = current_device, .measures_time = !(flags & kDisableTiming)})
           .first;
  return kSuccess;
}

SHIM_API int cuEventRecord(void* handle, void* stream) {
  SHIM_ENTER();
  Event* event = find_event(handle);
  if (!event || event->device != current_device || !find_stream(stream)) return kInvalidHandle;
  event->time = std::chrono::steady_clock::now();
  event->is_recorded = true;
  event->stream = find_stream(stream);
  event->point = event->stream->queued;
  record_in_capture(event->stream, *event);
  return kSuccess;
}

SHIM_API int cuEventQuery(void* handle) {
  SHIM_ENTER();
  Event* event = find_event(handle);
  if (!event) return kInvalidHandle;
  if (event->capture) return kCapturedEvent;
  if (is_forbidden()) return kCaptureUnsupported;
  return event->stream ? answer_query(event->stream, event->point) : kSuccess;
}

SHIM_API int cuEventSynchronize(void* handle) {
  SHIM_ENTER();
  Event* event = find_event(handle);
  if (!event) return kInvalidHandle;
  if (event->capture) return kCapturedEvent;
  return event->stream ? finish(event->stream, event->point) : kSuccess;
}

SHIM_API int cuEventElapsedTime(float* milliseconds, void* start_handle, void* end_handle) {
  SHIM_ENTER();
  Event *start = find_event(start_handle), *end = find_event(end_handle);
  if (!start || !end || start->device != end->device) return kInvalidHandle;
  for (Event* event : {start, end}) {
    if (!event->measures_time || !event->is_recorded) return kInvalidHandle;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return kSuccess;
}

SHIM_API int cuEventDestroy_v2(void* handle) {
  SHIM_ENTER();
  Event* event = static_cast<Event*>(handle);
  if (events.erase(event) == 0) return kInvalidHandle;
  delete event;
  return kSuccess;
}
