// Owns private pools: device memory that only the captures of a CUDA graph, or one part of a
// program, are given.
//
// A pool takes large segments of the driver and hands out pieces of them; what is freed is joined
// with its neighbors and given to later requests of the same stream. It lives as long as a graph,
// a MemPool or a block of it, and then returns its segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device/cuda_stream.h"

namespace rushlight::cuda {

// PyTorch's: one of the numbers is 0, the second that of a pool which a user made.
using PoolId = std::pair<uint64_t, uint64_t>;
PoolId new_pool_id(bool by_user);

class PrivatePool {
 public:
  // The pool of this name, or a new one.
  static std::shared_ptr<PrivatePool> named(PoolId id);

  explicit PrivatePool(PoolId id) : id_(id) {}
  ~PrivatePool();
  PrivatePool(const PrivatePool&) = delete;
  PrivatePool& operator=(const PrivatePool&) = delete;

  PoolId id() const { return id_; }
  // `bytes` are whole multiples of the alignment of blocks. With `apart` each request has a
  // segment of its own, so that tools see its end.
  CUdeviceptr take(size_t bytes, Stream stream, bool apart);
  void give_back(CUdeviceptr data, size_t bytes, Stream stream);

  struct Segment {
    CUdeviceptr data;
    size_t bytes;
    Stream stream;
  };
  std::vector<Segment> segments() const;

 private:
  using Ranges = std::map<CUdeviceptr, size_t>;  // free ones, by address
  Ranges& ranges_of(Stream stream);

  const PoolId id_;
  mutable std::mutex mutex_;
  std::map<CUdeviceptr, Segment> segments_;
  std::vector<std::pair<Stream, Ranges>> free_;
};

}  // namespace rushlight::cuda
