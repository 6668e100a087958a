// Owns the pretended NCCL: communicators of real processes on this machine, whose calls return when
// all ranks have made them and the data is there. It refuses what NCCL's documentation forbids,
// also what NCCL does not notice: ranks that call different things, and overlapping buffers.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "core/base/half.h"
#include "tests/shim/driver.h"
#include "tests/shim/graph.h"
#include "tests/shim/memory.h"
#include "tests/shim/room.h"

namespace shim {
namespace {

enum Status : int { kDone = 0, kInternal = 3, kBadArgument = 4, kBadUsage = 5, kRemote = 6 };
enum Kind : int { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kReceive };
constexpr const char* kKinds[] = {"AllReduce",     "Reduce", "Broadcast", "AllGather",
                                  "ReduceScatter", "Send",   "Recv"};
enum Reduction : int { kSum, kProduct, kMax, kMin, kAverage };

// By ncclDataType_t.
constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
constexpr int kTypes = int(std::size(kSizes));

struct UniqueId {
  char bytes[128];
};

struct Comm {
  Device* device;
  std::unique_ptr<Room> room;
  uint64_t groups = 0;  // with collectives
  std::vector<uint64_t> sent, received;
  bool is_ended = false;
};

// What the ranks must agree on.
struct Note {
  int kind, type, op, root;
  uint64_t count;

  friend bool operator==(const Note&, const Note&) = default;
  std::string text() const {
    std::string text = kKinds[kind];
    text += " of " + std::to_string(count) + " elements of type " + std::to_string(type);
    if (op >= 0) text += ", reduction " + std::to_string(op);
    if (root >= 0) text += ", root " + std::to_string(root);
    return text;
  }
};

struct Call {
  Comm* comm;
  Stream* stream;
  Note note;
  const char* in;
  char* out;
  int peer = -1;  // of messages

  size_t bytes() const { return note.count * kSizes[note.type]; }
  bool is_collective() const { return note.kind < kSend; }
  // Multiples of bytes() that the buffers have.
  size_t ins() const { return note.kind == kReduceScatter ? size_t(comm->room->size()) : 1; }
  size_t outs() const { return note.kind == kAllGather ? size_t(comm->room->size()) : 1; }
  bool writes() const {
    return note.kind != kSend && (note.kind != kReduce || note.root == comm->room->rank());
  }
};

struct Refused {
  Status status;
  std::string why;
};
void expect(bool condition, const std::string& rule, Status status = kBadArgument) {
  if (!condition) throw Refused{status, rule};
}

std::set<Comm*> comms;  // an aborted one stays, as a call may wait in it
std::string last_error;
thread_local int group_depth = 0;
thread_local std::vector<Call> grouped;
thread_local Status group_status = kDone;

// ---- arithmetic --------------------------------------------------------------------------------

template <class T>
auto wide(T x) {
  if constexpr (std::is_arithmetic_v<T>) return x;
  else return rushlight::to_float(x);
}

template <class T>
void fold(int op, T* total, const T* other, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto a = wide(total[i]), b = wide(other[i]);
    auto result = op == kProduct ? a * b
                  : op == kMax   ? std::max(a, b)
                  : op == kMin   ? std::min(a, b)
                                 : a + b;
    if constexpr (std::is_arithmetic_v<T>) total[i] = T(result);
    else total[i] = rushlight::from_float<T>(result);
  }
}

template <class T>
void divide(T* total, int size, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_arithmetic_v<T>) total[i] = T(total[i] / T(size));
    else total[i] = rushlight::from_float<T>(wide(total[i]) / float(size));
  }
}

template <class F>
void with_type(int type, F&& f) {
  switch (type) {
    case 0: return f(int8_t());
    case 1: return f(uint8_t());
    case 2: return f(int32_t());
    case 3: return f(uint32_t());
    case 4: return f(int64_t());
    case 5: return f(uint64_t());
    case 6: return f(rushlight::Half());
    case 7: return f(float());
    case 8: return f(double());
    default: return f(rushlight::BFloat16());
  }
}

// Reduces what all ranks brought, from an offset in bytes.
std::string reduced(const Note& note, const std::vector<std::string>& all, size_t offset) {
  size_t bytes = note.count * kSizes[note.type];
  std::string total = all[0].substr(offset, bytes);
  with_type(note.type, [&]<class T>(T) {
    T* first = reinterpret_cast<T*>(total.data());
    for (size_t rank = 1; rank < all.size(); ++rank) {
      std::string other = all[rank].substr(offset, bytes);
      fold(note.op, first, reinterpret_cast<const T*>(other.data()), note.count);
    }
    if (note.op == kAverage) divide(first, int(all.size()), note.count);
  });
  return total;
}

// ---- the work of a group -----------------------------------------------------------------------

std::string packed(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) {
    uint64_t size = part.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
  }
  return all;
}

std::vector<std::string> unpacked(const std::string& all) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < all.size();) {
    uint64_t size;
    std::memcpy(&size, &all[at], sizeof size);
    parts.push_back(all.substr(at + sizeof size, size));
    at += sizeof size + size;
  }
  return parts;
}

std::string packed(const Note& note, const std::string& data) {
  return std::string(reinterpret_cast<const char*>(&note), sizeof note) + data;
}
Note note_of(const std::string& part) {
  Note note;
  std::memcpy(&note, part.data(), sizeof note);
  return note;
}

std::string read_device(const char* from, size_t size) {
  if (size == 0) return "";
  Access access;
  expect(access.open(from, size), device_memory.describe(from), kInternal);
  return {from, size};
}

void write_device(char* to, const std::string& data) {
  if (data.empty()) return;
  Access access;
  expect(access.open(to, data.size()), device_memory.describe(to), kInternal);
  std::memcpy(to, data.data(), data.size());
}

std::string message_name(int from, int to, uint64_t number) {
  return "message_" + std::to_string(from) + "_" + std::to_string(to) + "_" +
         std::to_string(number);
}
std::string group_name(uint64_t number, int rank) {
  return "group_" + std::to_string(number) + "_" + std::to_string(rank);
}

// The lock of the driver is open while this process waits for another.
std::string wait_for(Room& room, const std::string& name, int from) {
  driver_mutex.unlock();
  struct Relock {
    ~Relock() { driver_mutex.lock(); }
  } relock;
  return room.wait_for(name, from);
}

void finish(const Call& call, const std::vector<std::string>& all) {
  int rank = call.comm->room->rank();
  size_t bytes = call.bytes();
  if (!call.writes()) return;
  switch (call.note.kind) {
    case kAllReduce:
    case kReduce: return write_device(call.out, reduced(call.note, all, 0));
    case kReduceScatter:
      return write_device(call.out, reduced(call.note, all, size_t(rank) * bytes));
    case kBroadcast: return write_device(call.out, all[size_t(call.note.root)]);
    default:
      for (size_t i = 0; i < all.size(); ++i) write_device(call.out + i * bytes, all[i]);
  }
}

// Does the collectives of a communicator: shows what this rank brings, and takes what all did.
void meet(Comm* comm, const std::vector<Call>& calls) {
  Room& room = *comm->room;
  std::vector<std::string> mine;
  for (const Call& call : calls) {
    bool brings = call.note.kind != kBroadcast || call.note.root == room.rank();
    mine.push_back(packed(call.note, read_device(call.in, brings ? call.ins() * call.bytes() : 0)));
  }
  uint64_t number = comm->groups++;
  room.leave(group_name(number, room.rank()), packed(mine));
  std::vector<std::vector<std::string>> data(calls.size());
  for (int rank = 0; rank < room.size(); ++rank) {
    std::vector<std::string> theirs = unpacked(wait_for(room, group_name(number, rank), rank));
    expect(theirs.size() == calls.size(),
           "ranks " + std::to_string(room.rank()) + " and " + std::to_string(rank) +
               " call different numbers of collectives in a group",
           kBadUsage);
    for (size_t i = 0; i < calls.size(); ++i) {
      Note note = note_of(theirs[i]);
      expect(note == calls[i].note,
             "rank " + std::to_string(room.rank()) + " calls " + calls[i].note.text() + ", rank " +
                 std::to_string(rank) + " calls " + note.text(),
             kBadUsage);
      data[i].push_back(theirs[i].substr(sizeof(Note)));
    }
  }
  // All have shown this group, so all have read the one before.
  if (number > 0) room.remove(group_name(number - 1, room.rank()));
  for (size_t i = 0; i < calls.size(); ++i) finish(calls[i], data[i]);
}

void run(const std::vector<Call>& calls) {
  std::vector<std::pair<Comm*, std::vector<Call>>> collectives;
  for (const Call& call : calls) {
    Room& room = *call.comm->room;
    if (call.note.kind == kSend) {
      uint64_t number = call.comm->sent[size_t(call.peer)]++;
      room.leave(message_name(room.rank(), call.peer, number),
                 packed(call.note, read_device(call.in, call.bytes())));
    }
    if (!call.is_collective()) continue;
    auto known = std::find_if(collectives.begin(), collectives.end(),
                              [&](const auto& entry) { return entry.first == call.comm; });
    if (known == collectives.end()) known = collectives.insert(known, {call.comm, {}});
    known->second.push_back(call);
  }
  for (const auto& [comm, its_calls] : collectives) meet(comm, its_calls);
  for (const Call& call : calls) {
    if (call.note.kind != kReceive) continue;
    Room& room = *call.comm->room;
    uint64_t number = call.comm->received[size_t(call.peer)]++;
    std::string name = message_name(call.peer, room.rank(), number);
    std::string message = wait_for(room, name, call.peer);
    room.remove(name);
    Note sent = note_of(message);
    expect(sent.count == call.note.count && sent.type == call.note.type,
           "rank " + std::to_string(call.peer) + " made " + sent.text() + ", rank " +
               std::to_string(room.rank()) + " " + call.note.text(),
           kBadUsage);
    write_device(call.out, message.substr(sizeof(Note)));
  }
}

// Runs f, which may refuse; the status, of which last_error tells more.
template <class F>
Status guarded(F&& f) {
  try {
    f();
    return kDone;
  } catch (const Refused& refused) {
    last_error = refused.why;
    return refused.status;
  } catch (const Departed& departed) {
    last_error = departed.why;
    return kRemote;
  } catch (const std::exception& error) {
    last_error = error.what();
    return kInternal;
  }
}

// A stream that captures records the calls instead.
Status submit_calls(std::vector<Call> calls) {
  if (calls.empty()) return kDone;
  Stream* stream = calls[0].stream;
  if (!capture_of(stream)) {
    for (const Call& call : calls) finish(call.stream);
    return guarded([&] { run(calls); });
  }
  Result result = submit(stream, "nccl", [calls = std::move(calls)] {
    if (guarded([&] { run(calls); }) == kDone) return kSuccess;
    std::fprintf(stderr, "nccl shim: %s\n", last_error.c_str());
    return kLaunchFailed;
  });
  return result == kSuccess ? kDone : kInternal;
}

// ---- arguments ---------------------------------------------------------------------------------

void check_range(const Call& call, const void* begin, size_t size) {
  if (size == 0) return;
  Allocation* found = device_memory.find(begin, size);
  expect(found && found->device == call.comm->device->index,
         device_memory.describe(begin) + " begin " + std::to_string(size) +
             " bytes that are not the communicator's device's");
  expect(reinterpret_cast<uintptr_t>(begin) % kSizes[call.note.type] == 0,
         "a buffer is misaligned");
}

// In place means: at the part of this rank. Every other overlap goes wrong.
void check_overlap(const Call& call) {
  size_t in_size = call.ins() * call.bytes(), out_size = call.outs() * call.bytes();
  bool overlaps = call.in < call.out + out_size && call.out < call.in + in_size;
  if (!overlaps || in_size == 0) return;
  size_t place = size_t(call.comm->room->rank()) * call.bytes();
  const char* small = call.note.kind == kAllGather ? call.in : call.out;
  const char* large = call.note.kind == kAllGather ? call.out : call.in;
  if (call.note.kind != kAllGather && call.note.kind != kReduceScatter) place = 0;
  expect(small == large + place, "the buffers overlap, but not in place");
}

void check_call(const Call& call) {
  expect(comms.contains(call.comm) && !call.comm->is_ended, "the communicator is none");
  expect(call.stream && call.stream->device == call.comm->device,
         "the stream is not of the communicator's device");
  const Note& note = call.note;
  int size = call.comm->room->size();
  expect(note.type >= 0 && note.type < kTypes, "the type is none");
  bool reduces = note.kind == kAllReduce || note.kind == kReduce || note.kind == kReduceScatter;
  expect(!reduces || (note.op >= kSum && note.op <= kAverage), "the reduction is none");
  bool has_root = note.kind == kReduce || note.kind == kBroadcast;
  expect(!has_root || (note.root >= 0 && note.root < size), "the root is none");
  expect(call.is_collective() || (call.peer >= 0 && call.peer < size), "the peer is none");
  if (note.kind != kReceive) check_range(call, call.in, call.ins() * call.bytes());
  if (call.writes()) check_range(call, call.out, call.outs() * call.bytes());
  if (call.is_collective() && call.writes()) check_overlap(call);
}

Status make_call(void* comm, void* stream, Note note, const void* in, void* out, int peer = -1) {
  std::lock_guard lock(driver_mutex);
  Call call{static_cast<Comm*>(comm),     find_stream(stream),     note,
            static_cast<const char*>(in), static_cast<char*>(out), peer};
  Status status = guarded([&] { check_call(call); });
  if (status != kDone) return group_depth ? group_status = status : status;
  if (group_depth == 0) return submit_calls({call});
  grouped.push_back(call);
  return kDone;
}

// Ends a communicator; one that was aborted stays for calls that wait in it.
Status end(void* handle, bool aborts) {
  std::lock_guard lock(driver_mutex);
  Comm* comm = static_cast<Comm*>(handle);
  if (!comms.contains(comm) || comm->is_ended) return kBadArgument;
  comm->is_ended = true;
  if (aborts) comm->room->give_up();
  comm->room->close();
  return kDone;
}

}  // namespace
}  // namespace shim

using namespace shim;

SHIM_API int ncclGetVersion(int* version) {
  *version = 22703;
  return kDone;
}

SHIM_API const char* ncclGetErrorString(int status) {
  switch (status) {
    case kDone: return "no error";
    case kInternal: return "internal error";
    case kBadArgument: return "invalid argument";
    case kBadUsage: return "invalid usage";
    case kRemote: return "remote process exited or there was a network error";
    default: return "unknown result code";
  }
}

SHIM_API const char* ncclGetLastError(void*) { return last_error.c_str(); }

SHIM_API int ncclGetUniqueId(UniqueId* id) {
  std::random_device random;
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::snprintf(id->bytes, sizeof id->bytes, "%08x%08x", random(), random());
  return kDone;
}

SHIM_API int ncclCommInitRank(void** handle, int size, UniqueId id, int rank) {
  Device* device = current_device;
  return guarded([&] {
    expect(group_depth == 0, "communicators are not made in groups here");
    expect(device, "there is no current device");
    expect(size > 0 && rank >= 0 && rank < size, "the rank is none");
    expect(std::memchr(id.bytes, 0, sizeof id.bytes) && id.bytes[0], "the id is none");
    auto room = std::make_unique<Room>(id.bytes, size, rank, std::to_string(device->index));
    for (int first = 0; first < size; ++first)
      for (int second = first + 1; second < size; ++second)
        expect(room->card(first) != room->card(second),
               "Duplicate GPU detected : rank " + std::to_string(first) + " and rank " +
                   std::to_string(second) + " both on CUDA device " + room->card(first),
               kBadUsage);
    std::lock_guard lock(driver_mutex);
    std::vector<uint64_t> none(size_t(size), 0);
    *handle = *comms.insert(new Comm{device, std::move(room), 0, none, none}).first;
  });
}

SHIM_API int ncclCommDestroy(void* comm) { return end(comm, false); }
SHIM_API int ncclCommAbort(void* comm) { return end(comm, true); }

SHIM_API int ncclCommGetAsyncError(void* handle, int* error) {
  std::lock_guard lock(driver_mutex);
  Comm* comm = static_cast<Comm*>(handle);
  if (!comms.contains(comm) || comm->is_ended) return kBadArgument;
  int dead = comm->room->find_dead();
  if (dead >= 0) last_error = "remote process exited: rank " + std::to_string(dead);
  *error = dead >= 0 ? kRemote : kDone;
  return kDone;
}

SHIM_API int ncclGroupStart() {
  if (group_depth++ == 0) group_status = kDone;
  return kDone;
}

SHIM_API int ncclGroupEnd() {
  if (group_depth == 0) return kBadUsage;
  if (--group_depth > 0) return kDone;
  std::lock_guard lock(driver_mutex);
  std::vector<Call> calls = std::exchange(grouped, {});
  return group_status == kDone ? submit_calls(std::move(calls)) : group_status;
}

SHIM_API int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, void* comm,
                           void* stream) {
  return make_call(comm, stream, {kAllReduce, type, op, -1, count}, in, out);
}
SHIM_API int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root,
                        void* comm, void* stream) {
  return make_call(comm, stream, {kReduce, type, op, root, count}, in, out);
}
SHIM_API int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, void* comm,
                           void* stream) {
  return make_call(comm, stream, {kBroadcast, type, -1, root, count}, in, out);
}
SHIM_API int ncclAllGather(const void* in, void* out, size_t count, int type, void* comm,
                           void* stream) {
  return make_call(comm, stream, {kAllGather, type, -1, -1, count}, in, out);
}
SHIM_API int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op,
                               void* comm, void* stream) {
  return make_call(comm, stream, {kReduceScatter, type, op, -1, count}, in, out);
}
SHIM_API int ncclSend(const void* data, size_t count, int type, int peer, void* comm,
                      void* stream) {
  return make_call(comm, stream, {kSend, type, -1, -1, count}, data, nullptr, peer);
}
SHIM_API int ncclRecv(void* data, size_t count, int type, int peer, void* comm, void* stream) {
  return make_call(comm, stream, {kReceive, type, -1, -1, count}, nullptr, data, peer);
}
