// Owns linear layers and convolutions of 8-bit integers: by oneDNN, by a loop of our own for a few
// rows, else in float64. All hold every sum of products exactly, and so give the same numbers.
//
// Weights may come packed: a vector of bytes that begins with the number of their format.
#include <cmath>
#include <cstring>

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/cpu_features.h"
#include "core/device/onednn_int8.h"
#include "core/device/threads.h"
#include "core/ops/batch.h"
#include "core/ops/conv/conv_arguments.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/quantized/quantized.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

using onednn::Int8Convolution;
constexpr DTypeSet bytes([](DType t) { return t == DType::uint8; });
constexpr DTypeSet signed_bytes([](DType t) { return t == DType::int8; });
constexpr DTypeSet both_bytes([](DType t) { return t == DType::uint8 || t == DType::int8; });
constexpr DTypeSet single_precision([](DType t) { return t == DType::float32; });

constexpr size_t kHeader = 64;  // of packed weights; what follows stays aligned
constexpr int64_t kGrain = 1 << 15;

void check_weight(const Tensor& weight) {
  CHECK(weight.dtype() == DType::int8, "weight must be int8, but is ", dtype_name(weight.dtype()),
        ".");
}

// A product with the sizes of its input, (rows, features) or (N, C, H, W) or one dim more.
Int8Convolution describe_product(ShapeRef input, const Tensor& weight, ShapeRef stride,
                                 ShapeRef padding, ShapeRef dilation, int64_t groups) {
  check_weight(weight);
  size_t dims = stride.size();
  CHECK((dims == 0 || dims == 2 || dims == 3) && input.size() == dims + 2 &&
            size_t(weight.dim()) == dims + 2,
        "input ", Shape(input), " and weight ", weight.sizes(), " do not have ", dims + 2,
        " dims, as a layer of ", dims, " spatial dims has (0, 2 or 3).");
  Int8Convolution product{};
  if (dims > 0) {
    product.conv =
        describe_conv(input, weight.sizes(), {stride, padding, padding, dilation, groups});
    return product;
  }
  CHECK(input[1] == weight.size(1), "input ", Shape(input), " has ", input[1],
        " features, but weight ", weight.sizes(), " takes ", weight.size(1), ".");
  product.conv.batch = input[0];
  product.conv.groups = 1;
  product.conv.in_channels = input[1];
  product.conv.out_channels = weight.size(0);
  return product;
}

MemoryFormat format_of(const onednn::Convolution& conv) {
  return conv.dims ? channels_last_for(conv.dims + 2) : MemoryFormat::contiguous;
}

Tensor empty_output(const onednn::Convolution& conv, DType dtype, Device device) {
  Shape sizes{conv.batch, conv.out_channels};
  for (int d = 0; d < conv.dims; ++d) sizes.push_back(conv.out_size(d));
  return empty_strided(sizes, strides_for(sizes, format_of(conv)), dtype, device);
}

// What turns sums of products into results.
struct Epilogue {
  Tensor bias, weight_scales;  // float32
  float input_scale;
  int32_t input_zero_point;
  std::optional<float> scale;  // of the result, which is float32 when it has none
  int32_t zero_point;
  bool relu;

  Epilogue(const Tensor& bias_or_none, const Tensor& scales, int64_t channels)
      : bias(prepared(bias_or_none, DType::float32)),
        weight_scales(prepared(scales, DType::float32)) {
    int64_t count = weight_scales.numel();
    CHECK(count == 1 || count == channels, "weight has ", channels, " channels, but ", count,
          " scales.");
    CHECK(!bias.defined() || bias.numel() == channels, "weight has ", channels,
          " channels, but the bias ", bias.numel(), ".");
  }
};

Tensor exact_sums(const Tensor& input, int64_t zero_point, const Tensor& weight,
                  const Tensor& weight_zero_points, const ConvWindows& windows) {
  Tensor x = cast(input, DType::float64) - Scalar(zero_point);
  Tensor w = cast(weight, DType::float64);
  if (weight_zero_points.defined()) {
    Shape sizes(size_t(w.dim()), 1);
    sizes[0] = weight_zero_points.numel();
    w = w - reshape(weight_zero_points, sizes);
  }
  return windows.stride.empty() ? matmul(x, transpose(w, 0, 1)) : convolve(x, w, {}, windows);
}

// Rows up to which our loop is faster than anything but one product of oneDNN, and than that, where
// multiplies_bytes() is false; and features whose products cannot overflow.
constexpr int64_t kFewRows = 32, kFewestRows = 8, kFewFeatures = 1 << 16;

// exact_sums() of a linear layer in int32; undefined for more rows than `most`, and where that does
// not suit the sizes.
Tensor few_sums(const Tensor& input, int64_t zero_point, const Tensor& weight, int64_t most) {
  int64_t rows = input.size(0), features = input.size(1), channels = weight.size(0);
  if (rows > most || features > kFewFeatures || multiplies_bytes()) return {};
  Tensor x = cast(input, DType::int16) - Scalar(zero_point), w = to_contiguous(weight);
  Tensor out = empty(Shape{rows, channels}, DType::int32);
  int64_t blocks = ceil_div(channels, kDotWeights);
  parallel_for(0, blocks, kGrain / (rows * features) + 1, [&](int64_t begin, int64_t end) {
    int32_t sums[kFewRows][kDotWeights];
    for (int64_t first = begin * kDotWeights; first < std::min(end * kDotWeights, channels);
         first += kDotWeights) {
      int64_t count = std::min<int64_t>(kDotWeights, channels - first);
      const int8_t* weights[kDotWeights];
      for (int64_t k = 0; k < kDotWeights; ++k)
        weights[k] = w.data<int8_t>() + (first + std::min(k, count - 1)) * features;
      quantized_loops().dots(x.data<int16_t>(), rows, weights, features, sums);
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(sums[r], count, out.data<int32_t>() + r * channels + first);
    }
  });
  return out;
}

// The same arithmetic as oneDNN's, one rounding after the other.
Tensor finish(const Tensor& sums, const Epilogue& e) {
  Shape sizes(size_t(sums.dim()), 1);
  auto by_channel = [&](const Tensor& list) {
    sizes[1] = list.numel();
    return reshape(list, sizes);
  };
  Tensor out =
      cast(sums, DType::float32) * (by_channel(e.weight_scales) * Scalar(double(e.input_scale)));
  if (e.bias.defined()) out = out + by_channel(e.bias);
  if (e.relu) out = max(out, 0);
  if (!e.scale) return out;
  out = out * Scalar(double(1 / *e.scale)) + Scalar(double(e.zero_point));
  return cast(min(max(call<"round", Tensor>(out), 0), 255), DType::uint8);
}

struct Packed {
  int64_t format = 0;
  const void* data = nullptr;
};

// Nothing for weights that are not packed; what is no packed weight is refused.
Packed read_packed(const Tensor& packed) {
  if (!packed.defined() || packed.numel() == 0) return {};
  CHECK(packed.dtype() == DType::uint8 && packed.is_contiguous() &&
            packed.numel() >= int64_t(kHeader),
        "packed must be what _int8_pack returned.");
  Packed result;
  std::memcpy(&result.format, packed.data(), sizeof(result.format));
  size_t size = onednn::packed_bytes(result.format);
  if (size == 0) return {};  // oneDNN has been switched off
  CHECK(size_t(packed.numel()) == kHeader + size, "packed must be what _int8_pack returned.");
  result.data = packed.data<char>() + kHeader;
  return result;
}

// Into `output`, which lies in memory with its channels last, as `input` does.
bool run_by_onednn(Int8Convolution product, const void* input, const Tensor& weight, Packed packed,
                   const Epilogue& e, void* output) {
  product.output = e.scale ? DType::uint8 : DType::float32;
  product.scale_per_channel = e.weight_scales.numel() > 1;
  product.relu = e.relu;
  return onednn::int8_convolution(product,
                                  {.input = input,
                                   .weight = to_contiguous(weight).data(),
                                   .format = packed.format,
                                   .packed = packed.data,
                                   .bias = e.bias.defined() ? e.bias.data<float>() : nullptr,
                                   .input_scale = e.input_scale,
                                   .input_zero_point = e.input_zero_point,
                                   .weight_scales = e.weight_scales.data<float>(),
                                   .output_scale = e.scale.value_or(1),
                                   .output_zero_point = e.zero_point,
                                   .output = output});
}

// exact_sums() by oneDNN in two parts, for numbers whose products in pairs could overflow;
// undefined where there is no oneDNN.
Tensor split_sums(Int8Convolution product, const Tensor& input, const Tensor& weight, Packed packed,
                  int32_t zero_point) {
  constexpr int64_t kSafe = 127;  // and for the rest, which is 128 at most
  Tensor low = minimum(input, wrapped_number(kSafe)), w = to_contiguous(weight), sums;
  product.output = DType::int32;
  for (const Tensor& part : {low, input - low}) {
    Tensor out = empty_output(product.conv, DType::int32, input.device());
    if (!onednn::int8_convolution(product, {.input = part.data(),
                                            .weight = w.data(),
                                            .format = packed.format,
                                            .packed = packed.data,
                                            .input_zero_point = zero_point,
                                            .output = out.data()}))
      return {};
    sums = sums.defined() ? sums + out : out;
    product.has_zero_point = false;
  }
  return sums;
}

bool fits_pairs(const Tensor& input) {
  return multiplies_bytes() || item(call<"max", Tensor>(input)).to<int64_t>() <= 128;
}

// The product of `input`, which lies in memory as `out` does, with its channels last.
void multiply(const Int8Convolution& product, const Tensor& input, const Tensor& weight,
              const Tensor& packed_or_none, const Tensor& weight_zero_points, const Epilogue& e,
              const ConvWindows& windows, const Tensor& out) {
  Packed packed = read_packed(packed_or_none);
  Tensor sums;
  if (input.numel() && !weight_zero_points.defined()) {
    auto by_loop = [&](int64_t most) {
      bool is_linear = windows.stride.empty();
      return is_linear ? few_sums(input, e.input_zero_point, weight, most) : Tensor();
    };
    sums = by_loop(onednn::available() ? kFewestRows : kFewRows);
    if (!sums.defined() && fits_pairs(input)) {
      if (run_by_onednn(product, input.data(), weight, packed, e, out.data())) return;
    } else if (!sums.defined()) {
      sums = by_loop(kFewRows);
      if (!sums.defined()) sums = split_sums(product, input, weight, packed, e.input_zero_point);
    }
  }
  if (!sums.defined())
    sums = exact_sums(input, e.input_zero_point, weight, weight_zero_points, windows);
  copy_into(out, reshape(finish(sums, e), out.sizes()));
}

// The integers in use. 7 bits keep sums of two products within 16 bits.
struct IntegerRange {
  int32_t low, high;
};
constexpr IntegerRange integers(bool is_signed, bool reduce_range) {
  if (is_signed) return reduce_range ? IntegerRange{-64, 63} : IntegerRange{-128, 127};
  return reduce_range ? IntegerRange{0, 127} : IntegerRange{0, 255};
}

struct ExactForm {
  double scale;
  int32_t zero_point;
};

// The form that covers a range of floats, with 0 among its numbers: gemmlowp's choice, which
// PyTorch's dynamic layers make. The zero point comes from the end that loses fewer digits.
ExactForm form_for(FloatRange range, IntegerRange q) {
  double low = std::min(range.low, 0.0f), high = std::max(range.high, 0.0f);
  int32_t steps = q.high - q.low;
  double scale = (high - low) / steps;
  if (float(scale) == 0 || std::isinf(1 / float(scale))) scale = 0.1;
  constexpr float kSmallest = 6.1e-5f;
  if (scale < kSmallest) {
    double growth = kSmallest / scale;
    scale = kSmallest;
    if (low == 0) high = scale * steps;
    else if (high == 0) low = -scale * steps;
    else low *= growth, high *= growth;
  }
  double from_low = q.low - low / scale, from_high = q.high - high / scale;
  double error_low = std::abs(q.low) + std::abs(low / scale);
  double error_high = std::abs(q.high) + std::abs(high / scale);
  double zero_point = error_low < error_high ? from_low : from_high;
  zero_point = std::clamp(zero_point, double(q.low), double(q.high));
  return {scale, int32_t(std::nearbyint(zero_point))};
}

// The product of int8 matrices in int32.
Tensor exact_product(const Tensor& a, const Tensor& b) {
  return cast(matmul(cast(a, DType::float64), cast(b, DType::float64)), DType::int32);
}

FloatRange range_of(const Tensor& x) {
  if (x.numel() == 0) return {0, 0};
  return quantized_loops().range(x.data<float>(), x.numel());
}

}  // namespace

OP(_choose_qparams, "(Tensor input, bool is_signed, bool reduce_range) -> Tensor", {
  .home    = "private",
  .doc     = "The scale and zero point for 8 bits that suit the range of a tensor, in float64.",
  .dtypes  = single_precision,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, bool is_signed, bool reduce_range) {
    Tensor out = empty(Shape{2}, DType::float64, input.device());
    if (out.device().is_meta()) return out;
    ExactForm form =
        form_for(range_of(to_contiguous(input)), integers(is_signed, reduce_range));
    out.data<double>()[0] = form.scale;
    out.data<double>()[1] = form.zero_point;
    return out;
  },
  .grads   = grads(no_grad<"input">),
})

OP(_int8_pack,
   "(Tensor weight, int[] input_size, int[] stride, int[] padding, int[] dilation, int groups, "
   "bool has_zero_point, bool float_output) -> Tensor", {
  .home    = "private",
  .doc     = R"(The weight of a layer in the format that suits inputs of a size, as bytes.

They are empty where packing is of no use. They mean something in this process alone.)",
  .dtypes  = signed_bytes,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& weight, ShapeRef input_size, ShapeRef stride, ShapeRef padding,
                ShapeRef dilation, int64_t groups, bool has_zero_point, bool float_output) {
    Int8Convolution product =
        describe_product(input_size, weight, stride, padding, dilation, groups);
    product.has_zero_point = has_zero_point;
    product.output = float_output ? DType::float32 : DType::uint8;
    product.scale_per_channel = true;
    bool is_empty = weight.numel() == 0 || checked_numel(input_size) == 0;
    int64_t format =
        is_empty || !weight.device().is_cpu() ? 0 : onednn::packed_format(product);
    if (!format) return empty(Shape{0}, DType::uint8);
    Tensor packed = zeros(Shape{int64_t(kHeader + onednn::packed_bytes(format))}, DType::uint8);
    std::memcpy(packed.data(), &format, sizeof(format));
    onednn::pack(product, to_contiguous(weight).data(), format, packed.data<char>() + kHeader);
    return packed;
  },
  .grads   = grads(no_grad<"weight">),
})

OP(_int8_product,
   "(Tensor input, Tensor weight, Tensor? packed, Tensor? bias, Tensor weight_scales, "
   "Tensor? weight_zero_points, int[] stride, int[] padding, int[] dilation, int groups, "
   "float scale, int zero_point, float? out_scale, int out_zero_point, bool relu) -> Tensor", {
  .home    = "private",
  .doc     = R"(A linear layer (no stride) or convolution of uint8 numbers with int8 weights.

The result is uint8, or float32 without out_scale, with its channels last in memory.)",
  .dtypes  = bytes,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& packed,
                const Tensor& bias, const Tensor& weight_scales, const Tensor& weight_zero_points,
                ShapeRef stride, ShapeRef padding, ShapeRef dilation, int64_t groups, double scale,
                int64_t zero_point, std::optional<double> out_scale, int64_t out_zero_point,
                bool relu) {
    Int8Convolution product =
        describe_product(input.sizes(), weight, stride, padding, dilation, groups);
    product.has_zero_point = zero_point != 0;
    Epilogue epilogue(bias, weight_scales, product.conv.out_channels);
    epilogue.input_scale = float(scale);
    epilogue.input_zero_point = int32_t(zero_point);
    if (out_scale) epilogue.scale = float(*out_scale);
    epilogue.zero_point = int32_t(out_zero_point);
    epilogue.relu = relu;

    DType dtype = out_scale ? DType::uint8 : DType::float32;
    Tensor out = empty_output(product.conv, dtype, input.device());
    if (out.numel() == 0 || input.device().is_meta()) return out;
    multiply(product, in_format(input, format_of(product.conv)), weight, packed,
             weight_zero_points, epilogue, {stride, padding, padding, dilation, groups}, out);
    return out;
  },
  .grads   = grads(no_grad<"input">, no_grad<"weight">, no_grad<"packed">, no_grad<"bias">,
                   no_grad<"weight_scales">, no_grad<"weight_zero_points">),
})

OP(_int8_dynamic_linear,
   "(Tensor input, Tensor weight, Tensor? packed, Tensor? bias, Tensor weight_scales, "
   "Tensor? weight_zero_points, bool reduce_range, bool relu) -> Tensor", {
  .home    = "private",
  .doc     = R"(A linear layer of float32 numbers with int8 weights.

The input is brought into uint8 by its own range, and the result is float32.)",
  .dtypes  = single_precision,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& packed,
                const Tensor& bias, const Tensor& weight_scales, const Tensor& weight_zero_points,
                bool reduce_range, bool relu) {
    CHECK(input.dim() > 0, "input must have at least one dim, the features, but is 0-d.");
    CHECK(weight.dim() == 2, "weight must be a matrix, but has shape ", weight.sizes(), ".");
    int64_t features = input.size(-1), rows = features ? input.numel() / features : 0;
    Int8Convolution product = describe_product(Shape{rows, features}, weight, {}, {}, {}, 1);
    product.has_zero_point = true;
    Epilogue epilogue(bias, weight_scales, product.conv.out_channels);
    epilogue.relu = relu;
    epilogue.zero_point = 0;

    Shape sizes = input.sizes();
    sizes.back() = weight.size(0);
    Tensor out = empty(sizes, DType::float32, input.device());
    if (out.numel() == 0 || input.device().is_meta()) return out;
    Tensor x = to_contiguous(input);
    IntegerRange used = integers(false, reduce_range);
    auto [scale, zero_point] = form_for(range_of(x), used);
    QuantizedForm form{float(scale), zero_point};
    epilogue.input_scale = form.scale;
    epilogue.input_zero_point = form.zero_point;
    Tensor q = empty(Shape{rows, features}, DType::uint8);
    parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
      quantized_loops().quantize[size_t(QuantizedType::uint8)](
          x.data<float>() + begin, form, used.low, used.high, q.data<uint8_t>() + begin,
          end - begin);
    });
    multiply(product, q, weight, packed, weight_zero_points, epilogue, {}, out);
    return out;
  },
  .grads   = grads(no_grad<"input">, no_grad<"weight">, no_grad<"packed">, no_grad<"bias">,
                   no_grad<"weight_scales">, no_grad<"weight_zero_points">),
})

OP(_int_mm, "(Tensor input, Tensor mat2) -> Tensor", {
  .doc     = R"(The matrix product of int8 or uint8 matrices in int32, which does not overflow.

Example:
    >>> a = torch.full((2, 3), 100, dtype=torch.int8)
    >>> torch._int_mm(a, a.t())[0, 0]
    tensor(30000, dtype=torch.int32))",
  .dtypes  = both_bytes,
  .variants = function,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&) {
    return exact_product(batch.full("input"), batch.full("mat2"));
  },
  .forward = [](const Tensor& input, const Tensor& mat2) {
    CHECK(both_bytes.contains(mat2.dtype()), "mat2 must be int8, but is ", dtype_name(mat2.dtype()),
          ".");
    CHECK(input.dim() == 2 && mat2.dim() == 2 && input.size(1) == mat2.size(0),
          "needs two matrices (m, k) and (k, n), but has shapes ", input.sizes(), " and ",
          mat2.sizes(), ".");
    int64_t m = input.size(0), k = input.size(1), n = mat2.size(1);
    bool is_signed = input.dtype() == DType::int8 && mat2.dtype() == DType::int8;
    if (is_signed && input.device().is_cpu() && mat2.device().is_cpu() && m * n * k != 0 &&
        multiplies_bytes()) {
      Tensor out = empty(Shape{m, n}, DType::int32);
      onednn::Matmul product{.dtype = DType::int8, .out_dtype = DType::int32, .batch = 1, .m = m,
                             .n = n, .k = k, .a = {0, input.stride(0), input.stride(1)},
                             .b = {0, mat2.stride(0), mat2.stride(1)}, .c = {0, n, 1}};
      if (onednn::matmul(product, input.data(), mat2.data(), nullptr, out.data())) return out;
    }
    return exact_product(input, mat2);
  },
  .grads   = grads(no_grad<"input">, no_grad<"mat2">),
})

}  // namespace rushlight
