// Defines the kernel of resampling on CUDA.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/device/cuda_kernel_map.h"
#include "core/ops/resample/resample.h"
#include "core/ops/resample/resample_args.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const resample_cu;

namespace {

using cuda::CudaKernel, cuda::CudaModule;

constexpr int64_t kThreads = 256;  // of a block

// Real numbers, or what only moves by the size of its elements.
struct Variant {
  DType dtype;
  bool moves;
  auto operator<=>(const Variant&) const = default;
};

struct Kernels {
  CudaModule module;
  CudaKernel resample{module, "resample"};

  explicit Kernels(Variant v)
      : module("resample<" + std::string(device_type(v.dtype)) + (v.moves ? ", moves>" : ">"),
               resample_cu,
               cuda::define("ELEMENT", device_type(v.dtype)) +
                   cuda::define("SUM", v.dtype == DType::float64 ? "double" : "float") +
                   cuda::define("MOVES", v.moves ? "1" : "0") +
                   (v.dtype == DType::uint8 ? cuda::define("ROUNDS") : "")) {}
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    cuda::kernels_of<Kernels>(Variant{dtype, false});
  for (DType dtype : {DType::uint16, DType::uint32, DType::uint64})
    cuda::kernels_of<Kernels>(Variant{dtype, true});
});

DType bits_of_size(size_t bytes) {
  return bytes == 1   ? DType::uint8
         : bytes == 2 ? DType::uint16
         : bytes == 4 ? DType::uint32
                      : DType::uint64;
}

// The tables of all axes in one block of memory, so that one copy brings them to the device.
class DeviceTables {
 public:
  DeviceTables(std::span<const ResampleAxis, 3> axes, Device device) {
    int64_t bytes = 0;
    for (const ResampleAxis& axis : axes)
      bytes += int64_t(8 * (axis.start.size() + axis.weight.size() + (axis.index.size() + 1) / 2));
    Tensor host = empty(Shape{bytes / 8}, DType::int64);
    on_device_ = empty(Shape{bytes / 8}, DType::int64, device);
    char* to = host.data<char>();
    char* there = static_cast<char*>(on_device_.address());
    auto put = [&]<class T>(const std::vector<T>& from) {
      std::memcpy(to, from.data(), from.size() * sizeof(T));
      const T* address = reinterpret_cast<const T*>(there);
      size_t room = (from.size() * sizeof(T) + 7) / 8 * 8;
      to += room;
      there += room;
      return address;
    };
    for (size_t d = 0; d < 3; ++d) {
      tables[d].size = axes[d].size;
      tables[d].out = axes[d].out;
      tables[d].start = put(axes[d].start);
      tables[d].weight = put(axes[d].weight);
      tables[d].index = put(axes[d].index);
    }
    copy_into(on_device_, host);
  }

  ResampleTable tables[3];

 private:
  Tensor on_device_;
};

}  // namespace

void resample_on_cuda(std::span<const ResampleAxis, 3> axes, ResampleOperand layout,
                      const Tensor& input, const Tensor& result) {
  bool moves = std::all_of(axes.begin(), axes.end(), [](auto& axis) { return axis.moves(); });
  DType dtype = moves ? bits_of_size(input.itemsize()) : real_dtype(input.dtype());
  if (is_complex(input.dtype()) && (!moves || input.itemsize() == 16)) layout.pixel *= 2;
  DeviceTables tables(axes, result.device());
  ResampleArgs args{input.address(), result.address(),
                    layout.planes,   layout.pixel,
                    layout.planes,   {tables.tables[0], tables.tables[1], tables.tables[2]}};
  args.total *= layout.pixel;
  for (const ResampleAxis& axis : axes) args.total *= axis.out;
  cuda::DeviceGuard guard(result.device().index);
  Kernels& kernels = cuda::kernels_of<Kernels>(Variant{dtype, moves});
  kernels.resample.launch({cuda::blocks_for(args.total, kThreads)}, {kThreads}, 0, args);
}

}  // namespace rushlight
