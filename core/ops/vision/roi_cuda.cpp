// Defines roi pooling on CUDA: the plan is made on the host, where rois are checked, and copied.
#include <algorithm>

#include "core/device/cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/ops/operands.h"
#include "core/ops/vision/roi.h"
#include "core/ops/vision/roi_args.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const roi_cu;

namespace {

constexpr unsigned kThreads = 128;

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel sums{module, "sums"}, maxima{module, "maxima"}, spread{module, "spread"};

  explicit Kernels(DType dtype)
      : module(std::string("roi<") + device_type(dtype) + ">", roi_cu,
               cuda::define("ITEM", device_type(dtype)) +
                   cuda::define("COMPUTE", device_type(compute_dtype(dtype)))) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    cuda::kernels_of<Kernels>(dtype);
});

// A plan in the memory of the device, for as long as it lives.
class DevicePlan {
 public:
  DevicePlan(const RoiPooling& how, const Tensor& rois, DType dtype, ShapeRef sizes, Device device)
      : device_(device) {
    RoiPlan plan = plan_rois(how, rois, compute_dtype(dtype), sizes);
    args.rows = moved(plan.rows);
    args.columns = moved(plan.columns);
    Tensor images = empty(Shape{int64_t(plan.images.size())}, DType::int64);
    std::copy(plan.images.begin(), plan.images.end(), images.data<int64_t>());
    args.images = static_cast<const int64_t*>(moved(images));
    args.rois = rois.size(0);
    args.channels = sizes[1];
    args.height = sizes[2];
    args.width = sizes[3];
    args.by_planes = how.by_planes();
    args.outputs = args.by_planes ? sizes[1] / (how.down * how.across) : sizes[1];
    args.down = how.down;
    args.across = how.across;
  }
  RoiArgs args{};

 private:
  RoiAxisArgs moved(const RoiAxis& axis) {
    return {static_cast<const int64_t*>(moved(axis.start)),
            static_cast<const int32_t*>(moved(axis.places)), moved(axis.weights)};
  }
  const void* moved(const Tensor& t) {
    tensors_.push_back(empty(t.sizes(), t.dtype(), device_));
    copy_into(tensors_.back(), t);
    return tensors_.back().address();
  }

  Device device_;
  std::vector<Tensor> tensors_;
};

template <class... Addresses>
void launch(cuda::CudaKernel Kernels::* kernel, DevicePlan& plan, const Tensor& result, DType dtype,
            Addresses... addresses) {
  plan.args.total = result.numel();
  (cuda::kernels_of<Kernels>(dtype).*kernel)
      .launch({cuda::blocks_for(plan.args.total, kThreads)}, {kThreads}, 0, plan.args,
              addresses...);
}

Tensor empty_bins(const DevicePlan& plan, DType dtype, Device device) {
  return empty(Shape{plan.args.rois, plan.args.outputs, plan.args.down, plan.args.across}, dtype,
               device);
}

}  // namespace

Tensor roi_sums_on_cuda(const RoiPooling& how, const Tensor& input, const Tensor& rois) {
  cuda::DeviceGuard guard(input.device().index);
  DevicePlan plan(how, rois, input.dtype(), input.sizes(), input.device());
  Tensor x = to_contiguous(input), result = empty_bins(plan, input.dtype(), input.device());
  launch(&Kernels::sums, plan, result, input.dtype(), x.address(), result.address());
  return result;
}

Tensor roi_sums_backward_on_cuda(const RoiPooling& how, const Tensor& grad, const Tensor& rois,
                                 ShapeRef sizes) {
  cuda::DeviceGuard guard(grad.device().index);
  DevicePlan plan(how, rois, grad.dtype(), sizes, grad.device());
  Tensor g = to_contiguous(grad), result = empty(sizes, grad.dtype(), grad.device());
  launch(&Kernels::spread, plan, result, grad.dtype(), g.address(), result.address());
  return result;
}

RoiMaxima roi_maxima_on_cuda(const RoiPooling& how, const Tensor& input, const Tensor& rois) {
  cuda::DeviceGuard guard(input.device().index);
  DevicePlan plan(how, rois, input.dtype(), input.sizes(), input.device());
  Tensor x = to_contiguous(input), values = empty_bins(plan, input.dtype(), input.device());
  Tensor places = empty_bins(plan, DType::int64, input.device());
  launch(&Kernels::maxima, plan, values, input.dtype(), x.address(), values.address(),
         places.address());
  return {values, places};
}

}  // namespace rushlight
