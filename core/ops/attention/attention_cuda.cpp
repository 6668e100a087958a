// Owns the launches of attention on CUDA, see attention.cu.
#include <algorithm>

#include "core/base/ceil_div.h"
#include "core/device/cuda.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/attention_args.h"
#include "core/ops/operands.h"
#include "core/ops/random/random_draw.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/dims.h"

namespace rushlight {

extern const char* const attention_cu;

namespace {

// What every device of compute capability 8.0 and more gives to a block that asks for it.
constexpr int kSharedBytes = 96 << 10;
constexpr int kStep = 16;  // tiles have whole multiples of so many rows and features

// What the kernels are compiled for; `fixed` and `inner` are the rows of their tiles, 0 where
// nothing fits.
struct Variant {
  DType item;
  bool backward, drops;
  int head;
  bool tensor_cores = false;
  int fixed = 0, inner = 0;

  Variant(DType item_in, bool backward_in, bool drops_in, int64_t features)
      : item(item_in),
        backward(backward_in),
        drops(drops_in),
        head(int(std::clamp<int64_t>(ceil_div(features, kStep), 1, kSharedBytes)) * kStep) {
    // Sums of longer rows would not fit in the registers of a warp.
    constexpr int kLongest = 128;
    if (is_half(item) && head <= kLongest) {
      tensor_cores = true;
      fixed = 64;
      inner = backward ? 32 : 64;
      return;
    }
    // A thread reads its part of a row of scores as one vector.
    for (fixed = kStep * kAttentionVector / tile_size(); fixed >= kStep; fixed /= 2) {
      inner = fixed;
      if (shared_bytes() <= kSharedBytes) return;
    }
    fixed = inner = 0;
  }

  DType compute() const { return compute_dtype(item); }
  // Of an element of the tiles.
  int tile_size() const { return int(dtype_size(tensor_cores ? item : compute())); }
  int vector() const { return kAttentionVector / tile_size(); }
  unsigned threads() const { return tensor_cores ? unsigned(fixed) * 2 : 256; }
  int64_t shared_bytes() const {
    int64_t line = attention_line(head, tile_size());
    int64_t elements = (backward ? 2 : 1) * (fixed + inner) * line;
    if (!tensor_cores) elements += fixed * attention_line(inner, tile_size());
    return elements * tile_size();
  }
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

std::string name_of(const Variant& v) {
  return std::string(v.backward ? "attention_backward<" : "attention<") + device_type(v.item) +
         ", " + std::to_string(v.head) + (v.drops ? ", drops>" : ">");
}

std::string prelude_of(const Variant& v) {
  using cuda::define;
  auto number = [](const char* name, int n) { return define(name, std::to_string(n)); };
  DType compute = v.compute();
  return define("ITEM", device_type(v.item)) + define("COMPUTE", device_type(compute)) +
         number("CHUNK", kAttentionVector / int(dtype_size(compute))) + number("HEAD", v.head) +
         number("FIXED", v.fixed) + number("INNER", v.inner) + number("MMA", v.tensor_cores) +
         number("DROPS", v.drops) + number("BACKWARD", v.backward);
}

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel attend{module, "attend"};  // forward
  cuda::CudaKernel dots{module, "dots"}, query_grads{module, "query_grads"},
      key_grads{module, "key_grads"};  // backward

  explicit Kernels(const Variant& v) : module(name_of(v), attention_cu, prelude_of(v)) {}
};

cuda::CudaKernelFamily family([] {
  for (bool backward : {false, true}) {
    for (DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      for (bool drops : {false, true})
        cuda::kernels_of<Kernels>(Variant(dtype, backward, drops, 64));
    for (DType dtype : {DType::float16, DType::bfloat16})
      cuda::kernels_of<Kernels>(Variant(dtype, backward, false, 128));
  }
});

Variant variant_of(const Attention& a, bool backward) {
  return {a.query.dtype(), backward, a.dropout_p > 0, std::max(a.query.size(-1), a.value.size(-1))};
}

// Arguments, and operand by operand where its rows lie.
class Arguments {
 public:
  Arguments(const Attention& a, const Variant& variant, const Tensor& output,
            const Tensor& logsumexp)
      : a_(a), vector_(variant.vector()) {
    args_.logsumexp = logsumexp.address();
    args_.items = a.items();
    args_.queries = a.queries();
    args_.keys = a.keys();
    args_.features = a.query.size(-1);
    args_.value_features = a.value.size(-1);
    args_.counters_per_row = a.counters_per_row();
    args_.draw = a.draw;
    args_.scale = a.scale;
    args_.kept_scale = kept_scale(a.dropout_p);
    args_.threshold = dropout_threshold(a.dropout_p);
    args_.is_causal = a.is_causal;
    add(args_.query, a.query, args_.queries, args_.features);
    add(args_.key, a.key, args_.keys, args_.features);
    add(args_.value, a.value, args_.keys, args_.value_features);
    add(args_.output, output, args_.queries, args_.value_features);
    add(args_.mask, a.mask, args_.queries, args_.keys);
    args_.mask_is_bool = a.mask.defined() && is_bool(a.mask.dtype());
  }
  void add_grads(const Tensor& grad, void* dots, const AttentionGrads& grads) {
    add(args_.grad, grad, args_.queries, args_.value_features);
    add(args_.grad_query, grads.query, args_.queries, args_.features);
    add(args_.grad_key, grads.key, args_.keys, args_.features);
    add(args_.grad_value, grads.value, args_.keys, args_.value_features);
    args_.dots = dots;
    args_.grad_mask = grads.mask.defined() ? grads.mask.address() : nullptr;
  }
  // Once all operands are there: dims that all of them walk as one are joined.
  const AttentionArgs& joined() {
    // Items are numbered in row-major order.
    Shape sizes = a_.batch, numbers = contiguous_strides(sizes);
    std::vector<Shape*> lanes{&numbers};
    for (Shape& strides : strides_) lanes.push_back(&strides);
    join_dims(sizes, lanes);
    CHECK(sizes.size() <= kAttentionDims, ErrorKind::kNotImplemented,
          "a CUDA kernel walks at most ", kAttentionDims,
          " dims that cannot be joined, but the batch is ", a_.batch, ". Call contiguous() first.");
    args_.dims = int32_t(sizes.size());
    std::ranges::copy(sizes, args_.sizes);
    for (size_t k = 0; k < strides_.size(); ++k)
      std::ranges::copy(strides_[k], operands_[k]->steps);
    return args_;
  }

 private:
  void add(AttentionOperand& operand, const Tensor& t, int64_t rows, int64_t columns) {
    if (!t.defined()) return;
    Shape sizes(a_.batch);
    sizes.push_back(rows);
    sizes.push_back(columns);
    Shape strides = broadcast_strides(t, sizes);
    operand.data = t.address();
    operand.column = strides.back();
    strides.pop_back();
    operand.vectors =
        operand.column == 1 && columns % vector_ == 0 &&
        reinterpret_cast<uintptr_t>(operand.data) % (size_t(vector_) * t.itemsize()) == 0 &&
        std::ranges::all_of(strides, [&](int64_t stride) { return stride % vector_ == 0; });
    operand.row = strides.back();
    strides.pop_back();
    operands_.push_back(&operand);
    strides_.push_back(std::move(strides));
  }

  const Attention& a_;
  int vector_;  // elements that rows are read by, if they can be
  AttentionArgs args_{};
  std::vector<AttentionOperand*> operands_;
  std::vector<Shape> strides_;  // of the batch, by operand
};

cuda::Dim3 grid_of(const AttentionArgs& args, int64_t rows, int tile) {
  return {cuda::blocks_for(args.items * cuda::blocks_for(rows, tile), 1)};
}

}  // namespace

bool attention_fits_cuda(DType dtype, int64_t features) {
  return Variant(dtype, true, false, features).fixed > 0;  // the forward pass needs less
}

void attention_cuda(const Attention& a, const Tensor& output, const Tensor& logsumexp) {
  cuda::DeviceGuard guard(output.device().index);
  Variant variant = variant_of(a, false);
  Arguments arguments(a, variant, output, logsumexp);
  const AttentionArgs& args = arguments.joined();
  cuda::kernels_of<Kernels>(variant).attend.launch(grid_of(args, args.queries, variant.fixed),
                                                   {variant.threads()},
                                                   unsigned(variant.shared_bytes()), args);
}

void attention_backward_cuda(const Attention& a, const Tensor& grad, const Tensor& output,
                             const Tensor& logsumexp, const AttentionGrads& grads) {
  cuda::DeviceGuard guard(output.device().index);
  Variant variant = variant_of(a, true);
  Kernels& kernels = cuda::kernels_of<Kernels>(variant);
  cuda::CudaBuffer dots(size_t(logsumexp.numel()) * logsumexp.itemsize(), cuda::current_device());
  Arguments arguments(a, variant, output, logsumexp);
  arguments.add_grads(grad, dots.data(), grads);
  const AttentionArgs& args = arguments.joined();
  cuda::Dim3 block{variant.threads()};
  auto shared = unsigned(variant.shared_bytes());
  kernels.dots.launch({cuda::blocks_for(logsumexp.numel(), block.x / 32)}, block, 0, args);
  if (grads.query.defined() || grads.mask.defined())
    kernels.query_grads.launch(grid_of(args, args.queries, variant.fixed), block, shared, args);
  if (grads.key.defined() || grads.value.defined())
    kernels.key_grads.launch(grid_of(args, args.keys, variant.fixed), block, shared, args);
}

}  // namespace rushlight
