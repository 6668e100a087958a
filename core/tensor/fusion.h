// Owns deferred ops: in a FusionScope, formulas over large tensors only note what to compute, and a
// chain of them runs in one pass over memory when somebody asks for elements.
//
// Note [Fusion]
// A chain of formulas such as 0.5 * x * (1 + tanh(x * c)) computes little and moves much: each op
// reads and writes whole tensors. In a scope, pointwise() checks its arguments as ever and returns
// a tensor whose storage is deferred: it has a DeferredOp in place of memory. Tensor::data(), on
// the way to any other op, to NumPy or to print(), settles it: the formula and the deferred ones it
// reads, as far back as they go, become one program that runs on tiles of the L1 cache. The loops
// are those that would have run, or do a chain of arithmetic at once, so every bit of the
// result is the same. A conversion to another dtype is a formula, too.
//
// A reduction of what is deferred is deferred as well, and always ends a chain: it runs the program
// block by block as it comes by, and adds up each block while it is in the cache.
//
// A result on the way is stored if it is costly to compute again and somebody will read it: by a
// variable, as another deferred op, or in backward. Arithmetic is cheap, and stays deferred: for
// backward, which computes it a second time together with the gradients that need it; and for a
// variable, whose readers are not known yet, to the end of the scope, if it reads at most one
// tensor. So most of what a chain of ops keeps for backward is never in memory.
//
// Whoever is about to write in place calls check_writable(), which settles those that have yet to
// read the old elements; memory that others may write behind our back, as NumPy can, makes nothing
// wait for backward. When the scope ends, all is settled but what waits for backward.
//
// On a GPU the program is one kernel (fused_cuda.h), and a reduction runs by itself. An op is
// queued on the stream that was current when it was called. Before anybody may count on what is
// queued there, by an event for one, settle_device() queues what was deferred.
//
// One lock guards it all, since tensors go from thread to thread.
#pragma once

#include <atomic>
#include <span>

#include "core/tensor/reduce.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

struct Formula;

// How a formula runs on operands of a dtype.
struct Typing {
  DType common;   // of the operands, after int-to-float where the formula needs floats
  DType compute;  // of the scalars, and of most loops
  DType read;     // what the loop reads
  DType result;
  DType written;  // what the loop writes
  PointwiseKernel kernel;
};

namespace detail {
inline thread_local int fusion_depth = 0;
inline thread_local int64_t least_deferred = 0;
inline std::atomic<int> deferred_count{0};
[[gnu::cold]] void settle_readers(const StorageImpl& storage);
[[gnu::cold]] size_t count_readers(const StorageImpl& storage);
}  // namespace detail

// Formulas over fewer elements gain nothing from being deferred.
inline constexpr int64_t kLeastDeferred = 16384;

// Begins a scope on this thread; they may nest, and the outermost says how many elements a tensor
// must have to be deferred. Every one must be ended. What cannot be computed at the end, for want
// of memory, raises when somebody asks for it.
inline void begin_fusion(int64_t least_deferred = kLeastDeferred) {
  if (detail::fusion_depth++ == 0) detail::least_deferred = least_deferred;
}
void end_fusion() noexcept;

class FusionScope {
 public:
  FusionScope() { begin_fusion(); }
  ~FusionScope() { end_fusion(); }
  FusionScope(const FusionScope&) = delete;
  FusionScope& operator=(const FusionScope&) = delete;
};

inline bool is_fusing() { return detail::fusion_depth > 0; }
// Whether a formula for so many elements on the device is deferred now.
inline bool defers(int64_t numel, Device device) {
  return is_fusing() && !device.is_meta() && numel >= detail::least_deferred;
}

// The result of a formula over tensors of a device, deferred. Its strides are dense; scalars are in
// the compute dtype.
Tensor defer(const Formula& formula, const Typing& typing, Device device, ShapeRef sizes,
             ShapeRef strides, std::span<const TileOperand> operands, const void* scalars);

// The input in another dtype, deferred. Its strides are dense.
Tensor defer_cast(const Tensor& input, DType dtype, ShapeRef strides);

// What a reduction does, see reduce().
struct ReduceCall {
  Reduction reduction;
  DimSet dims;
  DType dtype;
  double parameter;
};
// Its result, of these sizes, deferred; undefined where the input is not, or no better for it.
Tensor defer(const ReduceCall& call, const Tensor& input, ShapeRef sizes);

// Computes what a deferred storage shall hold.
void settle(const StorageImpl& storage);
// Queues all that is deferred on a CUDA device.
void settle_device(int device);
// Forgets about it, when its storage is destroyed.
void discard_deferred(StorageImpl& storage);

// How many operands of deferred ops a deferred storage is.
inline size_t deferred_readers(const StorageImpl& storage) {
  return storage.deferred() ? detail::count_readers(storage) : 0;
}
// Settles what has yet to read a storage that is about to be written.
inline void settle_before_write(const StorageImpl& storage) {
  if (detail::deferred_count.load(std::memory_order_relaxed)) [[unlikely]]
    detail::settle_readers(storage);
}

}  // namespace rushlight
