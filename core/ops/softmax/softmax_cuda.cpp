// Owns the launches of softmax on CUDA: rows along memory or columns down it, see softmax.cu.
#include "core/ops/row_cuda.h"
#include "core/ops/softmax/softmax.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const softmax_cu;

namespace {

// What the kernels are compiled for.
struct Variant {
  SoftmaxKind kind;
  bool backward;
  DType input, result;

  int chunk() const { return chunk_of({input, result}); }
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

struct SoftmaxKernels {
  cuda::CudaModule module;
  cuda::CudaKernel along{module, "along"}, down{module, "down"};

  explicit SoftmaxKernels(const Variant& variant)
      : module(name(variant), softmax_cu, prelude(variant)) {}

  static std::string name(const Variant& variant) {
    return std::string(variant.kind == SoftmaxKind::softmax ? "softmax" : "log_softmax") +
           (variant.backward ? "_backward<" : "<") + device_type(variant.input) + ", " +
           device_type(variant.result) + ">";
  }
  static std::string prelude(const Variant& variant) {
    using cuda::define;
    return define("LOGS", variant.kind == SoftmaxKind::log_softmax ? "1" : "0") +
           define("BACKWARD", variant.backward ? "1" : "0") +
           define("INPUT", device_type(variant.input)) +
           define("RESULT", device_type(variant.result)) +
           define("COMPUTE", device_type(dtype_of_compute(compute_of(variant.result)))) +
           define("CHUNK", std::to_string(variant.chunk()));
  }
};

cuda::CudaKernelFamily family([] {
  for (SoftmaxKind kind : {SoftmaxKind::softmax, SoftmaxKind::log_softmax})
    for (bool backward : {false, true})
      for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
        cuda::kernels_of<SoftmaxKernels>(Variant{kind, backward, dtype, dtype});
});

// `y` is undefined in the forward pass.
void normalize(SoftmaxKind kind, const Tensor& x, const Tensor& y, AroundDim blocks,
               const Tensor& result) {
  Variant variant{kind, y.defined(), x.dtype(), result.dtype()};
  cuda::DeviceGuard guard(x.device().index);
  SoftmaxKernels& kernels = cuda::kernels_of<SoftmaxKernels>(variant);
  const void* first = x.address();
  const void* second = y.defined() ? y.address() : first;
  if (blocks.inner == 1) {
    int chunk = variant.chunk();
    bool vectors = blocks.length % chunk == 0 && starts_at_chunk(chunk, {&x, &y, &result});
    RowTeams teams(blocks.outer, blocks.length, chunk);
    kernels.along.launch({teams.blocks}, {unsigned(teams.threads)}, 0, first, second,
                         result.address(), blocks.outer, blocks.length, teams.team, vectors);
    return;
  }
  constexpr unsigned kThreads = 256;
  unsigned sharing = blocks.length >= 32 ? 8 : 1, columns_of_block = kThreads / sharing;
  int64_t columns = blocks.outer * blocks.inner;
  kernels.down.launch({cuda::blocks_for(columns, columns_of_block)}, {columns_of_block, sharing}, 0,
                      first, second, result.address(), columns, blocks.length, blocks.inner);
}

}  // namespace

void softmax_cuda(SoftmaxKind kind, const Tensor& input, AroundDim blocks, const Tensor& result) {
  normalize(kind, input, Tensor(), blocks, result);
}

void softmax_backward_cuda(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                           AroundDim blocks, const Tensor& grad_input) {
  normalize(kind, grad, to_dtype(result, grad.dtype()), blocks, grad_input);
}

}  // namespace rushlight
