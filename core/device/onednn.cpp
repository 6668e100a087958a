#include "core/device/onednn.h"

#if RUSHLIGHT_ONEDNN

#include <algorithm>
#include <atomic>
#include <bit>
#include <initializer_list>
#include <optional>

#include "core/device/onednn_desc.h"
#include "core/device/threads.h"

namespace rushlight::onednn {
namespace {

std::atomic<bool> is_enabled{true};

bool is_supported(DType dtype) {
  return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16;
}

// ---- matrix products ----------------------------------------------------------------------------

// A stride over a dim of size 1 means nothing; as in a row-major matrix, it cannot mislead oneDNN.
void canonicalize(MatrixStrides& strides, int64_t rows, int64_t columns) {
  if (columns == 1) strides.column = 1;
  if (rows == 1) strides.row = strides.column == 1 ? columns : 1;
}

// Rows or columns are contiguous and do not overlap.
bool is_plain(const MatrixStrides& strides, int64_t rows, int64_t columns) {
  return (strides.column == 1 && strides.row >= columns) ||
         (strides.row == 1 && strides.column >= rows);
}

// Two dims suffice for one matrix, and oneDNN has faster code for two.
MemoryDesc matrix_desc(DType dtype, int64_t batch, int64_t rows, int64_t columns,
                       const MatrixStrides& s) {
  if (batch == 1) return strided(dtype, {rows, columns}, {s.row, s.column});
  if (s.batch == 0) return strided(dtype, {1, rows, columns}, {rows * columns, s.row, s.column});
  return strided(dtype, {batch, rows, columns}, {s.batch, s.row, s.column});
}

std::unique_ptr<Plan> plan_matmul(const Matmul& p, bool has_bias) {
  std::vector<Operand> operands;
  operands.push_back({DNNL_ARG_SRC, false, matrix_desc(p.dtype, p.batch, p.m, p.k, p.a)});
  operands.push_back({DNNL_ARG_WEIGHTS, false, matrix_desc(p.dtype, p.batch, p.k, p.n, p.b)});
  operands.push_back({DNNL_ARG_DST, true, matrix_desc(p.out_dtype, p.batch, p.m, p.n, p.c)});
  if (has_bias) {
    Dims bias = p.batch == 1 ? Dims{1, p.n} : Dims{1, 1, p.n};
    Dims strides = p.batch == 1 ? Dims{p.n, 1} : Dims{p.n, p.n, 1};
    operands.push_back({DNNL_ARG_BIAS, false, strided(p.out_dtype, bias, strides)});
  }
  for (const Operand& operand : operands) {
    if (!operand.desc) return nullptr;
  }
  Attributes attributes = make_attributes();
  if (p.alpha != 1 || p.beta != 0) fuse_scaling(attributes, p.alpha, p.beta);
  PrimitiveDesc desc =
      describe(functions()->dnnl_matmul_primitive_desc_create, engine(), operands[0].desc.get(),
               operands[1].desc.get(), has_bias ? operands[3].desc.get() : nullptr,
               operands[2].desc.get(), attributes.get());
  return desc ? std::make_unique<Plan>(desc, std::move(operands)) : nullptr;
}

// ---- convolutions -------------------------------------------------------------------------------

// The layout that the primitive works on, whatever the caller's, or none: its own choice. As
// measured, reorders included: channels-last suits it. For channels-first, blocked formats of its
// own are twice as fast, but for 1x1 kernels over many points, which are matrix products. Images
// have too few channels to fill a block, but tiles of AMX, which take neighboring ones, are up to
// seven times as fast all the same.
std::optional<ImageLayout> inner_layout(PlanKind kind, const Convolution& c) {
  bool is_image = c.groups == 1 && c.in_channels <= 4;
  if (is_image && kind == kBackwardInput) {
    bool has_tiles = c.dtype == DType::bfloat16 && has_bfloat16_tiles();
    return has_tiles ? ImageLayout::channels_last : ImageLayout::channels_first;
  }
  if (is_image && kind == kBackwardWeight) {
    if (c.dtype == DType::float32) return std::nullopt;
    return ImageLayout::channels_last;
  }
  if (c.layout == ImageLayout::channels_last) return ImageLayout::channels_last;
  bool is_pointwise = true;
  int64_t points = 1;
  for (int i = 0; i < c.dims; ++i) {
    is_pointwise &= c.kernel[i] == 1 && c.padding_before[i] == 0 && c.padding_after[i] == 0;
    points *= c.out_size(i);
  }
  if (is_pointwise && points >= 128 && kind != kBackwardWeight) return ImageLayout::channels_first;
  return std::nullopt;
}

// What the primitive is asked to work on; weights always take its own format.
struct ConvDescs {
  ConvDescs(PlanKind kind, const Convolution& c, const ConvDims& dims)
      : weight(any_format(c.dtype, dims.weight)), bias(strided(c.dtype, dims.bias, {1})) {
    std::optional<ImageLayout> layout = inner_layout(kind, c);
    input = layout ? dense(c.dtype, dims.input, *layout, 1) : any_format(c.dtype, dims.input);
    output = layout ? dense(c.dtype, dims.output, *layout, 1) : any_format(c.dtype, dims.output);
  }

  MemoryDesc input, weight, bias, output;
};

PrimitiveDesc describe_convolution(PlanKind kind, const ConvDims& dims, const ConvDescs& descs,
                                   bool has_bias, const Attributes& attributes) {
  const Functions& f = *functions();
  constexpr dnnl_alg_kind_t kDirect = dnnl_convolution_direct;
  dnnl_memory_desc_t bias = has_bias ? descs.bias.get() : nullptr;
  PrimitiveDesc forward =
      describe(f.dnnl_convolution_forward_primitive_desc_create, engine(), dnnl_forward_training,
               kDirect, descs.input.get(), descs.weight.get(), bias, descs.output.get(),
               dims.stride.data(), dims.dilation.data(), dims.padding_before.data(),
               dims.padding_after.data(), attributes.get());
  if (kind == kForward || !forward) return forward;
  // The backward primitives take the forward one as a hint.
  if (kind == kBackwardInput) {
    return describe(f.dnnl_convolution_backward_data_primitive_desc_create, engine(), kDirect,
                    descs.input.get(), descs.weight.get(), descs.output.get(), dims.stride.data(),
                    dims.dilation.data(), dims.padding_before.data(), dims.padding_after.data(),
                    forward.get(), attributes.get());
  }
  return describe(f.dnnl_convolution_backward_weights_primitive_desc_create, engine(), kDirect,
                  descs.input.get(), descs.weight.get(), bias, descs.output.get(),
                  dims.stride.data(), dims.dilation.data(), dims.padding_before.data(),
                  dims.padding_after.data(), forward.get(), attributes.get());
}

std::unique_ptr<Plan> plan_convolution(PlanKind kind, const Convolution& c, bool has_bias,
                                       bool relu) {
  ConvDims dims(c);
  Attributes attributes = make_attributes();
  if (relu) fuse_relu(attributes);
  ConvDescs descs(kind, c, dims);
  PrimitiveDesc desc = describe_convolution(kind, dims, descs, has_bias, attributes);
  if (!desc) return nullptr;
  // Other code multiplies matrices of single numbers, ten times as slow.
  if (c.is_depthwise() && code_name(desc).find("_dw") == std::string_view::npos) return nullptr;

  MemoryDesc input = dense(c.dtype, dims.input, c.layout, 1);
  MemoryDesc output = dense(c.dtype, dims.output, c.layout, 1);
  MemoryDesc weight = dense(c.dtype, dims.weight, c.weight_layout, c.groups > 1 ? 2 : 1);
  std::vector<Operand> operands;
  auto add = [&](int argument, bool is_output, MemoryDesc& outer) {
    operands.push_back({argument, is_output, std::move(outer)});
  };
  if (kind == kForward) {
    add(DNNL_ARG_SRC, false, input);
    add(DNNL_ARG_WEIGHTS, false, weight);
    add(DNNL_ARG_DST, true, output);
    if (has_bias) add(DNNL_ARG_BIAS, false, descs.bias);
  } else if (kind == kBackwardInput) {
    add(DNNL_ARG_DIFF_DST, false, output);
    add(DNNL_ARG_WEIGHTS, false, weight);
    add(DNNL_ARG_DIFF_SRC, true, input);
  } else {
    add(DNNL_ARG_SRC, false, input);
    add(DNNL_ARG_DIFF_DST, false, output);
    add(DNNL_ARG_DIFF_WEIGHTS, true, weight);
    if (has_bias) add(DNNL_ARG_DIFF_BIAS, true, descs.bias);
  }
  return std::make_unique<Plan>(desc, std::move(operands));
}

// Null arrays, a missing bias, come last and are left out.
bool run(Plan* plan, std::initializer_list<const void*> arrays) {
  if (!plan) return false;
  void* addresses[4];
  size_t count = 0;
  for (const void* array : arrays) {
    if (array) addresses[count++] = const_cast<void*>(array);
  }
  plan->run({addresses, count});
  return true;
}

bool run_convolution(PlanKind kind, const Convolution& c, bool has_bias, bool relu,
                     std::initializer_list<const void*> arrays) {
  if (!available() || !is_supported(c.dtype)) return false;
  LibraryThreads threads(is_worth_threads(multiplications(c)));
  PlanKey key{kind, threads.count(), has_bias, relu, int64_t(c.dtype)};
  for (ImageLayout layout : {c.layout, c.weight_layout}) key.push_back(int64_t(layout));
  add_to_key(key, c);
  return run(plan_for(key, [&] { return plan_convolution(kind, c, has_bias, relu); }), arrays);
}

}  // namespace

bool available() { return is_enabled.load(std::memory_order_relaxed) && functions(); }

void set_enabled(bool enabled) { is_enabled.store(enabled, std::memory_order_relaxed); }

bool has_bfloat16_tiles() {
  return available() && (functions()->dnnl_get_effective_cpu_isa() &
                         dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
}

bool matmul(Matmul p, const void* a, const void* b, const void* bias, void* c) {
  bool is_int8 = p.dtype == DType::int8 && p.out_dtype == DType::int32 && !bias;
  bool is_known = is_int8 || (is_supported(p.dtype) && is_supported(p.out_dtype));
  if (!available() || !is_known) return false;
  canonicalize(p.a, p.m, p.k);
  canonicalize(p.b, p.k, p.n);
  canonicalize(p.c, p.m, p.n);
  if (!is_plain(p.a, p.m, p.k) || !is_plain(p.b, p.k, p.n) || !is_plain(p.c, p.m, p.n)) {
    return false;
  }
  if (p.batch > 1 && p.a.batch == 0 && p.b.batch == 0) return false;  // it repeats no product
  LibraryThreads threads(is_worth_threads(double(p.batch) * p.m * p.n * p.k));
  PlanKey key{kMatmul, threads.count(), bias != nullptr, int64_t(p.dtype), int64_t(p.out_dtype)};
  for (float factor : {p.alpha, p.beta}) key.push_back(std::bit_cast<int32_t>(factor));
  for (int64_t size : {p.batch, p.m, p.n, p.k}) key.push_back(size);
  for (const MatrixStrides& strides : {p.a, p.b, p.c}) {
    for (int64_t stride : {strides.batch, strides.row, strides.column}) key.push_back(stride);
  }
  return run(plan_for(key, [&] { return plan_matmul(p, bias != nullptr); }), {a, b, c, bias});
}

bool conv_forward(const Convolution& conv, const void* input, const void* weight, const void* bias,
                  bool relu, void* output) {
  return run_convolution(kForward, conv, bias != nullptr, relu, {input, weight, output, bias});
}

bool conv_backward_input(const Convolution& conv, const void* grad_output, const void* weight,
                         void* grad_input) {
  return run_convolution(kBackwardInput, conv, false, false, {grad_output, weight, grad_input});
}

bool conv_backward_weight(const Convolution& conv, const void* input, const void* grad_output,
                          void* grad_weight, void* grad_bias) {
  return run_convolution(kBackwardWeight, conv, grad_bias != nullptr, false,
                         {input, grad_output, grad_weight, grad_bias});
}

}  // namespace rushlight::onednn

#else

namespace rushlight::onednn {

bool available() { return false; }
void set_enabled(bool) {}
bool has_bfloat16_tiles() { return false; }
bool matmul(Matmul, const void*, const void*, const void*, void*) { return false; }
bool conv_forward(const Convolution&, const void*, const void*, const void*, bool, void*) {
  return false;
}
bool conv_backward_input(const Convolution&, const void*, const void*, void*) { return false; }
bool conv_backward_weight(const Convolution&, const void*, const void*, void*, void*) {
  return false;
}

}  // namespace rushlight::onednn

#endif
