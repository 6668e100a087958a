// Owns DeferredOp, what a deferred storage has in place of memory. See Note [Fusion].
#pragma once

#include <algorithm>
#include <optional>

#include "core/device/cuda_stream.h"
#include "core/tensor/fusion.h"
#include "core/tensor/pointwise.h"

namespace rushlight {

// A result that takes more passes over a tile than this is stored, not computed a second time.
inline constexpr int kMostRepeated = 8;

// What a loop computes, or a reduction.
struct DeferredCall {
  const Formula* formula = nullptr;          // null for a conversion or a reduction
  PointwiseKernel kernel{nullptr};           // its loop
  std::optional<ReduceCall> reduction = {};  // of the one operand
  bool is_cheap;
  DType compute, result, written;  // see Typing

  int scalar_count() const { return formula ? formula->counts.scalars : 0; }
};

class DeferredOp {
 public:
  DeferredOp(const DeferredCall& call, ShapeRef sizes, ShapeRef strides,
             std::span<const TileOperand> operands, const void* scalars);

  const DeferredCall call;
  const Shape sizes, strides;
  TileOperand operands[kMaxOperands];
  const int operand_count;
  alignas(16) char scalars[kMaxScalars * sizeof(std::complex<double>)];

  int passes = 0;      // over a tile, of a program from what is in memory now to this result
  int full_reads = 0;  // tensors of this size that it would read
  int readers = 0;     // operands of deferred ops that this is
  int member = -1;     // its number while it is part of a group
  uint64_t visit = 0;  // the last one that came by, see Visit
  StorageImpl* storage = nullptr;
  cuda::Stream stream;                        // that it is for, on a GPU
  const void* scope = &detail::fusion_depth;  // of its thread
  DeferredOp *older = nullptr, *newer = nullptr;

  std::span<const TileOperand> reads() const { return {operands, size_t(operand_count)}; }

  // Whether somebody may read it who neither waits for it here nor is backward.
  bool is_held() const {
    return storage->use_count() > size_t(readers + storage->saved_windows.load());
  }
  // Whether computing it again is better than keeping it, and gives the same.
  bool is_repeatable() const {
    auto may_change = [](const TileOperand& operand) {
      return operand.tensor->storage()->others_may_write();
    };
    return call.is_cheap && passes <= kMostRepeated && std::ranges::none_of(reads(), may_change);
  }

 private:
  Tensor tensors_[kMaxOperands];  // with impls of their own, which nobody changes
};

// The op whose elements a program ends with: itself, or what a reduction reads where that is
// deferred.
DeferredOp& body_of(DeferredOp& op);

// Whether both are the same lane of a program.
bool is_same(const TileOperand& one, const TileOperand& other);

// Whether a program knows an operand's one element beforehand.
bool is_number(const TileOperand& operand);

}  // namespace rushlight
