// Owns the launches of batch_norm on CUDA, see batch_norm.cu.
#include "core/base/ceil_div.h"
#include "core/device/cuda_memory.h"
#include "core/ops/norm/norm.h"
#include "core/ops/operands.h"
#include "core/ops/row_cuda.h"

namespace rushlight {

extern const char* const batch_norm_cu;

namespace {

constexpr unsigned kThreads = 256;
constexpr size_t kMomentsNumbers = 3, kSumsNumbers = 2, kChangeNumbers = 4;

struct BatchNormKernels {
  cuda::CudaModule module;
  cuda::CudaKernel moments_of_planes{module, "moments_of_planes"},
      moments_of_columns{module, "moments_of_columns"}, sums_of_planes{module, "sums_of_planes"},
      sums_of_columns{module, "sums_of_columns"}, prepare_forward{module, "prepare_forward"},
      prepare_backward{module, "prepare_backward"}, apply{module, "apply"};

  explicit BatchNormKernels(DType input)
      : module(std::string("batch_norm<") + device_type(input) + ">", batch_norm_cu,
               prelude(input)) {}

  static std::string prelude(DType input) {
    using cuda::define;
    return define("INPUT", device_type(input)) +
           define("COMPUTE", device_type(compute_dtype(input))) +
           define("CHUNK", std::to_string(chunk_of({input})));
  }
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    cuda::kernels_of<BatchNormKernels>(dtype);
});

// How channels of planes are cut: into pieces that fill a GPU together with the other channels, and
// are short enough for one thread's sums to keep their digits. Lengths count units of elements.
struct PlanePieces {
  int64_t count, length;

  PlanePieces(const ChannelView& view, int unit) {
    constexpr int64_t kBlocks = 1024, kLeast = 8 * kThreads, kMost = 64 * kThreads;
    int64_t total = view.samples * view.inner / unit;
    length = ceil_div(total * view.channels, kBlocks);
    length = std::clamp<int64_t>(length, kLeast, kMost);
    length = std::max(length, (total + 65534) / 65535);  // what a grid takes
    count = ceil_div(total, length);
  }
};

// The launches of one call. `numbers` are those of each channel of a piece.
struct Run {
  BatchNormKernels& kernels;
  const Tensor& input;
  const ChannelView& view;
  int chunk;
  bool by_columns, vectors;
  size_t item;

  Run(const Tensor& x, const ChannelView& v, const Tensor& grad, const Tensor& output)
      : kernels(cuda::kernels_of<BatchNormKernels>(x.dtype())),
        input(x),
        view(v),
        chunk(chunk_of({x.dtype()})),
        by_columns(v.by_columns),
        vectors((by_columns ? v.channels : v.inner) % chunk == 0 &&
                starts_at_chunk(chunk, {&x, &grad, &output})),
        item(dtype_size(compute_dtype(x.dtype()))) {}

  // Calls take(grid, block, length of a piece) to fill the pieces, then merge(pieces, count).
  template <class Take, class Merge>
  void reduce(size_t numbers, Take&& take, Merge&& merge) const {
    ColumnPieces columns(view.inner, view.channels);
    PlanePieces planes(view, vectors ? chunk : 1);
    int64_t count = by_columns ? columns.count : planes.count;
    cuda::CudaBuffer pieces(numbers * size_t(count * view.channels) * item, input.device().index);
    if (by_columns)
      take({columns.blocks, unsigned(count)}, ColumnPieces::block(), columns.rows, pieces.data());
    else take({unsigned(view.channels), unsigned(count)}, {kThreads}, planes.length, pieces.data());
    merge(pieces.data(), count);
  }

  void apply(const Tensor& grad, const cuda::CudaBuffer& changes, const Tensor& output) const {
    unsigned blocks = cuda::blocks_for(input.numel(), int64_t(kThreads) * (vectors ? chunk : 1));
    kernels.apply.launch({blocks}, {kThreads}, 0, address_or_null(grad), input.address(),
                         changes.data(), output.address(), input.numel(), view.channels,
                         by_columns ? int64_t(1) : view.inner, vectors);
  }

  unsigned channel_blocks() const {
    return cuda::blocks_for(view.channels, ColumnPieces::kColumns);
  }
};

}  // namespace

void batch_norm_cuda(const Tensor& input, const ChannelView& view, const Tensor& weight,
                     const Tensor& bias, const Tensor& running_mean, const Tensor& running_var,
                     bool training, double momentum, double eps, const Tensor& output,
                     const Tensor& mean, const Tensor& rstd) {
  DType dtype = compute_dtype(input.dtype());
  Tensor w = prepared(weight, dtype), b = prepared(bias, dtype);
  Tensor means = prepared(running_mean, dtype), vars = prepared(running_var, dtype);
  cuda::DeviceGuard guard(input.device().index);
  Run run(input, view, Tensor(), output);
  cuda::CudaBuffer changes(kChangeNumbers * size_t(view.channels) * run.item, input.device().index);
  auto prepare = [&](void* pieces, int64_t count) {
    run.kernels.prepare_forward.launch({run.channel_blocks()}, ColumnPieces::block(), 0, pieces,
                                       count, view.channels, address_or_null(w), address_or_null(b),
                                       address_or_null(means), address_or_null(vars), momentum, eps,
                                       mean.address(), rstd.address(), changes.data());
  };
  if (!training) {
    prepare(nullptr, 0);
  } else {
    run.reduce(
        kMomentsNumbers,
        [&](cuda::Dim3 grid, cuda::Dim3 block, int64_t length, void* pieces) {
          if (run.by_columns)
            run.kernels.moments_of_columns.launch(grid, block, 0, input.address(), pieces,
                                                  view.inner, view.channels, length);
          else
            run.kernels.moments_of_planes.launch(grid, block, 0, input.address(), pieces,
                                                 view.samples, view.channels, view.inner, length,
                                                 run.vectors);
        },
        prepare);
    auto keep = [](const Tensor& running, const Tensor& moved) {
      if (!running.defined()) return;
      if (!moved.is(running)) copy_into(running, moved);
      running.storage()->bump_version("batch_norm");
    };
    keep(running_mean, means);
    keep(running_var, vars);
  }
  run.apply(Tensor(), changes, output);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cuda(const Tensor& grad, const Tensor& input,
                                                            const ChannelView& view,
                                                            const Tensor& mean, const Tensor& rstd,
                                                            const Tensor& weight, bool training) {
  DType dtype = compute_dtype(input.dtype());
  Device device = input.device();
  Tensor w = prepared(weight, dtype);
  Tensor grad_input = empty_strided(input.sizes(), input.strides(), input.dtype(), device);
  Tensor grad_weight = empty(Shape{view.channels}, dtype, device);
  Tensor grad_bias = empty(Shape{view.channels}, dtype, device);
  cuda::DeviceGuard guard(device.index);
  Run run(input, view, grad, grad_input);
  cuda::CudaBuffer changes(kChangeNumbers * size_t(view.channels) * run.item, device.index);
  run.reduce(
      kSumsNumbers,
      [&](cuda::Dim3 grid, cuda::Dim3 block, int64_t length, void* pieces) {
        if (run.by_columns)
          run.kernels.sums_of_columns.launch(grid, block, 0, grad.address(), input.address(),
                                             mean.address(), pieces, view.inner, view.channels,
                                             length);
        else
          run.kernels.sums_of_planes.launch(grid, block, 0, grad.address(), input.address(),
                                            mean.address(), pieces, view.samples, view.channels,
                                            view.inner, length, run.vectors);
      },
      [&](void* pieces, int64_t count) {
        run.kernels.prepare_backward.launch(
            {run.channel_blocks()}, ColumnPieces::block(), 0, pieces, count, view.channels,
            mean.address(), rstd.address(), address_or_null(w),
            training ? view.samples * view.inner : int64_t(0), grad_weight.address(),
            grad_bias.address(), changes.data());
      });
  run.apply(grad, changes, grad_input);
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace rushlight
