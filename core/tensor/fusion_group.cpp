#include "core/tensor/fusion_group.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/device/cuda_stream.h"
#include "core/tensor/fused_cuda.h"
#include "core/tensor/reduce_split.h"

namespace rushlight {
namespace {

// What a formula does, where that is arithmetic of floats in their own dtype.
std::optional<Arithmetic> arithmetic_of(const DeferredOp& op) {
  const DeferredCall& call = op.call;
  bool is_single = call.compute == DType::float32;
  if (!call.formula || call.written != call.compute ||
      !(is_single || call.compute == DType::float64))
    return {};
  std::string_view text = call.formula->expression;
  if (text == "input * other" || text == "g * conj(other)" || text == "g * conj(input)")
    return Arithmetic::multiply;
  if (text == "input / other") return Arithmetic::divide;
  if (text == "-input") return Arithmetic::negate;
  if (text == "abs(input)") return Arithmetic::absolute;
  if (text == "input * input") return Arithmetic::square;
  if (text == "max(input, S(0))") return Arithmetic::relu;
  bool adds = text == "input + other * alpha";
  if (!adds && text != "input - other * alpha") return {};
  const void* alpha = op.scalars;
  bool is_one =
      is_single ? *static_cast<const float*>(alpha) == 1 : *static_cast<const double*>(alpha) == 1;
  if (!is_one) return {};
  return adds ? Arithmetic::add : Arithmetic::subtract;
}

std::optional<Arithmetic> rounding_to(DType dtype) {
  if (dtype == DType::float16) return Arithmetic::round_float16;
  if (dtype == DType::bfloat16) return Arithmetic::round_bfloat16;
  return {};
}

// The halves of a dtype that are floats in another one.
Element halves_of(DType dtype, DType wide) {
  if (wide != DType::float32) return Element::whole;
  if (dtype == DType::float16) return Element::float16;
  return dtype == DType::bfloat16 ? Element::bfloat16 : Element::whole;
}

void make_cast(TileProgram::Step& step, DType from, DType to) {
  step.cast = cast_loop(from, to);
  step.widens = halves_of(from, to);
}

}  // namespace

FusionGroup::FusionGroup(DeferredOp& root) : root_(root), body_(body_of(root)) {
  add(root);
  uses_.resize(members_.size());
  for (DeferredOp* member : members_)
    for (const TileOperand& operand : member->reads())
      if (DeferredOp* read = operand.tensor->storage()->deferred()) ++uses_[size_t(read->member)];
}

FusionGroup::~FusionGroup() {
  for (DeferredOp* member : members_) member->member = -1;
}

void FusionGroup::run() {
  if (root_.storage->device().is_cuda()) return run_on_cuda();
  values_.resize(members_.size());
  results_.reserve(members_.size());
  lanes_.reserve(kMaxLanes);
  for (DeferredOp* member : members_)
    if (!member->call.reduction) compile(*member);
  program_.finish();
  for (size_t k = 0; k < lanes_.size(); ++k) {
    auto& [tensor, dtype] = lanes_[k];
    const Element halves = halves_of(tensor->dtype(), dtype);
    if (halves == Element::whole || tensor->numel() < checked_numel(body_.sizes)) continue;
    if (program_.takes_halves(int(k), halves)) dtype = tensor->dtype();
  }
  if (root_.call.reduction) reduce();
  else run_tile_loop(result_in(results_.back()), lanes_, program_.kernel(), &program_);
}

TileOperand FusionGroup::result_in(const Tensor& tensor) {
  const Element halves = halves_of(tensor.dtype(), body_.call.written);
  bool gives = halves != Element::whole && program_.gives_halves(halves);
  return {&tensor, gives ? tensor.dtype() : body_.call.written};
}

void FusionGroup::add(DeferredOp& op) {
  for (const TileOperand& operand : op.reads())
    if (DeferredOp* read = operand.tensor->storage()->deferred())
      if (read->member < 0) add(*read);
  op.member = int(members_.size());
  members_.push_back(&op);
}

bool FusionGroup::is_to_be_stored(const DeferredOp& member) const {
  if (&member == &root_) return true;
  bool is_held = member.is_held();
  bool is_read_later = is_held || member.readers > uses_[size_t(member.member)] ||
                       member.storage->saved_windows.load() > 0;
  // While the function goes on, a variable may be read once more, many times or never.
  bool may_wait = !is_held || (is_fusing() && member.full_reads <= 1);
  return is_read_later && !(may_wait && member.is_repeatable());
}

bool FusionGroup::store_if_wanted(DeferredOp& member) {
  if (!is_to_be_stored(member)) return false;
  stored_.push_back(&member);
  results_.push_back(
      empty_strided(member.sizes, member.strides, member.call.result, member.storage->device()));
  return true;
}

void FusionGroup::run_on_cuda() {
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

void FusionGroup::compile(DeferredOp& member) {
  const DeferredCall& call = member.call;
  Step step;
  step.loop = call.kernel.run;
  if (!step.loop) make_cast(step, call.compute, call.result);
  if (auto how = arithmetic_of(member)) step.chain = {1, {{*how}}};
  step.scalars = member.scalars;
  step.inputs.resize(size_t(member.operand_count));
  const TileOperand* number = nullptr;
  int numbers = 0;
  for (int k = 0; k < member.operand_count; ++k) {
    const TileOperand& operand = member.operands[k];
    if (DeferredOp* read = operand.tensor->storage()->deferred())
      step.inputs[size_t(k)] = value_as(*read, operand.kernel_dtype);
    else if (!is_number(operand)) step.inputs[size_t(k)] = lane_of(operand);
    else ++numbers, number = &operand;
  }
  if (numbers) {
    // One number has a loop of its own, where there is one; else it fills a tile.
    int k = int(number - member.operands);
    PointwiseLoop repeating = k < kMaxRepeating ? call.kernel.repeating[k] : nullptr;
    if (numbers == 1 && repeating) step.loop = repeating;
    int64_t copies = step.loop == repeating ? 1 : TileProgram::kTile;
    for (k = 0; k < member.operand_count; ++k)
      if (is_number(member.operands[k]))
        step.inputs[size_t(k)] = program_.add_number(member.operands[k], copies);
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

void FusionGroup::take_as_single(Step& step, const DeferredOp& member) {
  bool has_long_rows = false;
  for (size_t d = 0; d < member.sizes.size(); ++d)
    has_long_rows |= member.strides[d] == 1 && member.sizes[d] >= TileProgram::kTile / 4;
  for (int k = 0; has_long_rows && k < std::min(member.operand_count, kMaxRepeating); ++k) {
    bool is_smaller = member.operands[k].tensor->numel() < checked_numel(member.sizes);
    PointwiseLoop repeating = member.call.kernel.repeating[k];
    const Place& input = step.inputs[size_t(k)];
    if (input.kind != Place::lane || !is_smaller || !repeating) continue;
    step.single = input.index;
    step.single_loop = repeating;
    return;
  }
}

FusionGroup::Place FusionGroup::value_as(const DeferredOp& member, DType dtype) {
  Place value = values_[size_t(member.member)];
  if (member.call.result == dtype) return value;
  auto found = std::ranges::find_if(
      casts_, [&](const Cast& cast) { return cast.member == &member && cast.dtype == dtype; });
  if (found != casts_.end()) return found->place;
  Place converted = program_.new_buffer(dtype);
  cast(value, member.call.result, converted, dtype);
  casts_.push_back({&member, dtype, converted});
  return converted;
}

void FusionGroup::cast(Place from, DType from_dtype, Place to, DType to_dtype) {
  Step step;
  step.inputs = {from};
  step.output = to;
  // What was converted there is converted there and back at once.
  std::optional<Arithmetic> rounding = rounding_to(from_dtype);
  if (rounding && to_dtype == DType::float32 && from.kind == Place::buffer) {
    const Step& there = program_.writer_of(from);
    if (there.cast == cast_loop(to_dtype, from_dtype)) {
      step.chain = {1, {{*rounding}}};
      step.inputs[0] = there.inputs[0];
    }
  }
  if (step.chain.count == 0) make_cast(step, from_dtype, to_dtype);
  program_.add(step);
}

FusionGroup::Place FusionGroup::lane_of(const TileOperand& operand) {
  auto lane = std::ranges::find_if(lanes_, [&](auto& lane) { return is_same(lane, operand); });
  if (lane == lanes_.end()) lane = lanes_.insert(lane, operand);
  return {Place::lane, int(lane - lanes_.begin()), 0, int64_t(dtype_size(operand.kernel_dtype))};
}

void FusionGroup::reduce() {
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
    source.emplace(result_in(elements), lanes_, program_.kernel(), &program_);
  }
  run_reduce_cpu(call.reduction, input, call.dims, dtype_of_compute(compute_of(call.dtype)),
                 call.parameter, result, {}, source ? &*source : nullptr);
  stored_.push_back(&root_);
  results_.push_back(result);
}

}  // namespace rushlight
