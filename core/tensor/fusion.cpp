// Defines how deferred formulas are collected, made a program for tiles, and run.
// See Note [Fusion].
#include "core/tensor/fusion.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_program.h"

namespace rushlight {

// Formulas that one program runs, and tensors that it reads: with more of them the tiles would not
// stay in the L1 cache.
constexpr int kMostSteps = 32;
constexpr size_t kMostLeaves = 16;
static_assert(kMostSteps + int(kMostLeaves) <= kMaxLanes);
// What takes more steps than this from what is in memory is not computed a second time.
constexpr int kMostRepeated = 8;

class DeferredFormula {
 public:
  DeferredFormula(const Formula& formula, const Typing& typing, ShapeRef sizes, ShapeRef strides,
                  std::span<const TileOperand> operands, const void* scalars);

  const Formula& formula;
  const PointwiseKernel kernel;
  const DType compute, result, written;
  const Shape sizes, strides;
  TileOperand operands[kMaxOperands];
  alignas(16) char scalars[kMaxScalars * sizeof(std::complex<double>)];

  int steps = 1;       // of a program for this, if nothing were settled before
  int readers = 0;     // operands of deferred formulas that this is
  int member = -1;     // its number while it is part of a group
  uint64_t visit = 0;  // the last one that came by, see Visit
  StorageImpl* storage = nullptr;
  const void* scope = &detail::fusion_depth;  // of its thread
  DeferredFormula *older = nullptr, *newer = nullptr;

  std::span<const TileOperand> reads() const { return {operands, size_t(formula.counts.operands)}; }

  // Whether somebody may read it who neither waits for it here nor is backward.
  bool is_held() const {
    return storage->use_count() > size_t(readers + storage->saved_windows.load());
  }
  // Whether computing it again is better than keeping it, and gives the same.
  bool is_repeatable() const {
    auto is_shared = [](const TileOperand& operand) {
      return operand.tensor->storage()->is_shared();
    };
    return formula.is_cheap && steps <= kMostRepeated && std::ranges::none_of(reads(), is_shared);
  }

 private:
  Tensor tensors_[kMaxOperands];  // with impls of their own, which nobody changes
};

DeferredFormula::DeferredFormula(const Formula& formula, const Typing& typing, ShapeRef sizes,
                                 ShapeRef strides, std::span<const TileOperand> reads,
                                 const void* numbers)
    : formula(formula),
      kernel(typing.kernel),
      compute(typing.compute),
      result(typing.result),
      written(typing.written),
      sizes(sizes),
      strides(strides) {
  for (size_t k = 0; k < reads.size(); ++k) {
    tensors_[k] = shallow_copy(*reads[k].tensor);
    operands[k] = {&tensors_[k], reads[k].kernel_dtype};
  }
  std::memcpy(scalars, numbers, size_t(formula.counts.scalars) * dtype_size(compute));
}

namespace {

// ---- the list of all that is deferred -----------------------------------------------------------

std::mutex& lock() {
  static auto* mutex = [] {
    static std::mutex mutex;
    // A forked child must not inherit a lock that another thread holds.
    int failed =
        pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
    ASSERT(!failed);
    return &mutex;
  }();
  return *mutex;
}
using Locked = std::lock_guard<std::mutex>;

DeferredFormula* newest = nullptr;

void link(DeferredFormula* formula) {
  for (const TileOperand& operand : formula->reads())
    if (DeferredFormula* read = operand.tensor->storage()->deferred()) ++read->readers;
  formula->older = newest;
  if (newest) newest->newer = formula;
  newest = formula;
  detail::deferred_count.fetch_add(1, std::memory_order_relaxed);
}
void unlink(DeferredFormula* formula) {
  for (const TileOperand& operand : formula->reads())
    if (DeferredFormula* read = operand.tensor->storage()->deferred()) --read->readers;
  if (formula->older) formula->older->newer = formula->newer;
  (formula->newer ? formula->newer->older : newest) = formula->older;
  detail::deferred_count.fetch_sub(1, std::memory_order_relaxed);
}

// A walk over what a formula reads, that comes to each deferred formula once.
class Visit {
 public:
  Visit() : number_(++count) {}
  bool is_first(DeferredFormula& formula) const {
    return std::exchange(formula.visit, number_) != number_;
  }

 private:
  inline static uint64_t count = 0;
  uint64_t number_;
};

// Whether both are the same lane of a program.
bool is_same(const TileOperand& one, const TileOperand& other) {
  const Tensor &a = *one.tensor, &b = *other.tensor;
  return one.kernel_dtype == other.kernel_dtype && a.dtype() == b.dtype() &&
         a.storage() == b.storage() && a.offset() == b.offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

// Adds what a program for the formula would run and read, if nothing were settled before.
void count_parts(DeferredFormula& formula, const Visit& visit, int& steps,
                 std::vector<const TileOperand*>& leaves) {
  ++steps;
  for (const TileOperand& operand : formula.reads()) {
    DeferredFormula* read = operand.tensor->storage()->deferred();
    if (read && visit.is_first(*read)) count_parts(*read, visit, steps, leaves);
    else if (!read && operand.tensor->numel() != 1 &&
             std::ranges::none_of(leaves, [&](auto* leaf) { return is_same(*leaf, operand); }))
      leaves.push_back(&operand);
  }
}

// What a lock holder is done with. It goes after the lock: the last reference to memory of another
// library calls it back, and it may wait for locks of its own.
using Discarded = std::vector<std::unique_ptr<DeferredFormula>>;

// ---- groups of formulas that one program computes -----------------------------------------------

using Place = TileProgram::Place;
using Step = TileProgram::Step;

// Numbers the formulas of a group, decides what they store, and writes the program.
class Group {
 public:
  explicit Group(DeferredFormula& root) : root_(root) {
    add(root);
    uses_.resize(members_.size());
    for (DeferredFormula* member : members_)
      for (const TileOperand& operand : member->reads())
        if (DeferredFormula* read = operand.tensor->storage()->deferred())
          ++uses_[size_t(read->member)];
  }
  ~Group() {
    for (DeferredFormula* member : members_) member->member = -1;
  }
  Group(const Group&) = delete;

  // Computes all members, and stores those that somebody may read.
  void run() {
    values_.resize(members_.size());
    results_.reserve(members_.size());
    lanes_.reserve(kMaxLanes);
    for (DeferredFormula* member : members_) compile(*member);
    program_.finish();
    run_tile_loop({&results_.back(), root_.written}, lanes_, {&TileProgram::run}, &program_);
  }

  // Which were stored, and their elements.
  std::span<DeferredFormula* const> stored() const { return stored_; }
  std::span<const Tensor> results() const { return results_; }

 private:
  void add(DeferredFormula& formula) {
    for (const TileOperand& operand : formula.reads())
      if (DeferredFormula* read = operand.tensor->storage()->deferred())
        if (read->member < 0) add(*read);
    formula.member = int(members_.size());
    members_.push_back(&formula);
  }

  bool is_to_be_stored(const DeferredFormula& member) const {
    if (&member == &root_ || member.is_held()) return true;
    bool is_read_later =
        member.readers > uses_[size_t(member.member)] || member.storage->saved_windows.load() > 0;
    return is_read_later && !member.is_repeatable();
  }

  void compile(DeferredFormula& member) {
    Step step;
    step.loop = member.kernel.run;
    step.scalars = member.scalars;
    step.input_count = member.formula.counts.operands;
    const TileOperand* number = nullptr;
    int numbers = 0;
    for (int k = 0; k < step.input_count; ++k) {
      const TileOperand& operand = member.operands[k];
      if (DeferredFormula* read = operand.tensor->storage()->deferred())
        step.inputs[k] = value_as(*read, operand.kernel_dtype);
      else if (operand.tensor->numel() != 1) step.inputs[k] = lane_of(operand);
      else ++numbers, number = &operand;
    }
    if (numbers) {
      // One number has a loop of its own, where there is one; else it fills a tile.
      int k = int(number - member.operands);
      PointwiseLoop repeating = k < kMaxRepeating ? member.kernel.repeating[k] : nullptr;
      if (numbers == 1 && repeating) step.loop = repeating;
      int64_t copies = step.loop == repeating ? 1 : TileProgram::kTile;
      for (k = 0; k < step.input_count; ++k)
        if (!member.operands[k].tensor->storage()->deferred() &&
            member.operands[k].tensor->numel() == 1)
          step.inputs[k] = program_.add_number(member.operands[k], copies);
    }

    bool is_stored = is_to_be_stored(member);
    if (is_stored) {
      stored_.push_back(&member);
      results_.push_back(empty_strided(member.sizes, member.strides, member.result));
    }
    Place place;  // of the elements in the dtype of the result
    if (&member == &root_) place = {Place::result, 0, 0, int64_t(dtype_size(member.written))};
    else if (is_stored) place = lane_of({&results_.back(), member.result});
    else place = program_.new_buffer(member.result);
    bool casts = &member != &root_ && member.written != member.result;
    step.output = casts ? program_.new_buffer(member.written) : place;
    Place written = step.output;
    program_.add(step);
    if (casts) cast(written, member.written, place, member.result);
    values_[size_t(member.member)] = place;
  }

  // A member's elements in the dtype that a reader takes.
  Place value_as(const DeferredFormula& member, DType dtype) {
    Place value = values_[size_t(member.member)];
    if (member.result == dtype) return value;
    Place converted = program_.new_buffer(dtype);
    cast(value, member.result, converted, dtype);
    return converted;
  }
  void cast(Place from, DType from_dtype, Place to, DType to_dtype) {
    Step step;
    step.cast = cast_loop(from_dtype, to_dtype);
    step.input_count = 1;
    step.inputs[0] = from;
    step.output = to;
    program_.add(step);
  }

  Place lane_of(const TileOperand& operand) {
    auto lane = std::ranges::find_if(lanes_, [&](auto& lane) { return is_same(lane, operand); });
    if (lane == lanes_.end()) lane = lanes_.insert(lane, operand);
    return {Place::lane, int(lane - lanes_.begin()), 0, int64_t(dtype_size(operand.kernel_dtype))};
  }

  DeferredFormula& root_;
  std::vector<DeferredFormula*> members_;  // each after those that it reads
  std::vector<int> uses_;                  // how many operands of members each is
  std::vector<DeferredFormula*> stored_;   // decided once: other threads let go meanwhile
  std::vector<Tensor> results_;            // of these
  std::vector<TileOperand> lanes_;         // what is read, and what is stored but the root
  std::vector<Place> values_;              // where each member's elements are
  TileProgram program_;
};

// ---- settling, under the lock -------------------------------------------------------------------

void settle_locked(DeferredFormula& root, Discarded& discarded);

// Whether an operand is all of what a deferred formula gives, in the order of `root`.
bool fits(const DeferredFormula& read, const Tensor& operand, const DeferredFormula& root) {
  return operand.dtype() == read.result && operand.offset() == 0 && operand.sizes() == root.sizes &&
         operand.strides() == root.strides && read.sizes == root.sizes &&
         read.strides == root.strides;
}

// Settles what cannot be computed along with the root, such as views and broadcast operands.
void settle_others(DeferredFormula& formula, const DeferredFormula& root, const Visit& visit,
                   Discarded& discarded) {
  if (!visit.is_first(formula)) return;
  for (const TileOperand& operand : formula.reads()) {
    DeferredFormula* read = operand.tensor->storage()->deferred();
    if (!read) continue;
    if (fits(*read, *operand.tensor, root)) settle_others(*read, root, visit, discarded);
    else settle_locked(*read, discarded);
  }
}

void settle_locked(DeferredFormula& root, Discarded& discarded) {
  settle_others(root, root, Visit(), discarded);
  Group group(root);
  group.run();
  discarded.reserve(discarded.size() + group.stored().size());
  for (size_t i = 0; i < group.stored().size(); ++i) {
    DeferredFormula* member = group.stored()[i];
    member->storage->settle_with(*group.results()[i].storage());
    unlink(member);
    discarded.emplace_back(member);
  }
}

// Settles those for which is_due(formula), the newest first.
template <class F>
void settle_all(F&& is_due) {
  std::vector<Storage> due;
  {
    Locked locked(lock());
    for (DeferredFormula* formula = newest; formula; formula = formula->older)
      if (is_due(*formula) && formula->storage->try_retain())
        due.push_back(Storage::adopt(formula->storage));
  }
  for (const Storage& storage : due) settle(*storage);
}

}  // namespace

// ---- the public functions -----------------------------------------------------------------------

void end_fusion() noexcept {
  if (--detail::fusion_depth > 0) return;
  try {
    auto is_ours = [](const DeferredFormula& f) { return f.scope == &detail::fusion_depth; };
    settle_all([&](const DeferredFormula& f) { return is_ours(f) && f.is_held(); });
    // What is left waits for backward, if it may.
    settle_all([&](const DeferredFormula& f) { return is_ours(f) && !f.is_repeatable(); });
  } catch (...) {  // it stays deferred, and who asks for it will hear of this
  }
}

Tensor defer(const Formula& formula, const Typing& typing, ShapeRef sizes, ShapeRef strides,
             std::span<const TileOperand> operands, const void* scalars) {
  auto deferred =
      std::make_unique<DeferredFormula>(formula, typing, sizes, strides, operands, scalars);
  size_t bytes = size_t(checked_numel(sizes)) * dtype_size(typing.result);
  Storage storage;
  {
    Discarded discarded;
    Locked locked(lock());
    int steps = 0;
    std::vector<const TileOperand*> leaves;
    count_parts(*deferred, Visit(), steps, leaves);
    if (steps > kMostSteps || leaves.size() > kMostLeaves) {
      for (const TileOperand& operand : deferred->reads())
        if (DeferredFormula* read = operand.tensor->storage()->deferred())
          settle_locked(*read, discarded);
      steps = 1;
    }
    deferred->steps = steps;
    storage = StorageImpl::defer(bytes, {DeviceType::cpu}, deferred.get());
    deferred->storage = storage.get();
    link(deferred.release());
  }
  return on_storage(std::move(storage), sizes, strides, typing.result);
}

void settle(const StorageImpl& storage) {
  Discarded discarded;
  Locked locked(lock());
  if (DeferredFormula* formula = storage.deferred()) settle_locked(*formula, discarded);
}

void discard_deferred(StorageImpl& storage) {
  std::unique_ptr<DeferredFormula> discarded;
  Locked locked(lock());
  discarded.reset(storage.deferred());
  if (discarded) unlink(discarded.get());
}

void detail::settle_readers(const StorageImpl& storage) {
  settle_all([&](const DeferredFormula& formula) {
    return std::ranges::any_of(formula.reads(), [&](const TileOperand& operand) {
      return operand.tensor->storage().get() == &storage;
    });
  });
}

}  // namespace rushlight
