// Defines how deferred ops are collected, made a program for tiles, and run.
// See Note [Fusion].
#include "core/tensor/fusion.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda_stream.h"
#include "core/tensor/fused_cuda.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/reduce_split.h"
#include "core/tensor/tile_program.h"

namespace rushlight {

// Formulas that one program runs, and tensors that it reads: with more of them the tiles would not
// stay in the L1 cache, nor the values in a GPU's registers.
constexpr int kMostSteps = kMaxFusedWrites;
constexpr size_t kMostLeaves = kMaxFusedReads;
static_assert(kMostSteps + int(kMostLeaves) <= kMaxLanes);
constexpr int kMostNumbers = kMaxFusedNumbers;
// What takes more passes than this from what is in memory is not computed a second time.
constexpr int kMostRepeated = 8;

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

  int passes = 0;      // over a tile, of a program for this if nothing were settled before
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

DeferredOp::DeferredOp(const DeferredCall& call, ShapeRef sizes, ShapeRef strides,
                       std::span<const TileOperand> reads, const void* numbers)
    : call(call), sizes(sizes), strides(strides), operand_count(int(reads.size())) {
  for (size_t k = 0; k < reads.size(); ++k) {
    tensors_[k] = shallow_copy(*reads[k].tensor);
    operands[k] = {&tensors_[k], reads[k].kernel_dtype};
  }
  if (int count = call.scalar_count())
    std::memcpy(scalars, numbers, size_t(count) * dtype_size(call.compute));
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

// Whether both are the same lane of a program.
bool is_same(const TileOperand& one, const TileOperand& other) {
  const Tensor &a = *one.tensor, &b = *other.tensor;
  return one.kernel_dtype == other.kernel_dtype && a.dtype() == b.dtype() &&
         a.storage() == b.storage() && a.offset() == b.offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

// Whether a program knows an operand's one element beforehand.
bool is_number(const TileOperand& operand) {
  return operand.tensor->numel() == 1 && operand.tensor->device().is_cpu() &&
         !operand.tensor->storage()->deferred();
}

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

// ---- groups of ops that one program computes ----------------------------------------------------

using Place = TileProgram::Place;
using Step = TileProgram::Step;

// The op whose elements a program ends with: itself, or what a reduction reads where that is
// deferred.
DeferredOp& body_of(DeferredOp& op) {
  DeferredOp* read = op.call.reduction ? op.operands[0].tensor->storage()->deferred() : nullptr;
  return read ? *read : op;
}

// What a formula does, where that is arithmetic of two numbers in their own dtype.
std::optional<Arithmetic> arithmetic_of(const DeferredOp& op) {
  const DeferredCall& call = op.call;
  bool is_single = call.compute == DType::float32;
  if (!call.formula || call.written != call.compute ||
      !(is_single || call.compute == DType::float64))
    return {};
  std::string_view text = call.formula->expression;
  if (text == "input * other" || text == "g * conj(other)" || text == "g * conj(input)")
    return Arithmetic::multiply;
  bool adds = text == "input + other * alpha";
  if (!adds && text != "input - other * alpha") return {};
  const void* alpha = op.scalars;
  bool is_one =
      is_single ? *static_cast<const float*>(alpha) == 1 : *static_cast<const double*>(alpha) == 1;
  if (!is_one) return {};
  return adds ? Arithmetic::add : Arithmetic::subtract;
}

// Numbers the ops of a group, decides what they store, and writes the program.
class Group {
 public:
  explicit Group(DeferredOp& root) : root_(root), body_(body_of(root)) {
    add(root);
    uses_.resize(members_.size());
    for (DeferredOp* member : members_)
      for (const TileOperand& operand : member->reads())
        if (DeferredOp* read = operand.tensor->storage()->deferred()) ++uses_[size_t(read->member)];
  }
  ~Group() {
    for (DeferredOp* member : members_) member->member = -1;
  }
  Group(const Group&) = delete;

  // Computes all members, and stores those that somebody may read.
  void run() {
    if (root_.storage->device().is_cuda()) return run_on_cuda();
    values_.resize(members_.size());
    results_.reserve(members_.size());
    lanes_.reserve(kMaxLanes);
    for (DeferredOp* member : members_)
      if (!member->call.reduction) compile(*member);
    program_.finish();
    if (root_.call.reduction) reduce();
    else
      run_tile_loop({&results_.back(), root_.call.written}, lanes_, program_.kernel(), &program_);
  }

  // Which were stored, and their elements.
  std::span<DeferredOp* const> stored() const { return stored_; }
  std::span<const Tensor> results() const { return results_; }

 private:
  void add(DeferredOp& op) {
    for (const TileOperand& operand : op.reads())
      if (DeferredOp* read = operand.tensor->storage()->deferred())
        if (read->member < 0) add(*read);
    op.member = int(members_.size());
    members_.push_back(&op);
  }

  bool is_to_be_stored(const DeferredOp& member) const {
    if (&member == &root_) return true;
    bool is_held = member.is_held();
    bool is_read_later = is_held || member.readers > uses_[size_t(member.member)] ||
                         member.storage->saved_windows.load() > 0;
    // While the function goes on, a variable may be read once more, many times or never.
    bool may_wait = !is_held || (is_fusing() && member.full_reads <= 1);
    return is_read_later && !(may_wait && member.is_repeatable());
  }

  // Makes room for a member's elements, unless nobody will read them.
  bool store_if_wanted(DeferredOp& member) {
    if (!is_to_be_stored(member)) return false;
    stored_.push_back(&member);
    results_.push_back(
        empty_strided(member.sizes, member.strides, member.call.result, member.storage->device()));
    return true;
  }

  // The members are the steps of the program.
  void run_on_cuda() {
    cuda::StreamGuard guard(root_.stream);
    CudaProgram program;
    for (DeferredOp* member : members_) {
      std::vector<CudaProgram::Input> inputs;
      for (const TileOperand& operand : member->reads()) {
        DeferredOp* read = operand.tensor->storage()->deferred();
        if (is_number(operand)) inputs.push_back(program.number(operand));
        else if (read)
          inputs.push_back({CudaProgram::Input::step, read->member, operand.kernel_dtype});
        else
          inputs.push_back({CudaProgram::Input::read,
                            lane_of({operand.tensor, operand.tensor->dtype()}).index,
                            operand.kernel_dtype});
      }
      program.add(member->call.formula, member->call.compute, member->call.result, inputs,
                  member->scalars);
      if (store_if_wanted(*member)) program.store();
    }
    program.run(lanes_, results_);
  }

  void compile(DeferredOp& member) {
    const DeferredCall& call = member.call;
    Step step;
    step.loop = call.kernel.run;
    if (!step.loop) step.cast = cast_loop(call.compute, call.result);
    step.arithmetic = arithmetic_of(member);
    step.scalars = member.scalars;
    step.input_count = member.operand_count;
    const TileOperand* number = nullptr;
    int numbers = 0;
    for (int k = 0; k < step.input_count; ++k) {
      const TileOperand& operand = member.operands[k];
      if (DeferredOp* read = operand.tensor->storage()->deferred())
        step.inputs[k] = value_as(*read, operand.kernel_dtype);
      else if (!is_number(operand)) step.inputs[k] = lane_of(operand);
      else ++numbers, number = &operand;
    }
    if (numbers) {
      // One number has a loop of its own, where there is one; else it fills a tile.
      int k = int(number - member.operands);
      PointwiseLoop repeating = k < kMaxRepeating ? call.kernel.repeating[k] : nullptr;
      if (numbers == 1 && repeating) step.loop = repeating;
      int64_t copies = step.loop == repeating ? 1 : TileProgram::kTile;
      for (k = 0; k < step.input_count; ++k)
        if (is_number(member.operands[k]))
          step.inputs[k] = program_.add_number(member.operands[k], copies);
    } else {
      take_as_single(step, member);
    }

    bool is_stored = store_if_wanted(member);
    Place place;  // of the elements in the dtype of the result
    if (&member == &body_) place = {Place::result, 0, 0, int64_t(dtype_size(call.written))};
    else if (is_stored) place = lane_of({&results_.back(), call.result});
    else place = program_.new_buffer(call.result);
    bool casts = &member != &body_ && call.written != call.result;
    step.output = casts ? program_.new_buffer(call.written) : place;
    Place written = step.output;
    program_.add(step);
    if (casts) cast(written, call.written, place, call.result);
    values_[size_t(member.member)] = place;
  }

  // Has a step take the first operand that may be one element for a row so, if rows are worth a
  // call of the program each.
  void take_as_single(Step& step, const DeferredOp& member) {
    bool has_long_rows = false;
    for (size_t d = 0; d < member.sizes.size(); ++d)
      has_long_rows |= member.strides[d] == 1 && member.sizes[d] >= TileProgram::kTile / 4;
    for (int k = 0; has_long_rows && k < std::min(step.input_count, kMaxRepeating); ++k) {
      bool is_smaller = member.operands[k].tensor->numel() < checked_numel(member.sizes);
      PointwiseLoop repeating = member.call.kernel.repeating[k];
      if (step.inputs[k].kind != Place::lane || !is_smaller || !repeating) continue;
      step.single = step.inputs[k].index;
      step.single_loop = repeating;
      return;
    }
  }

  // A member's elements in the dtype that a reader takes.
  Place value_as(const DeferredOp& member, DType dtype) {
    Place value = values_[size_t(member.member)];
    if (member.call.result == dtype) return value;
    Place converted = program_.new_buffer(dtype);
    cast(value, member.call.result, converted, dtype);
    return converted;
  }
  void cast(Place from, DType from_dtype, Place to, DType to_dtype) {
    Step step;
    step.cast = cast_loop(from_dtype, to_dtype);
    step.input_count = 1;
    step.inputs[0] = from;
    step.output = to;
    // What was converted there is converted there and back at once.
    CastLoop rounding = rounding_loop(to_dtype, from_dtype);
    if (rounding && from.kind == Place::buffer) {
      const Step& there = program_.writer_of(from);
      if (there.cast == cast_loop(to_dtype, from_dtype)) {
        step.cast = rounding;
        step.inputs[0] = there.inputs[0];
      }
    }
    program_.add(step);
  }

  Place lane_of(const TileOperand& operand) {
    auto lane = std::ranges::find_if(lanes_, [&](auto& lane) { return is_same(lane, operand); });
    if (lane == lanes_.end()) lane = lanes_.insert(lane, operand);
    return {Place::lane, int(lane - lanes_.begin()), 0, int64_t(dtype_size(operand.kernel_dtype))};
  }

  // Has the reduction take what the program computes, or what is there already.
  void reduce() {
    const ReduceCall& call = *root_.call.reduction;
    const Tensor& operand = *root_.operands[0].tensor;
    Tensor result = empty(root_.sizes, call.dtype), input = operand;
    std::optional<RangedLoop> source;
    if (&body_ != &root_) {
      bool is_stored = !stored_.empty() && stored_.back() == &body_;
      Tensor elements = is_stored ? results_.back()
                                  : empty_strided(body_.sizes, body_.strides, body_.call.result,
                                                  {DeviceType::meta});
      input = on_storage(elements.storage(), operand.sizes(), operand.strides(), operand.dtype());
      source.emplace(TileOperand{&elements, body_.call.written}, lanes_, program_.kernel(),
                     &program_);
    }
    run_reduce_cpu(call.reduction, input, call.dims, dtype_of_compute(compute_of(call.dtype)),
                   call.parameter, result, {}, source ? &*source : nullptr);
    stored_.push_back(&root_);
    results_.push_back(result);
  }

  DeferredOp& root_;
  DeferredOp& body_;                  // see body_of
  std::vector<DeferredOp*> members_;  // each after those that it reads
  std::vector<int> uses_;             // how many operands of members each is
  std::vector<DeferredOp*> stored_;   // decided once: other threads let go meanwhile
  std::vector<Tensor> results_;       // of these
  std::vector<TileOperand> lanes_;    // what is read, and what is stored but the root
  std::vector<Place> values_;         // where each member's elements are
  TileProgram program_;
};

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
  Group group(root);
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
