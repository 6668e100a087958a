// Defines formulas on CUDA: a kernel is compiled for each combination of a formula with the dtypes
// that it meets, and kept for the life of the process.
#include "core/device/cuda_kernel_map.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/dims.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/pointwise_args.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const pointwise_cu;

namespace {

constexpr int kThreads = 256;  // of a block

// What a kernel is compiled for.
struct Variant {
  const Formula* formula;
  bool strided;
  DType compute, result;
  std::array<DType, kMaxOperands> operands{};

  friend auto operator<=>(const Variant&, const Variant&) = default;

  std::string types() const {
    std::string types;
    for (int k = 0; k < formula->counts.operands; ++k)
      types += (k ? ", " : "") + std::string(device_type(operands[size_t(k)]));
    return types;
  }
  std::string name() const {
    return formula->name + std::string("<") + types() + (strided ? ", strided" : "") + " -> " +
           device_type(compute) + " -> " + device_type(result) + ">";
  }
  std::string prelude() const {
    return cuda::define("FORMULA_PARAMS", formula->params) +
           cuda::define("FORMULA_EXPRESSION", formula->expression) +
           cuda::define("COMPUTE", device_type(compute)) + cuda::define("OPERANDS", types()) +
           cuda::define("RESULT", device_type(result)) + (strided ? cuda::define("STRIDED") : "");
  }
};

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel run{module, "run"};

  explicit Kernels(const Variant& variant)
      : module(variant.name(), pointwise_cu, variant.prelude()) {}
};

cuda::CudaKernel& kernel_of(const Variant& variant) {
  return cuda::kernels_of<Kernels>(variant).run;
}

// The variant in which all operands have one dtype, and the masks are bool.
Variant uniform_variant(const Formula& formula, DType dtype, bool strided) {
  Compute compute = compute_of(dtype);
  Variant variant{&formula, strided, dtype_of_compute(compute), dtype};
  for (int k = 0; k < formula.counts.operands; ++k)
    variant.operands[size_t(k)] = formula.counts.is_mask[k] ? DType::bool_ : dtype;
  switch (formula.loops[0]->stored[int(compute)]) {
    case Stored::same: break;
    case Stored::boolean: variant.result = DType::bool_; break;
    case Stored::real: variant.result = real_dtype(dtype);
  }
  return variant;
}

// What most programs use; the rest compiles when it is met.
void declare_usual_variants() {
  for (const Formula* formula : all_formulas()) {
    for (DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::int64}) {
      if (!formula->loops[0]->kernels[int(compute_of(dtype))].run) continue;
      kernel_of(uniform_variant(*formula, dtype, false));
      if (dtype == DType::float32) kernel_of(uniform_variant(*formula, dtype, true));
    }
  }
}
const cuda::CudaKernelFamily family(declare_usual_variants);

// One dim may serve for all lanes only if each vector of a lane starts at a multiple of its size.
bool is_aligned(const Tensor& tensor, size_t largest_item) {
  size_t vector = kVectorBytes / largest_item * tensor.itemsize();
  return reinterpret_cast<uintptr_t>(tensor.address()) % vector == 0;
}

// A 0-d CPU tensor as the formula reads it.
void write_number(const TileOperand& operand, char* to) {
  const Tensor& number = *operand.tensor;
  cast_loop(number.dtype(), operand.kernel_dtype)(number.data(), to, 1);
}

PointwiseLayout layout_of(const Tensor& result, std::span<const TileOperand> operands) {
  Shape strides[kMaxOperands + 1];
  for (size_t k = 0; k < operands.size(); ++k)
    strides[k] = broadcast_strides(*operands[k].tensor, result.sizes());
  strides[operands.size()] = result.strides();
  return kernel_layout<kMaxOperands + 1>(result.sizes(), {strides, operands.size() + 1});
}

}  // namespace

void run_cuda_loop(const Formula& formula, DType compute, const TileOperand& result,
                   std::span<const TileOperand> operands, const void* scalars) {
  const Tensor& out = *result.tensor;
  Variant variant{&formula, false, compute, out.dtype()};
  PointwiseArgs args;
  args.result = out.address();
  args.numel = out.numel();
  args.single = 0;
  bool in_order = out.is_dense();
  size_t largest = out.itemsize();
  for (size_t k = 0; k < operands.size(); ++k) {
    const Tensor& tensor = *operands[k].tensor;
    bool is_number = tensor.device().is_cpu();
    variant.operands[k] = is_number ? operands[k].kernel_dtype : tensor.dtype();
    largest = std::max(largest, dtype_size(variant.operands[k]));
    args.operands[k] = is_number ? nullptr : tensor.address();
    if (is_number) write_number(operands[k], args.numbers[k]);
    if (is_number || (tensor.numel() == 1 && args.numel != 1)) args.single |= 1u << k;
    else in_order &= same_order(tensor, out);
  }
  in_order &= is_aligned(out, largest);
  for (size_t k = 0; k < operands.size(); ++k)
    if (!(args.single >> k & 1)) in_order &= is_aligned(*operands[k].tensor, largest);
  size_t item = dtype_size(compute);
  for (int k = 0; k < formula.counts.scalars; ++k)
    std::memcpy(args.scalars[k], static_cast<const char*>(scalars) + size_t(k) * item, item);

  cuda::DeviceGuard guard(out.device().index);
  variant.strided = !in_order;
  cuda::CudaKernel& kernel = kernel_of(variant);
  if (in_order) {
    int64_t per_thread = int64_t(kVectorBytes / largest) * kVectors;
    kernel.launch({cuda::blocks_for(args.numel, kThreads * per_thread)}, {kThreads}, 0, args);
  } else {
    kernel.launch({cuda::blocks_for(args.numel, kThreads * kScattered)}, {kThreads}, 0, args,
                  layout_of(out, operands));
  }
}

}  // namespace rushlight
