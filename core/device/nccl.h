// Owns NCCL (libnccl.so.2), which moves and reduces tensors between GPUs of several processes: the
// search for it, and communicators, whose work is queued on streams.
//
// A communicator joins one GPU of each rank; all ranks make the same calls on it in the same order.
// A call returns when its work is queued on the current stream of the GPU, though the first ones
// wait for the other ranks. Errors are NCCL's words. RUSHLIGHT_NCCL names another file; "off" does
// without.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "core/base/dtype.h"

struct ncclComm;

namespace rushlight::nccl {

// Why NCCL cannot be used, and what helps; "" when it can. It is opened at the first question.
const std::string& problem();
int version();  // 22105 is 2.21.5

// Names a communicator that is to be made; one rank makes it and tells the others.
using Id = std::array<char, 128>;
Id make_id();

enum class Reduction : int { sum, product, max, min, average };  // ncclRedOp_t

// What is queued between the two is done together, in no order; each may be called in pairs within.
void begin_group();
void end_group();

// Counts are of elements of one rank. Tensors of complex numbers are reduced as pairs of real ones,
// bools as bytes; what is only moved can be of any dtype.
class Communicator {
 public:
  // Returns when all ranks are here. `device` is this rank's.
  Communicator(const Id& id, int size, int rank, int device);
  // Leaves NCCL's part alone, as ending it takes the other ranks: see destroy and abort.
  ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int size() const { return size_; }
  int rank() const { return rank_; }
  int device() const { return device_; }

  void all_reduce(void* data, int64_t count, DType dtype, Reduction op);
  // Only the root's data changes.
  void reduce(void* data, int64_t count, DType dtype, Reduction op, int root);
  void broadcast(void* data, int64_t count, DType dtype, int root);
  // `out` has room for the count of each rank; rank i's elements may lie at its place already.
  void all_gather(const void* in, void* out, int64_t count, DType dtype);
  // `in` has the count for each rank; `out` may be this rank's part of it.
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, Reduction op);
  void send(const void* data, int64_t count, DType dtype, int peer);
  void receive(void* data, int64_t count, DType dtype, int peer);

  // What went wrong since, in what is queued or with another rank; "" if nothing is known. For any
  // thread, as is abort.
  std::string error();
  // Gives up what is queued, on the GPU too, and calls that wait for other ranks. Like destroy, it
  // waits for the end of CUDA graphs that captured a call, though the giving up comes first.
  void abort();
  // Ends it after what is queued; all ranks do it, and may have to wait for each other.
  void destroy();

 private:
  ncclComm* handle() const;

  int size_, rank_, device_;
  mutable std::mutex mutex_;  // of the handle, not of the calls
  ncclComm* handle_ = nullptr;
};

}  // namespace rushlight::nccl
