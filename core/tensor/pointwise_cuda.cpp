// Defines formulas on CUDA: a kernel is compiled for each combination of a formula with the dtypes
// that it meets, and kept for the life of the process.
#include <map>
#include <mutex>

#include "core/device/cuda_kernel.h"
#include "core/tensor/dims.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/pointwise_args.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const pointwise_cu;

namespace {

constexpr int kThreads = 256;  // of a block

const char* device_type(DType dtype) {
  constexpr const char* kNames[] = {"bool",    "uint8_t",        "int8_t",         "uint16_t",
                                    "int16_t", "uint32_t",       "int32_t",        "uint64_t",
                                    "int64_t", "Half",           "BFloat16",       "float",
                                    "double",  "Complex<float>", "Complex<double>"};
  static_assert(std::size(kNames) == kDTypeCount);
  return kNames[int(dtype)];
}

// What a kernel is compiled for.
struct Variant {
  const Formula* formula;
  bool strided;
  DType compute, result;
  std::array<DType, kMaxOperands> operands{};

  friend auto operator<=>(const Variant&, const Variant&) = default;
};

struct PointwiseKernel {
  cuda::CudaModule module;
  cuda::CudaKernel kernel{module, "run"};

  explicit PointwiseKernel(const Variant& variant)
      : module(name(variant), pointwise_cu, prelude(variant)) {}

  static std::string operands(const Variant& variant) {
    std::string list;
    for (int k = 0; k < variant.formula->counts.operands; ++k)
      list += (k ? ", " : "") + std::string(device_type(variant.operands[size_t(k)]));
    return list;
  }
  static std::string name(const Variant& variant) {
    return std::string(variant.formula->name) + "(" + operands(variant) + ") -> " +
           device_type(variant.result) + (variant.strided ? ", strided" : "");
  }
  static std::string prelude(const Variant& variant) {
    const Formula& formula = *variant.formula;
    auto define = [](const char* name, const std::string& text) {
      return "#define " + std::string(name) + " " + text + "\n";
    };
    return define("FORMULA_PARAMS", formula.params) +
           define("FORMULA_EXPRESSION", formula.expression) +
           define("COMPUTE", device_type(variant.compute)) + define("OPERANDS", operands(variant)) +
           define("RESULT", device_type(variant.result)) +
           (variant.strided ? define("STRIDED", "") : "");
  }
};

cuda::CudaKernel& kernel_of(const Variant& variant) {
  static auto* mutex = new std::mutex;
  static auto* kernels = new std::map<Variant, PointwiseKernel>;
  std::lock_guard lock(*mutex);
  return kernels->try_emplace(variant, variant).first->second.kernel;
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
      if (!formula->loops[0]->run[int(compute_of(dtype))]) continue;
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
  Shape sizes = result.sizes(), strides[kMaxOperands + 1];
  Shape* lanes[kMaxOperands + 1];
  lanes[0] = &(strides[operands.size()] = result.strides());
  for (size_t k = 0; k < operands.size(); ++k)
    lanes[k + 1] = &(strides[k] = broadcast_strides(*operands[k].tensor, result.sizes()));
  join_dims(sizes, {lanes, operands.size() + 1});
  CHECK(sizes.size() <= kMaxKernelDims, ErrorKind::kNotImplemented, "a CUDA kernel walks at most ",
        kMaxKernelDims, " dims that cannot be joined, but these tensors have ", sizes.size(),
        ". Call contiguous() on them first.");
  PointwiseLayout layout;
  layout.dims = int32_t(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    layout.sizes[d] = sizes[d];
    for (size_t k = 0; k <= operands.size(); ++k) layout.strides[k][d] = strides[k][d];
  }
  return layout;
}

unsigned blocks_for(int64_t numel, int64_t per_block) {
  int64_t blocks = (numel + per_block - 1) / per_block;
  CHECK(blocks < int64_t(1) << 31, "a tensor of ", numel, " elements is too large for one kernel.");
  return unsigned(blocks);
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
    kernel.launch({blocks_for(args.numel, kThreads * per_thread)}, {kThreads}, 0, args);
  } else {
    kernel.launch({blocks_for(args.numel, kThreads)}, {kThreads}, 0, args,
                  layout_of(out, operands));
  }
}

}  // namespace rushlight
