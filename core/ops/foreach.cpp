// Owns the ops on many tensors in one call: the steps of the optimizers, and norms.
//
// All elements of all parameters are one range that the threads split, so that a hundred small
// parameters cost as much as a large one. Half types compute in float32.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/device/threads.h"
#include "core/ops/foreach_cuda.h"
#include "core/ops/foreach_loops.h"
#include "core/ops/op.h"
#include "core/ops/real_number.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa, name) \
  namespace isa {                    \
  extern const StepLoops name;       \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE, step_loops)
#undef RUSHLIGHT_DECLARE

namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread
constexpr int64_t kTile = 1024;    // elements of a half type that are converted at a time
constexpr size_t kGradients = 1;   // the list that is only read

const StepLoops& loops() {
#define RUSHLIGHT_ADDRESS(isa, name) &isa::name,
  static constexpr IsaSets<StepLoops> sets = {
      RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_ADDRESS, step_loops)};
#undef RUSHLIGHT_ADDRESS
  return active(sets);
}

// The parameters, their gradients and their state: one list each, some of them empty.
class Update {
 public:
  Update(std::initializer_list<TensorList> lists) : lists_(lists) {
    const TensorList& params = lists_[0];
    for (size_t k = 0; k < lists_.size(); ++k)
      CHECK(lists_[k].size() == params.size() || (k > kGradients && lists_[k].empty()), "got ",
            params.size(), " parameters, but ", lists_[k].size(),
            " gradients or states. There must be one for each.");
    items_.reserve(params.size());
    for (size_t i = 0; i < params.size(); ++i) add(i);
  }

  // Calls loop(arrays, n) on pieces that cover all elements, `loop` being that of the dtype.
  template <class Loop, class Step>
  void run(const Loop* loops, const Step& step, const char* op) {
    if (device_.is_cuda()) step_cuda(items_, step);
    else if (device_.is_cpu()) run_on_cpu(loops, step);
    for (auto& [original, copy] : copied_) copy_into(original, copy);
    for (size_t k = 0; k < lists_.size(); ++k)
      for (const Tensor& tensor : lists_[k])
        if (k != kGradients && !tensor.impl()->untracked) tensor.storage()->bump_version(op);
  }

  int64_t size() const { return items_.empty() ? 0 : items_.back().end; }

 private:
  template <class Loop, class Step>
  void run_on_cpu(const Loop* loops, const Step& step) {
    parallel_for(0, size(), kGrain, [&](int64_t begin, int64_t end) {
      auto first = std::upper_bound(items_.begin(), items_.end(), begin,
                                    [](int64_t at, const StepItem& item) { return at < item.end; });
      for (auto item = first; item != items_.end() && item->begin < end; ++item)
        run_part(*item, std::max(begin, item->begin) - item->begin,
                 std::min(end, item->end) - item->begin, loops, step);
    });
  }

  void add(size_t i) {
    const Tensor& param = lists_[0][i];
    CHECK(param.defined() && is_differentiable(param.dtype()), "parameter ", i,
          " is not a floating-point or complex tensor.");
    Device device = param.device();
    if (i == 0) device_ = device;
    CHECK(device.type == device_.type, "parameters are on ", device_, " and on ", device,
          ". They must be on one kind of device.");
    bool same_order = true;
    for (size_t k = 0; k < lists_.size(); ++k) {
      if (lists_[k].empty()) continue;
      const Tensor& tensor = lists_[k][i];
      CHECK(tensor.defined() && tensor.sizes() == param.sizes() && tensor.dtype() == param.dtype(),
            "parameter ", i, " has shape ", param.sizes(), " and dtype ", dtype_name(param.dtype()),
            ", but its gradient or state has not. They must have the same.");
      CHECK(tensor.device() == device, "parameter ", i, " is on ", device,
            ", but its gradient or state is on ", tensor.device(), ". Move it there.");
      if (k != kGradients) check_writable(tensor);
      same_order &= tensor.is_contiguous()
                        ? param.is_contiguous()
                        : tensor.strides() == param.strides() && tensor.is_dense();
    }
    int64_t begin = size(), elements = param.numel() * (is_complex(param.dtype()) ? 2 : 1);
    StepItem item{real_dtype(param.dtype()), device, begin, begin + elements};
    for (size_t k = 0; k < lists_.size(); ++k) {
      if (lists_[k].empty()) continue;
      Tensor tensor = lists_[k][i];
      if (!same_order && !tensor.is_contiguous()) {
        tensor = clone_dense(tensor);
        if (k == kGradients) gradients_.push_back(tensor);
        else copied_.push_back({lists_[k][i], tensor});
      }
      item.arrays[k] = tensor.address();
    }
    items_.push_back(item);
  }

  static char* address(const StepItem& item, size_t k) {
    return static_cast<char*>(item.arrays[k]);
  }

  template <class Loop, class Step>
  void run_part(const StepItem& item, int64_t begin, int64_t end, const Loop* loops,
                const Step& step) {
    void* arrays[kMaxStepArrays] = {};
    if (is_half(item.dtype)) {
      CastLoop widen = cast_loop(item.dtype, DType::float32);
      CastLoop narrow = cast_loop(DType::float32, item.dtype);
      float tiles[kMaxStepArrays][kTile];
      for (int64_t i = begin; i < end; i += kTile) {
        int64_t n = std::min(kTile, end - i);
        for (size_t k = 0; k < kMaxStepArrays; ++k) {
          if (!item.arrays[k]) continue;
          arrays[k] = tiles[k];
          widen(address(item, k) + i * int64_t(sizeof(Half)), tiles[k], n);
        }
        loops[0](step, arrays, n);
        for (size_t k = 0; k < kMaxStepArrays; ++k)
          if (item.arrays[k] && k != kGradients)
            narrow(tiles[k], address(item, k) + i * int64_t(sizeof(Half)), n);
      }
      return;
    }
    for (size_t k = 0; k < kMaxStepArrays; ++k)
      if (item.arrays[k]) arrays[k] = address(item, k) + begin * int64_t(dtype_size(item.dtype));
    loops[item.dtype == DType::float64](step, arrays, end - begin);
  }

  Device device_;
  std::vector<TensorList> lists_;
  std::vector<StepItem> items_;
  std::vector<Tensor> gradients_;                  // copies in row-major order
  std::vector<std::pair<Tensor, Tensor>> copied_;  // written tensors with their copies
};

// Which norm one launch takes of all the tensors, if there is one: none when it must be recorded.
std::optional<NormKind> kind_of_many(TensorList tensors, const Scalar& ord) {
  for (const Tensor& tensor : tensors) {
    bool alike = tensor.device() == tensors[0].device() && tensor.dtype() == tensors[0].dtype();
    if (!alike || !tensor.device().is_cuda() || !is_floating(tensor.dtype()) ||
        !tensor.is_dense() || tensor.numel() == 0 || (is_grad_enabled() && tensor.requires_grad()))
      return std::nullopt;
  }
  double order = real_number(ord, "ord");
  if (tensors.empty() || (order != 1 && order != 2 && order != HUGE_VAL)) return std::nullopt;
  return order == 2 ? NormKind::euclidean : order == 1 ? NormKind::sum : NormKind::largest;
}

}  // namespace

OP(_fused_sgd_,
   "(Tensor[] params, Tensor[] grads, Tensor[] buffers, float lr, float momentum, float dampening, "
   "float weight_decay, bool nesterov, bool maximize, bool first) -> int", {
  .home    = "private",
  .doc     = R"(One step of SGD on all parameters; returns how many elements it updated.

Without momentum there are no buffers. `first` says that the buffers hold nothing yet.)",
  .forward = [](TensorList params, TensorList grads, TensorList buffers, double lr, double momentum,
                double dampening, double weight_decay, bool nesterov, bool maximize, bool first) {
    Update update{params, grads, buffers};
    CHECK(momentum == 0 || buffers.size() == params.size(),
          "momentum needs a buffer for each parameter.");
    SgdStep step{lr, momentum, dampening, weight_decay, nesterov, maximize, first};
    update.run(loops().sgd, step, "_fused_sgd_");
    return update.size();
  },
})

OP(_fused_adam_,
   "(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
   "Tensor[] max_exp_avg_sqs, float lr, float beta1, float beta2, float eps, float weight_decay, "
   "bool decoupled, bool amsgrad, bool maximize, float step) -> int", {
  .home    = "private",
  .doc     = R"(Step number `step` of Adam on all parameters; returns how many elements it updated.

The first step is 1. `decoupled` shrinks the parameters themselves, which makes it AdamW. Without
amsgrad there are no max_exp_avg_sqs.)",
  .forward = [](TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                TensorList max_exp_avg_sqs, double lr, double beta1, double beta2, double eps,
                double weight_decay, bool decoupled, bool amsgrad, bool maximize, double step) {
    Update update{params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs};
    CHECK(exp_avgs.size() == params.size() && exp_avg_sqs.size() == params.size(),
          "there must be an exp_avg and an exp_avg_sq for each parameter.");
    CHECK(!amsgrad || max_exp_avg_sqs.size() == params.size(),
          "amsgrad needs a max_exp_avg_sq for each parameter.");
    AdamStep adam{lr, beta1, beta2, eps, weight_decay, 1 - std::pow(beta1, step),
                  1 - std::pow(beta2, step), decoupled, amsgrad, maximize};
    update.run(loops().adam, adam, "_fused_adam_");
    return update.size();
  },
})

OP(_foreach_norm, "(Tensor[] tensors, Scalar ord=2, *, dtype? dtype=None) -> Tensor[]", {
  .doc     = R"(The norm of each tensor: see linalg.vector_norm.)",
  .forward = [](TensorList tensors, Scalar ord, std::optional<DType> dtype) {
    std::optional<NormKind> kind = kind_of_many(tensors, ord);
    if (kind && !dtype) return norms_cuda(tensors, *kind);
    std::vector<Tensor> norms;
    norms.reserve(tensors.size());
    for (const Tensor& tensor : tensors)
      norms.push_back(
          call<"vector_norm", Tensor>(tensor, ord, std::optional<ShapeRef>(), false, dtype));
    return norms;
  },
})

}  // namespace rushlight
