// Owns the launches of layer_norm and rms_norm on CUDA, see layer_norm.cu.
#include "core/device/cuda_memory.h"
#include "core/ops/norm/norm.h"
#include "core/ops/operands.h"
#include "core/ops/row_cuda.h"

namespace rushlight {

extern const char* const layer_norm_cu;

namespace {

// What the kernels are compiled for.
struct Variant {
  DType input, weight;

  int chunk() const { return chunk_of({input, weight}); }
  DType compute() const { return compute_dtype(input); }
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

struct LayerNormKernels {
  cuda::CudaModule module;
  cuda::CudaKernel forward{module, "forward"}, backward{module, "backward"},
      sum_pieces{module, "sum_pieces"}, merge_pieces{module, "merge_pieces"};

  explicit LayerNormKernels(const Variant& variant)
      : module(name(variant), layer_norm_cu, prelude(variant)) {}

  static std::string name(const Variant& variant) {
    return std::string("layer_norm<") + device_type(variant.input) + ", " +
           device_type(variant.weight) + ">";
  }
  static std::string prelude(const Variant& variant) {
    using cuda::define;
    return define("INPUT", device_type(variant.input)) +
           define("WEIGHT", device_type(variant.weight)) +
           define("COMPUTE", device_type(variant.compute())) +
           define("CHUNK", std::to_string(variant.chunk()));
  }
};

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    cuda::kernels_of<LayerNormKernels>(Variant{dtype, dtype});
  for (DType dtype : {DType::float16, DType::bfloat16})
    cuda::kernels_of<LayerNormKernels>(Variant{dtype, DType::float32});
});

}  // namespace

void layer_norm_cuda(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias,
                     double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  if (input.numel() == 0) return;
  Variant variant{input.dtype(), weight.defined() ? weight.dtype()
                                 : bias.defined() ? bias.dtype()
                                                  : input.dtype()};
  Tensor w = prepared(weight, variant.weight), b = prepared(bias, variant.weight);
  cuda::DeviceGuard guard(input.device().index);
  int64_t rows = input.numel() / n;
  int chunk = variant.chunk();
  RowTeams teams(rows, n, chunk);
  bool vectors = n % chunk == 0 && starts_at_chunk(chunk, {&input, &output, &w, &b});
  cuda::kernels_of<LayerNormKernels>(variant).forward.launch(
      {teams.blocks}, {unsigned(teams.threads)}, 0, input.address(), address_or_null(w),
      address_or_null(b), eps, output.address(), address_or_null(mean), rstd.address(), rows, n,
      teams.team, vectors);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_cuda(const Tensor& grad, const Tensor& input,
                                                            int64_t n, const Tensor& mean,
                                                            const Tensor& rstd,
                                                            const Tensor& weight, bool want_weight,
                                                            bool want_bias) {
  Variant variant{input.dtype(), weight.defined() ? weight.dtype() : input.dtype()};
  Device device = input.device();
  Tensor w = prepared(weight, variant.weight),
         grad_input = empty(input.sizes(), input.dtype(), device);
  auto sums = [&](bool wanted) {
    return wanted ? empty(Shape{n}, variant.compute(), device) : Tensor();
  };
  Tensor grad_weight = sums(want_weight), grad_bias = sums(want_bias);
  cuda::DeviceGuard guard(device.index);
  LayerNormKernels& kernels = cuda::kernels_of<LayerNormKernels>(variant);
  int64_t rows = n ? input.numel() / n : 0;
  if (rows > 0) {
    int chunk = variant.chunk();
    RowTeams teams(rows, n, chunk);
    bool vectors = n % chunk == 0 && starts_at_chunk(chunk, {&grad, &input, &grad_input, &w});
    kernels.backward.launch({teams.blocks}, {unsigned(teams.threads)}, 0, grad.address(),
                            input.address(), address_or_null(w), address_or_null(mean),
                            rstd.address(), grad_input.address(), rows, n, teams.team, vectors);
  }
  if (want_weight || want_bias) {
    ColumnPieces split(rows, n);
    cuda::CudaBuffer pieces(size_t(2 * split.count * n) * dtype_size(variant.compute()),
                            device.index);
    kernels.sum_pieces.launch({split.blocks, unsigned(split.count)}, split.block(), 0,
                              grad.address(), input.address(), address_or_null(mean),
                              rstd.address(), pieces.data(), rows, n, split.rows);
    kernels.merge_pieces.launch({split.blocks}, split.block(), 0, pieces.data(), split.count,
                                address_or_null(grad_weight), address_or_null(grad_bias), n);
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace rushlight
