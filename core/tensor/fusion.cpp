// Defines which ops are deferred, and when they are settled. See Note [Fusion].
#include "core/tensor/fusion.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda_stream.h"
#include "core/tensor/fusion_group.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/reduce_split.h"

namespace rushlight {
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

DeferredOp* newest = nullptr;

void link(DeferredOp* op) {
  for (const TileOperand& operand : op->reads())
    if (DeferredOp* read = operand.tensor->storage()->deferred()) ++read->readers;
  op->older = newest;
  if (newest) newest->newer = op;
  newest = op;
  detail::deferred_count.fetch_add(1, std::memory_order_relaxed);
}
void unlink(DeferredOp* op) {
  for (const TileOperand& operand : op->reads())
    if (DeferredOp* read = operand.tensor->storage()->deferred()) --read->readers;
  if (op->older) op->older->newer = op->newer;
  (op->newer ? op->newer->older : newest) = op->older;
  detail::deferred_count.fetch_sub(1, std::memory_order_relaxed);
}

// A walk over what an op reads, that comes to each deferred op once.
class Visit {
 public:
  Visit() : number_(++count) {}
  bool is_first(DeferredOp& op) const { return std::exchange(op.visit, number_) != number_; }

 private:
  inline static uint64_t count = 0;
  uint64_t number_;
};

// What a program for an op would be made of, if nothing were settled before.
struct Parts {
  int steps = 0;
  int numbers = 0;
  int passes = 0;  // over a tile: those of the steps, and of conversions between them
  std::vector<const TileOperand*> leaves;

  explicit Parts(DeferredOp& op) { add(op, Visit()); }

  bool fit_one_program() const {
    return steps <= kMostSteps && leaves.size() <= kMostLeaves && numbers <= kMostNumbers;
  }

 private:
  void add(DeferredOp& op, const Visit& visit) {
    ++steps;
    numbers += op.call.scalar_count();
    passes += 1 + (op.call.written != op.call.result);
    for (const TileOperand& operand : op.reads()) {
      if (is_number(operand)) {
        ++numbers;
        continue;
      }
      DeferredOp* read = operand.tensor->storage()->deferred();
      passes += operand.tensor->dtype() != operand.kernel_dtype;
      if (read && visit.is_first(*read)) add(*read, visit);
      else if (!read &&
               std::ranges::none_of(leaves, [&](auto* leaf) { return is_same(*leaf, operand); }))
        leaves.push_back(&operand);
    }
  }
};

// What a lock holder is done with. It goes after the lock: the last reference to memory of another
// library calls it back, and it may wait for locks of its own.
using Discarded = std::vector<std::unique_ptr<DeferredOp>>;

// ---- settling, under the lock -------------------------------------------------------------------

void settle_locked(DeferredOp& root, Discarded& discarded);

// Whether an operand is all of what a deferred formula gives, in the order of `root`.
bool fits(const DeferredOp& read, const Tensor& operand, const DeferredOp& root) {
  return !read.call.reduction && read.storage->device() == root.storage->device() &&
         read.stream == root.stream && operand.dtype() == read.call.result &&
         operand.offset() == 0 && operand.sizes() == root.sizes &&
         operand.strides() == root.strides && read.sizes == root.sizes &&
         read.strides == root.strides;
}

// Settles what cannot be computed along with the root, such as views and broadcast operands.
void settle_others(DeferredOp& op, const DeferredOp& root, const Visit& visit,
                   Discarded& discarded) {
  if (!visit.is_first(op)) return;
  for (const TileOperand& operand : op.reads()) {
    DeferredOp* read = operand.tensor->storage()->deferred();
    if (!read) continue;
    if (fits(*read, *operand.tensor, root)) settle_others(*read, root, visit, discarded);
    else settle_locked(*read, discarded);
  }
}

void settle_locked(DeferredOp& root, Discarded& discarded) {
  DeferredOp& body = body_of(root);
  settle_others(body, body, Visit(), discarded);
  FusionGroup group(root);
  group.run();
  discarded.reserve(discarded.size() + group.stored().size());
  for (size_t i = 0; i < group.stored().size(); ++i) {
    DeferredOp* member = group.stored()[i];
    member->storage->settle_with(*group.results()[i].storage());
    unlink(member);
    discarded.emplace_back(member);
  }
}

// Settles those for which is_due(op), the newest first.
template <class F>
void settle_all(F&& is_due) {
  std::vector<Storage> due;
  {
    Locked locked(lock());
    for (DeferredOp* op = newest; op; op = op->older)
      if (is_due(*op) && op->storage->try_retain()) due.push_back(Storage::adopt(op->storage));
  }
  for (const Storage& storage : due) settle(*storage);
}

// Whether the tensor is all that a deferred formula gives, in any order, on the CPU.
bool is_whole_deferred(const Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.storage()->deferred()) return false;
  Locked locked(lock());
  const DeferredOp* op = tensor.storage()->deferred();
  return op && !op->call.reduction && tensor.dtype() == op->call.result && tensor.offset() == 0 &&
         tensor.is_dense() &&
         tensor.storage()->bytes() == size_t(tensor.numel()) * tensor.itemsize();
}

Tensor defer(const DeferredCall& call, Device device, ShapeRef sizes, ShapeRef strides,
             std::span<const TileOperand> operands, const void* scalars) {
  auto deferred = std::make_unique<DeferredOp>(call, sizes, strides, operands, scalars);
  int64_t numel = checked_numel(sizes);
  size_t bytes = size_t(numel) * dtype_size(call.result);
  Storage storage;
  {
    Discarded discarded;
    Locked locked(lock());
    std::optional<Parts> parts(*deferred);
    if (!parts->fit_one_program()) {
      for (const TileOperand& operand : deferred->reads())
        if (DeferredOp* read = operand.tensor->storage()->deferred())
          settle_locked(*read, discarded);
      parts.emplace(*deferred);
    }
    deferred->passes = parts->passes;
    deferred->full_reads = int(std::ranges::count_if(
        parts->leaves, [&](auto* leaf) { return leaf->tensor->numel() == numel; }));
    storage = StorageImpl::defer(bytes, device, deferred.get());
    deferred->storage = storage.get();
    if (device.is_cuda()) deferred->stream = cuda::current_stream(device.index);
    link(deferred.release());
  }
  return on_storage(std::move(storage), sizes, strides, call.result);
}

}  // namespace

// ---- the public functions -----------------------------------------------------------------------

void end_fusion() noexcept {
  if (--detail::fusion_depth > 0) return;
  try {
    auto is_ours = [](const DeferredOp& op) { return op.scope == &detail::fusion_depth; };
    settle_all([&](const DeferredOp& op) { return is_ours(op) && op.is_held(); });
    // What is left waits for backward, if it may.
    settle_all([&](const DeferredOp& op) { return is_ours(op) && !op.is_repeatable(); });
  } catch (...) {  // it stays deferred, and who asks for it will hear of this
  }
}

Tensor defer(const Formula& formula, const Typing& typing, Device device, ShapeRef sizes,
             ShapeRef strides, std::span<const TileOperand> operands, const void* scalars) {
  return defer({.formula = &formula,
                .kernel = typing.kernel,
                .is_cheap = formula.is_cheap,
                .compute = typing.compute,
                .result = typing.result,
                .written = typing.written},
               device, sizes, strides, operands, scalars);
}

Tensor defer_cast(const Tensor& input, DType dtype, ShapeRef strides) {
  TileOperand operand{&input, input.dtype()};
  return defer({.is_cheap = true, .compute = input.dtype(), .result = dtype, .written = dtype},
               input.device(), input.sizes(), strides, {&operand, 1}, nullptr);
}

Tensor defer(const ReduceCall& call, const Tensor& input, ShapeRef sizes) {
  if (!is_whole_deferred(input) ||
      !reads_ranges(input, call.dims, dtype_of_compute(compute_of(call.dtype))))
    return {};
  reducer_of(call.reduction, call.dtype);
  TileOperand operand{&input, input.dtype()};
  return defer({.reduction = call,
                .is_cheap = false,
                .compute = input.dtype(),
                .result = call.dtype,
                .written = call.dtype},
               input.device(), sizes, contiguous_strides(sizes), {&operand, 1}, nullptr);
}

void settle(const StorageImpl& storage) {
  Discarded discarded;
  Locked locked(lock());
  if (DeferredOp* op = storage.deferred()) settle_locked(*op, discarded);
}

void settle_device(int device) {
  if (detail::deferred_count.load(std::memory_order_relaxed) == 0) return;
  Device wanted{DeviceType::cuda, int8_t(device)};
  settle_all([&](const DeferredOp& op) { return op.storage->device() == wanted; });
}

void discard_deferred(StorageImpl& storage) {
  std::unique_ptr<DeferredOp> discarded;
  Locked locked(lock());
  discarded.reset(storage.deferred());
  if (discarded) unlink(discarded.get());
}

size_t detail::count_readers(const StorageImpl& storage) {
  Locked locked(lock());
  const DeferredOp* op = storage.deferred();
  return op ? size_t(op->readers) : 0;
}

void detail::settle_readers(const StorageImpl& storage) {
  settle_all([&](const DeferredOp& op) {
    return std::ranges::any_of(op.reads(), [&](const TileOperand& operand) {
      return operand.tensor->storage().get() == &storage;
    });
  });
}

}  // namespace rushlight
