// Owns deformable convolution, which is made of other ops: the images are sampled where the offsets
// say, and the samples of each window are multiplied by the weight.
//
// Source: Zhu et al., "Deformable ConvNets v2", 2018; without a mask it is their first version.
#include "core/ops/op.h"
#include "core/ops/same_device.h"
#include "core/ops/window_numbers.h"

namespace rushlight {
namespace {

struct DeformWindows {
  Shape stride, padding, dilation, kernel, out;
  int64_t offset_groups;

  int64_t elements() const { return kernel[0] * kernel[1]; }
  int64_t outputs() const { return out[0] * out[1]; }
};

Shape checked_pair(ShapeRef list, const char* name, int64_t least) {
  check_window_numbers(list, 2, name, least);
  return Shape(list.begin(), list.end());
}

void check_operand(const Tensor& input, const Tensor& other, const char* name, int64_t dims) {
  if (!other.defined()) return;
  CHECK(other.dim() == dims, name, " must have ", dims, " dims, but has shape ", other.sizes(),
        ".");
  check_same_device(input, other, name);
  CHECK(other.dtype() == input.dtype(), "expected ", name, " to have the same type as input, but ",
        "they are ", dtype_name(other.dtype()), " and ", dtype_name(input.dtype()), ".");
}

// The places of windows in each image, and what the shapes of all operands must be for that.
DeformWindows windows_of(const Tensor& input, const Tensor& weight, const Tensor& offset,
                         const Tensor& mask, const Tensor& bias, ShapeRef stride, ShapeRef padding,
                         ShapeRef dilation) {
  check_operand(input, input, "input", 4);
  check_operand(input, weight, "weight", 4);
  check_operand(input, offset, "offset", 4);
  check_operand(input, mask, "mask", 4);
  check_operand(input, bias, "bias", 1);
  DeformWindows w{checked_pair(stride, "stride", 1),
                  checked_pair(padding, "padding", 0),
                  checked_pair(dilation, "dilation", 1),
                  {weight.size(2), weight.size(3)},
                  {},
                  0};
  for (size_t d = 0; d < 2; ++d) {
    int64_t size = input.size(int64_t(d) + 2);
    CHECK(
        size > 0 && size <= kLargestOfWindow && w.kernel[d] > 0 && w.kernel[d] <= kLargestOfWindow,
        "input and weight must have sizes from 1 to 2^31 - 1, but are ", input.sizes(), " and ",
        weight.sizes(), ".");
    int64_t room = size + 2 * w.padding[d] - (w.dilation[d] * (w.kernel[d] - 1) + 1);
    w.out.push_back(room < 0 ? 0 : room / w.stride[d] + 1);
  }
  CHECK(w.outputs() > 0, "Calculated output size too small - out_h: ", w.out[0],
        " out_w: ", w.out[1]);
  int64_t per_group = 2 * w.elements();
  CHECK(
      offset.size(1) > 0 && offset.size(1) % per_group == 0, "the shape of the offset tensor at ",
      "dimension 1 is not valid. It should be a multiple of 2 * weight.size[2] * weight.size[3]. ",
      "Got offset.shape[1]=", offset.size(1),
      ", while 2 * weight.size[2] * weight.size[3]=", per_group);
  w.offset_groups = offset.size(1) / per_group;
  CHECK(weight.size(1) > 0 && input.size(1) % weight.size(1) == 0, "input has ", input.size(1),
        " channels, but weight takes ", weight.size(1),
        ". The channels of input must be those of weight times the number of groups.");
  int64_t groups = input.size(1) / weight.size(1);
  CHECK(groups > 0 && weight.size(0) % groups == 0, "weight has ", weight.size(0),
        " output channels, which ", groups, " groups do not divide.");
  CHECK(input.size(1) % w.offset_groups == 0, "input has ", input.size(1), " channels, which ",
        w.offset_groups, " groups of offsets do not divide.");
  CHECK(offset.size(0) == input.size(0), "invalid batch size of offset: ", offset.size(0),
        ", while input has ", input.size(0), ".");
  CHECK(offset.size(2) == w.out[0] && offset.size(3) == w.out[1], "offset output dims: (",
        offset.size(2), ", ", offset.size(3), ") - computed output dims: (", w.out[0], ", ",
        w.out[1], ")");
  if (mask.defined()) {
    Shape expected{input.size(0), w.offset_groups * w.elements(), w.out[0], w.out[1]};
    CHECK(mask.sizes() == expected, "mask has shape ", mask.sizes(), ", but must have ", expected,
          ".");
  }
  CHECK(!bias.defined() || bias.size(0) == weight.size(0), "bias has ",
        bias.defined() ? bias.size(0) : 0, " elements, but weight has ", weight.size(0),
        " output channels.");
  return w;
}

// Where the elements of the windows lie along a dim without offsets: (kernel, out).
Tensor places_along(const DeformWindows& w, size_t d, const Tensor& like) {
  auto steps = [&](int64_t count, int64_t step) {
    Tensor numbers = call<"arange", Tensor>(Scalar(count), std::optional<DType>(like.dtype()),
                                            std::optional<Device>(like.device()));
    return numbers * double(step);
  };
  Tensor first = steps(w.out[d], w.stride[d]) - double(w.padding[d]);
  return unsqueeze(steps(w.kernel[d], w.dilation[d]), 1) + first;
}

// Where each group of offsets looks: (N * groups, elements, outputs, 2) of x, y.
Tensor places(const DeformWindows& w, const Tensor& offset) {
  Tensor moved = reshape(offset, Shape{offset.size(0) * w.offset_groups, w.kernel[0], w.kernel[1],
                                       2, w.out[0], w.out[1]});
  Tensor y = select(moved, 3, 0), x = select(moved, 3, 1);
  y = y + reshape(places_along(w, 0, offset), Shape{w.kernel[0], 1, w.out[0], 1});
  x = x + reshape(places_along(w, 1, offset), Shape{w.kernel[1], 1, w.out[1]});
  Tensor both[] = {x, y};
  return reshape(stack(both, -1), Shape{moved.size(0), w.elements(), w.outputs(), 2});
}

Tensor in_dtype(const Tensor& t, DType dtype) { return t.defined() ? cast(t, dtype) : t; }

}  // namespace

OP(_deform_conv2d,
   "(Tensor input, Tensor weight, Tensor offset, Tensor? mask, Tensor? bias, int[2] stride, "
   "int[2] padding, int[2] dilation) -> Tensor", {
  .home    = "vision.ops",
  .doc     = R"(Convolution whose windows are bent by offsets: what vision.ops.deform_conv2d runs.

Args:
    input: (N, C, H, W).
    weight: (C_out, C / groups, kH, kW).
    offset: (N, 2 * offset_groups * kH * kW, H_out, W_out): y and x of each element of a window.
    mask: (N, offset_groups * kH * kW, H_out, W_out), factors of the elements.
    bias: (C_out,).
    stride: step between windows.
    padding: zeros added at all sides.
    dilation: distance between the window's elements.)",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
                const Tensor& bias, ShapeRef stride, ShapeRef padding, ShapeRef dilation) {
    DeformWindows w =
        windows_of(input, weight, offset, mask, bias, stride, padding, dilation);
    int64_t n = input.size(0), channels = input.size(1), outputs = weight.size(0);
    int64_t groups = channels / weight.size(1), parts = n * w.offset_groups;
    // Half types have too few digits to count pixels.
    DType wide = is_half(input.dtype()) ? DType::float32 : input.dtype();
    Tensor images = reshape(in_dtype(input, wide), Shape{parts, channels / w.offset_groups,
                                                         input.size(2), input.size(3)});
    Tensor samples = call<"_sample_pixels", Tensor>(images, places(w, in_dtype(offset, wide)));
    if (mask.defined())
      samples = samples * reshape(in_dtype(mask, wide), Shape{parts, 1, w.elements(), w.outputs()});
    int64_t taken = channels / groups * w.elements();
    Tensor columns = reshape(samples, Shape{n, groups, taken, w.outputs()});
    Tensor factors = reshape(in_dtype(weight, wide), Shape{groups, outputs / groups, taken});
    Tensor result = reshape(call<"matmul", Tensor>(factors, columns),
                            Shape{n, outputs, w.out[0], w.out[1]});
    if (bias.defined()) result = result + reshape(in_dtype(bias, wide), Shape{outputs, 1, 1});
    return cast(result, input.dtype());
  },
})

}  // namespace rushlight
