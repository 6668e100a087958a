// Defines the products of matrices on CUDA: cuBLASLt where it has the code, else our kernels.
#include <bit>
#include <limits>

#include "core/device/cublaslt.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/ops/matmul/gemm_args.h"
#include "core/ops/matmul/gemm_cuda.h"
#include "core/ops/matmul/matmul.h"
#include "core/tensor/cuda_types.h"

namespace rushlight {

extern const char* const gemm_cu;

namespace {

using cuda::CudaKernel, cuda::CudaModule;

// What kernels are compiled for.
struct Variant {
  DType dtype;
  bool left_inner, right_inner, small_tiles;

  friend auto operator<=>(const Variant&, const Variant&) = default;
};

struct Kernels {
  CudaModule module;
  CudaKernel tiles{module, "tiles"};
  CudaKernel vectors{module, "vectors"}, add_pieces{module, "add_pieces"};

  explicit Kernels(const Variant& variant)
      : module(name(variant), gemm_cu,
               cuda::define("ELEMENT", device_type(variant.dtype)) +
                   cuda::define("LEFT_INNER", variant.left_inner ? "1" : "0") +
                   cuda::define("RIGHT_INNER", variant.right_inner ? "1" : "0") +
                   (variant.small_tiles ? cuda::define("SMALL_TILES") : "")) {}

  static std::string name(const Variant& variant) {
    return "gemm<" + std::string(device_type(variant.dtype)) + "," +
           (variant.left_inner ? "n" : "t") + (variant.right_inner ? "t" : "n") +
           (variant.small_tiles ? ",small>" : ",large>");
  }
};

// Signed and unsigned integers of one size multiply alike.
DType gemm_dtype(DType dtype) {
  if (is_differentiable(dtype)) return dtype;
  constexpr DType kBySize[] = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  return kBySize[std::countr_zero(dtype_size(dtype))];
}

// cuBLASLt counts batches in 32 bits, and takes none of nothing.
bool run_cublaslt(const MatrixProduct& p) {
  if (p.k == 0 || p.batch > std::numeric_limits<int32_t>::max()) return false;
  cublaslt::Gemm gemm{p.dtype,
                      p.batch,
                      p.m,
                      p.n,
                      p.k,
                      {p.a.layout.transposed, p.a.layout.stride, p.a_step},
                      {p.b.layout.transposed, p.b.layout.stride, p.b_step}};
  return cublaslt::gemm(gemm, p.alpha, p.a.data, p.b.data, p.bias, p.beta, p.c);
}

cuda::CudaKernelFamily family([] {
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    for (bool left_inner : {true, false})
      for (bool right_inner : {false, true})
        for (bool small_tiles : {true, false})
          cuda::kernels_of<Kernels>(Variant{dtype, left_inner, right_inner, small_tiles});
  for (DType dtype : {DType::uint8, DType::uint16, DType::uint32, DType::uint64, DType::complex64,
                      DType::complex128})
    cuda::kernels_of<Kernels>(Variant{dtype, true, false, true});
});

}  // namespace

void multiply_on_cuda(const MatrixProduct& p) {
  // A block for each element reads long vectors of the inner index, which lie side by side.
  bool is_vector = (p.m == 1 || p.n == 1) && (p.m == 1 || !p.a.layout.transposed) &&
                   (p.n == 1 || p.b.layout.transposed) && p.k >= kGemmThreads;
  if (!is_vector && run_cublaslt(p)) return;
  GemmArgs args{.a = p.a.data,
                .b = p.b.data,
                .bias = p.bias,
                .c = p.c,
                .partial = nullptr,
                .m = p.m,
                .n = p.n,
                .k = p.k,
                .a_row = p.a.layout.row_stride(),
                .a_column = p.a.layout.column_stride(),
                .b_row = p.b.layout.row_stride(),
                .b_column = p.b.layout.column_stride(),
                .a_step = p.a_step,
                .b_step = p.b_step,
                .alpha = p.alpha,
                .beta = p.beta,
                .grid = {}};
  GemmSize size{p.m, p.n, p.k, p.batch};
  GemmPlan plan = is_vector ? plan_gemm_blocks(size, p.dtype) : plan_gemm(size, p.dtype);
  Kernels& kernels = cuda::kernels_of<Kernels>(Variant{gemm_dtype(p.dtype), !p.a.layout.transposed,
                                                       p.b.layout.transposed, plan.small_tiles});
  args.grid = plan.grid;
  cuda::CudaBuffer partial(plan.partial_bytes, cuda::current_device());
  args.partial = partial.data();
  CudaKernel& kernel = is_vector ? kernels.vectors : kernels.tiles;
  kernel.launch({cuda::blocks_for(args.grid.blocks(), 1)}, {kGemmThreads}, 0, args);
  if (args.grid.pieces == 1) return;
  kernels.add_pieces.launch({cuda::blocks_for(p.batch * p.m * p.n, kGemmThreads)}, {kGemmThreads},
                            0, args);
}

}  // namespace rushlight
