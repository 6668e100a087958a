// Owns FusionGroup: deferred ops that one program computes. See Note [Fusion].
#pragma once

#include <span>
#include <vector>

#include "core/tensor/deferred_op.h"
#include "core/tensor/fused_args.h"
#include "core/tensor/tile_program.h"

namespace rushlight {

// Formulas that one program runs, and tensors that it reads: with more of them the tiles would not
// stay in the L1 cache, nor the values in a GPU's registers.
inline constexpr int kMostSteps = kMaxFusedWrites;
inline constexpr size_t kMostLeaves = kMaxFusedReads;
static_assert(kMostSteps + int(kMostLeaves) <= kMaxLanes);
inline constexpr int kMostNumbers = kMaxFusedNumbers;

// Numbers the ops of a group, which are `root` and the deferred ones that it reads, decides what
// they store, and writes the program.
class FusionGroup {
 public:
  explicit FusionGroup(DeferredOp& root);
  ~FusionGroup();
  FusionGroup(const FusionGroup&) = delete;

  // Computes all members, and stores those that somebody may read.
  void run();

  // Which were stored, and their elements.
  std::span<DeferredOp* const> stored() const { return stored_; }
  std::span<const Tensor> results() const { return results_; }

 private:
  using Place = TileProgram::Place;
  using Step = TileProgram::Step;
  struct Cast {
    const DeferredOp* member;
    DType dtype;
    Place place;
  };

  void add(DeferredOp& op);
  bool is_to_be_stored(const DeferredOp& member) const;
  // Makes room for a member's elements, unless nobody will read them.
  bool store_if_wanted(DeferredOp& member);
  // The members are the steps of the program.
  void run_on_cuda();
  void compile(DeferredOp& member);
  // Lets a step take its first operand that may repeat one element along a row by the loop for
  // that, if rows are long enough for a call of the program each.
  void take_as_single(Step& step, const DeferredOp& member);
  // A member's elements in the dtype that a reader takes.
  Place value_as(const DeferredOp& member, DType dtype);
  void cast(Place from, DType from_dtype, Place to, DType to_dtype);
  Place lane_of(const TileOperand& operand);
  // Where the program's elements go, and in which dtype it gives them.
  TileOperand result_in(const Tensor& tensor);
  // Has the reduction take what the program computes, or what is there already.
  void reduce();

  DeferredOp& root_;
  DeferredOp& body_;                  // see body_of
  std::vector<DeferredOp*> members_;  // each after those that it reads
  std::vector<int> uses_;             // how many operands of members each is
  std::vector<DeferredOp*> stored_;   // decided once: other threads let go meanwhile
  std::vector<Tensor> results_;       // of these
  std::vector<TileOperand> lanes_;    // what is read, and what is stored but the root
  std::vector<Place> values_;         // where each member's elements are
  std::vector<Cast> casts_;           // and in other dtypes
  TileProgram program_;
};

}  // namespace rushlight
