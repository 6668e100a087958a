// Defines the updates of many tensors in place.
//
// All elements of all tensors are one range that the threads split, so that a hundred small
// parameters cost as much as a large one. Half types compute in float32.
#include "core/ops/foreach/foreach_update.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/autograd/needs.h"
#include "core/device/threads.h"
#include "core/ops/foreach/foreach_loops.h"
#include "core/ops/ops.h"
#include "core/tensor/tile_loop.h"

// The third reading of the formulas: T is a Tensor, and the words are differentiable ops.
#define RUSHLIGHT_ISA_NAMESPACE on_tensors
#include "core/ops/foreach/foreach_step.h"

namespace rushlight {

ISA_TABLES(StepLoops, step_loops)

namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread
constexpr int64_t kTile = 1024;    // elements of a half type that are converted at a time
constexpr size_t kGradients = 1;   // the list that is only read, unless it is unscaled

const StepLoops& loops() { return active(step_loops_sets); }

void check_lists(std::span<const StepList> lists) {
  size_t count = lists[0].tensors.size();
  for (const StepList& list : lists)
    CHECK(!list.used || list.tensors.size() == count, "got ", count, " parameters, but ",
          list.tensors.size(), " gradients or states. There must be one for each.");
}

// What a gradient scaler gives.
void check_numbers(const char* name, const Tensor& numbers, int64_t count) {
  CHECK(numbers.dtype() == DType::float32 && numbers.numel() == count && numbers.is_contiguous(),
        name, " has dtype ", dtype_name(numbers.dtype()), " and shape ", numbers.sizes(),
        ". It must hold ", count, " of float32.");
}

// Checks the tensors of all lists and says where their elements are. Gradients are only read unless
// the update changes them too.
class Update {
 public:
  explicit Update(std::span<const StepList> lists, bool changes_gradients = false)
      : lists_(lists), changes_gradients_(changes_gradients) {
    check_lists(lists);
    size_t count = lists[0].tensors.size();
    items_.reserve(count);
    for (size_t i = 0; i < count; ++i) add(i);
  }

  std::span<const StepItem> items() const { return items_; }
  Device device() const { return device_; }
  int64_t size() const { return items_.empty() ? 0 : items_.back().end; }

  // Calls work(is_double, arrays, n) on pieces that cover all elements, float or double.
  template <class Work>
  void run_on_cpu(const Work& work) const {
    parallel_for(0, size(), kGrain, [&](int64_t begin, int64_t end) {
      auto first = std::upper_bound(items_.begin(), items_.end(), begin,
                                    [](int64_t at, const StepItem& item) { return at < item.end; });
      for (auto item = first; item != items_.end() && item->begin < end; ++item)
        run_part(*item, std::max(begin, item->begin) - item->begin,
                 std::min(end, item->end) - item->begin, work);
    });
  }

  // Says that the tensors have changed.
  void finish(const char* op) {
    for (auto& [original, copy] : copied_) copy_into(original, copy);
    for (size_t k = 0; k < lists_.size(); ++k)
      for (const Tensor& tensor : lists_[k].tensors)
        if (writes(k) && !tensor.impl()->untracked) tensor.storage()->bump_version(op);
  }

 private:
  void add(size_t i) {
    const Tensor& param = lists_[0].tensors[i];
    CHECK(param.defined() && is_differentiable(param.dtype()), "parameter ", i,
          " is not a floating-point or complex tensor.");
    Device device = param.device();
    if (i == 0) device_ = device;
    CHECK(device.type == device_.type, "parameters are on ", device_, " and on ", device,
          ". They must be on one kind of device.");
    bool same_order = true;
    for (size_t k = 0; k < lists_.size(); ++k) {
      if (lists_[k].tensors.empty()) continue;
      const Tensor& tensor = lists_[k].tensors[i];
      CHECK(tensor.defined() && tensor.sizes() == param.sizes() && tensor.dtype() == param.dtype(),
            "parameter ", i, " has shape ", param.sizes(), " and dtype ", dtype_name(param.dtype()),
            ", but its gradient or state has not. They must have the same.");
      CHECK(tensor.device() == device, "parameter ", i, " is on ", device,
            ", but its gradient or state is on ", tensor.device(), ". Move it there.");
      if (writes(k)) check_writable(tensor);
      same_order &= tensor.is_contiguous()
                        ? param.is_contiguous()
                        : tensor.strides() == param.strides() && tensor.is_dense();
    }
    int64_t begin = size(), elements = param.numel() * (is_complex(param.dtype()) ? 2 : 1);
    StepItem item{real_dtype(param.dtype()), device, begin, begin + elements};
    for (size_t k = 0; k < lists_.size(); ++k) {
      if (lists_[k].tensors.empty()) continue;
      Tensor tensor = lists_[k].tensors[i];
      if (!same_order && !tensor.is_contiguous()) {
        tensor = clone_dense(tensor);
        if (writes(k)) copied_.push_back({lists_[k].tensors[i], tensor});
        else gradients_.push_back(tensor);
      }
      item.arrays[k] = tensor.address();
    }
    items_.push_back(item);
  }

  bool writes(size_t list) const { return list != kGradients || changes_gradients_; }

  static char* address(const StepItem& item, size_t k) {
    return static_cast<char*>(item.arrays[k]);
  }

  template <class Work>
  void run_part(const StepItem& item, int64_t begin, int64_t end, const Work& work) const {
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
        work(false, arrays, n);
        for (size_t k = 0; k < kMaxStepArrays; ++k)
          if (item.arrays[k] && writes(k))
            narrow(tiles[k], address(item, k) + i * int64_t(sizeof(Half)), n);
      }
      return;
    }
    for (size_t k = 0; k < kMaxStepArrays; ++k)
      if (item.arrays[k]) arrays[k] = address(item, k) + begin * int64_t(dtype_size(item.dtype));
    work(item.dtype == DType::float64, arrays, end - begin);
  }

  Device device_;
  std::span<const StepList> lists_;
  bool changes_gradients_;
  std::vector<StepItem> items_;
  std::vector<Tensor> gradients_;                  // copies in row-major order
  std::vector<std::pair<Tensor, Tensor>> copied_;  // written tensors with their copies
};

// One step for parameter i. What it reads are copies, since the originals change.
template <template <class, class> class Formula, class Step>
void record_step(const Step& step, std::span<const StepList> lists, size_t i) {
  Tensor arrays[kMaxStepArrays], originals[kMaxStepArrays];
  for (size_t k = 0; k < lists.size(); ++k) {
    if (lists[k].tensors.empty()) continue;
    const Tensor& tensor = lists[k].tensors[i];
    originals[k] = is_complex(tensor.dtype()) ? call<"view_as_real", Tensor>(tensor) : tensor;
    arrays[k] = k == kGradients ? originals[k] : clone(originals[k]);
  }
  Formula<Tensor, double>(step).update(&arrays[0], &arrays[1], &arrays[2], &arrays[3], &arrays[4],
                                       0);
  for (size_t k = 0; k < lists.size(); ++k)
    if (k != kGradients && arrays[k].defined()) copy_(originals[k], arrays[k]);
}

}  // namespace

int64_t update_all(const char* op, Method method, const void* step,
                   std::initializer_list<StepList> lists, const Tensor& scaling,
                   const Tensor& rates) {
  if (scaling.defined()) check_numbers("scaling", scaling, 2);
  Update update(lists, scaling.defined());
  if (update.device().is_cuda()) {
    step_cuda(update.items(), method, step, scaling, rates);
  } else if (update.device().is_cpu()) {
    double scale = 1;
    if (scaling.defined()) {
      Tensor here = needs::to_device(scaling, {});
      if (here.data<float>()[1] != 0) return 0;
      scale = here.data<float>()[0];
    }
    const StepLoop* of_dtype = loops().step[int(method)];
    update.run_on_cpu([&, factor = 1 / scale](bool is_double, void* const* arrays, int64_t n) {
      if (scale != 1) loops().unscale[is_double](arrays[kGradients], factor, n);
      of_dtype[is_double](step, arrays, n);
    });
  }
  update.finish(op);
  return update.size();
}

int64_t update_recorded(Method method, const void* step, std::initializer_list<StepList> lists) {
  std::span<const StepList> all = lists;
  check_lists(all);
  int64_t size = 0;
  for (size_t i = 0; i < all[0].tensors.size(); ++i) {
    size += all[0].tensors[i].numel();
    switch (method) {
#define RUSHLIGHT_CASE(name)                                                         \
  case Method::name:                                                                 \
    record_step<on_tensors::name>(*static_cast<const name##Step*>(step), all, i); \
    break;
      RUSHLIGHT_FOR_EACH_METHOD(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    }
  }
  return size;
}

void unscale_all(const char* op, TensorList tensors, const Tensor& found, const Tensor& factor) {
  check_numbers("found_inf", found, 1);
  check_numbers("inv_scale", factor, 1);
  check_writable(found);
  StepList list(tensors);
  Update update({&list, 1});
  for (const StepItem& item : update.items())
    CHECK(item.device == found.device() && item.device == factor.device(), "gradients are on ",
          item.device, ", but found_inf and inv_scale are on ", found.device(), " and ",
          factor.device(), ". They must be on one device.");
  float* found_at = static_cast<float*>(found.address());
  const float* factor_at = static_cast<const float*>(factor.address());
  if (update.device().is_cuda()) {
    unscale_cuda(update.items(), factor_at, found_at);
  } else if (update.device().is_cpu()) {
    std::atomic<bool> wrong = false;
    update.run_on_cpu([&, by = double(*factor_at)](bool is_double, void* const* arrays, int64_t n) {
      if (loops().unscale[is_double](arrays[0], by, n))
        wrong.store(true, std::memory_order_relaxed);
    });
    if (wrong) *found_at = 1;
  }
  update.finish(op);
  found.storage()->bump_version(op);
}

}  // namespace rushlight
