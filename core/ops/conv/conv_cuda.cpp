// Defines the kernels of convolution on CUDA: cuDNN where it is there and wanted, else products of
// which one factor, the windows of the images, is never written down.
#include <limits>

#include "core/autograd/needs.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/device/cudnn.h"
#include "core/ops/conv/conv_args.h"
#include "core/ops/conv/conv_arguments.h"
#include "core/ops/matmul/gemm_cuda.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const conv_cu;

namespace {

using cuda::CudaKernel, cuda::CudaModule;
using cudnn::Kind;
using onednn::ImageLayout;

// With fewer channels in a group, tiles of a product would be empty for the most part.
constexpr int64_t kFewChannels = 4;

// How many elements are 16 bytes.
int64_t vector_of(DType dtype) { return int64_t(16 / dtype_size(dtype)); }

// What kernels are compiled for.
struct Variant {
  Kind kind;
  DType dtype;
  int dims;
  bool channels_last, small_tiles;
  bool tensor_cores = false;  // which round float32 to TF32
  bool vectors = false;       // whether neighbors may be read as vectors of 16 bytes

  friend auto operator<=>(const Variant&, const Variant&) = default;
};

struct Kernels {
  CudaModule module;
  CudaKernel tiles{module, "tiles"}, few_channels{module, "few_channels"};
  CudaKernel add_pieces{module, "add_pieces"};  // for the weight's gradient only

  explicit Kernels(const Variant& variant)
      : module(name(variant), conv_cu,
               cuda::define(kMacros[int(variant.kind)]) +
                   cuda::define("ELEMENT", device_type(variant.dtype)) +
                   cuda::define("DIMS", std::to_string(variant.dims)) +
                   cuda::define("CHANNELS_LAST", variant.channels_last ? "true" : "false") +
                   cuda::define("TENSOR_CORES", variant.tensor_cores ? "true" : "false") +
                   cuda::define("RUN",
                                std::to_string(variant.vectors ? vector_of(variant.dtype) : 1)) +
                   (variant.small_tiles ? cuda::define("SMALL_TILES") : "")) {}

  static std::string name(const Variant& variant) {
    constexpr const char* kNames[] = {"conv", "conv_input", "conv_weight"};
    return std::string(kNames[int(variant.kind)]) + std::to_string(variant.dims) + "d<" +
           device_type(variant.dtype) +
           (variant.tensor_cores && variant.dtype == DType::float32 ? ",tf32" : "") +
           (variant.channels_last ? ",last" : ",first") + (variant.vectors ? ",vectors" : "") +
           (variant.small_tiles ? ",small>" : ",large>");
  }
  static constexpr const char* kMacros[] = {"FORWARD", "INPUT_GRADIENT", "WEIGHT_GRADIENT"};
};

cuda::CudaKernelFamily family([] {
  for (Kind kind : {Kind::forward, Kind::input_gradient, Kind::weight_gradient})
    for (bool small_tiles : {true, false}) {
      auto add = [&](DType dtype, int dims, bool channels_last, bool tensor_cores, bool vectors) {
        cuda::kernels_of<Kernels>(
            Variant{kind, dtype, dims, channels_last, small_tiles, tensor_cores, vectors});
      };
      for (bool channels_last : {false, true}) {
        add(DType::float32, 2, channels_last, false, false);
        bool reads_vectors =
            kind == Kind::forward || (kind == Kind::input_gradient && channels_last);
        for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
          add(dtype, 2, channels_last, true, reads_vectors);
      }
      add(DType::float32, 1, false, false, false);
    }
});

int32_t narrow(int64_t number) {
  CHECK(number <= std::numeric_limits<int32_t>::max(),
        "a CUDA kernel of convolution takes at most ",
        "2^31 - 1 points of images, and as many elements in a filter, but these have ", number,
        ". Make the batch smaller.");
  return int32_t(number);
}

// Of a tensor (N, C, ...) in three dims.
ConvImages images_of(const Tensor& tensor) {
  ConvImages images{tensor.address(), tensor.stride(0), tensor.stride(1), {}, {1, 1, 1}};
  for (int64_t d = 2, to = 5 - tensor.dim(); d < tensor.dim(); ++d, ++to) {
    images.at[to] = tensor.stride(d);
    images.size[to] = narrow(tensor.size(d));
  }
  return images;
}

class CudaConvolution {
 public:
  // `input`, `weight` and `output` are operands or results. The weight is dense in its layout.
  CudaConvolution(Kind kind, const Convolution& conv, const Tensor& input, const Tensor& weight,
                  const Tensor& output)
      : conv_(in_three_dims(conv)),
        guard_(input.device().index),
        variant_{kind, conv.dtype, conv.dims, conv.layout == ImageLayout::channels_last, true},
        tensor_cores_(is_half(conv.dtype) || cudnn::rounds_factors(conv)) {
    args_.input = images_of(input);
    args_.output = images_of(output);
    args_.weight = weight.address();
    bool last = weight.dim() > 2 && conv.weight_layout == ImageLayout::channels_last;
    int64_t taps = conv_.taps();
    args_.groups = int32_t(conv.groups);
    args_.in_channels = narrow(conv.in_channels / conv.groups);
    args_.out_channels = narrow(conv.out_channels / conv.groups);
    args_.taps = narrow(taps);
    args_.weight_out = args_.in_channels * taps;
    args_.weight_in = last ? 1 : taps;
    args_.weight_tap = last ? args_.in_channels : 1;
    const ConvImages& walked = kind == Kind::input_gradient ? args_.input : args_.output;
    int64_t channels = kind == Kind::input_gradient ? args_.out_channels : args_.in_channels;
    narrow(channels * taps);
    int64_t points = conv.batch;
    for (size_t d = 0; d < 3; ++d) {
      points = narrow(points * walked.size[d]);
      narrow(conv_.size[d] + conv_.padding_before[d] + conv_.padding_after[d]);
      args_.stride[d] = int32_t(conv_.stride[d]);
      args_.dilation[d] = int32_t(conv_.dilation[d]);
      args_.padding[d] = int32_t(conv_.padding_before[d]);
      args_.by_size[d] = Divider(walked.size[d]);
      args_.by_kernel[d] = Divider(conv_.kernel[d]);
      args_.by_stride[d] = Divider(conv_.stride[d]);
    }
    args_.points = int32_t(points);
    args_.by_channels = Divider(std::max<int64_t>(1, channels));
    args_.by_taps = Divider(taps);
  }

  void set_bias(const Tensor& bias) { args_.bias = bias.defined() ? bias.address() : nullptr; }

  // Makes images, whose groups have `channels`, of others whose groups have `inner`.
  void make_images(int64_t channels, int64_t inner) {
    GemmSize size{channels, args_.points, inner * args_.taps, conv_.groups};
    if (channels <= kFewChannels) {
      unsigned blocks = cuda::blocks_for(size.m * size.n * size.batch, kGemmThreads);
      kernels().few_channels.launch({blocks}, {kGemmThreads}, 0, args_);
      return;
    }
    run_tiles(plan_gemm(size, conv_.dtype, 1));
  }

  void make_weight() {
    GemmSize size{args_.out_channels, int64_t(args_.in_channels) * args_.taps, args_.points,
                  conv_.groups};
    bool few_channels = size.m <= kFewChannels;
    GemmPlan plan =
        few_channels ? plan_gemm_blocks(size, conv_.dtype) : plan_gemm(size, conv_.dtype);
    cuda::CudaBuffer partial(plan.partial_bytes, cuda::current_device());
    args_.partial = partial.data();
    if (few_channels) {
      args_.grid = plan.grid;
      kernels().few_channels.launch({cuda::blocks_for(plan.grid.blocks(), 1)}, {kGemmThreads}, 0,
                                    args_);
    } else {
      run_tiles(plan);
    }
    if (plan.grid.pieces == 1) return;
    unsigned blocks = cuda::blocks_for(size.m * size.n * size.batch, kGemmThreads);
    kernels().add_pieces.launch({blocks}, {kGemmThreads}, 0, args_);
  }

 private:
  Kernels& kernels() { return cuda::kernels_of<Kernels>(variant_); }
  void run_tiles(const GemmPlan& plan) {
    args_.grid = plan.grid;
    variant_.small_tiles = plan.small_tiles;
    variant_.tensor_cores = tensor_cores_;
    variant_.vectors = tensor_cores_ && reads_vectors();
    kernels().tiles.launch({cuda::blocks_for(plan.grid.blocks(), 1)}, {kGemmThreads}, 0, args_);
  }

  // Whether each operand whose neighbors lie side by side has them in multiples of a vector.
  bool reads_vectors() const {
    auto fits = [&](const void* data, auto... counts) {
      return uintptr_t(data) % 16 == 0 && ((counts % vector_of(variant_.dtype) == 0) && ...);
    };
    auto are_vectors = [&](const ConvImages& images, int64_t channels) {
      return images.channel == 1 &&
             fits(images.data, channels, images.batch, images.at[0], images.at[1], images.at[2]);
    };
    switch (variant_.kind) {
      case Kind::forward:
        if (!fits(args_.weight, args_.weight_out)) return false;
        return !variant_.channels_last ||
               (args_.weight_in == 1 && are_vectors(args_.input, args_.in_channels));
      case Kind::input_gradient:
        return variant_.channels_last && are_vectors(args_.output, args_.out_channels);
      default: return false;
    }
  }

  Convolution conv_;
  cuda::DeviceGuard guard_;
  Variant variant_;
  bool tensor_cores_;
  ConvArgs args_{};
};

// Whether cuDNN made the result, which lies in the layout of conv.
bool run_on_cudnn(Kind kind, const Convolution& conv, const Tensor& input, const Tensor& weight,
                  const Tensor& output) {
  bool is_empty = input.numel() == 0 || weight.numel() == 0 || output.numel() == 0;
  if (is_empty || !cudnn::is_wanted(conv)) return false;
  cuda::DeviceGuard guard(input.device().index);
  Tensor x = in_layout(input, conv.layout, conv.dims);
  Tensor w = in_layout(weight, conv.layout, conv.dims);
  Tensor y = in_layout(output, conv.layout, conv.dims);
  ASSERT(kind == Kind::forward          ? y.is(output)
         : kind == Kind::input_gradient ? x.is(input)
                                        : w.is(weight));  // else a copy would be written
  return cudnn::convolve(kind, conv, x.address(), w.address(), y.address());
}

}  // namespace

void conv_forward_on_cuda(const Convolution& conv, const Tensor& input, const Tensor& weight,
                          const Tensor& bias, const Tensor& output) {
  if (run_on_cudnn(Kind::forward, conv, input, weight, output)) {
    if (bias.defined()) needs::add_(output, conv_bias_column(bias, output));
    return;
  }
  Tensor filters = in_layout(weight, conv.weight_layout, conv.dims);
  Tensor numbers = bias.defined() ? to_contiguous(bias) : bias;
  CudaConvolution run(Kind::forward, conv, input, filters, output);
  run.set_bias(numbers);
  run.make_images(conv.out_channels / conv.groups, conv.in_channels / conv.groups);
}

void conv_backward_input_on_cuda(const Convolution& conv, const Tensor& grad, const Tensor& weight,
                                 const Tensor& grad_input) {
  if (run_on_cudnn(Kind::input_gradient, conv, grad_input, weight, grad)) return;
  Tensor filters = in_layout(weight, conv.weight_layout, conv.dims);
  CudaConvolution run(Kind::input_gradient, conv, grad_input, filters, grad);
  run.make_images(conv.in_channels / conv.groups, conv.out_channels / conv.groups);
}

void conv_backward_weight_on_cuda(const Convolution& conv, const Tensor& input, const Tensor& grad,
                                  const Tensor& grad_weight) {
  if (run_on_cudnn(Kind::weight_gradient, conv, input, grad_weight, grad)) return;
  CudaConvolution(Kind::weight_gradient, conv, input, grad_weight, grad).make_weight();
}

}  // namespace rushlight
