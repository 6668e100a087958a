// Owns nn.functional's unfold and fold: the windows of images as columns, and back. Each is the
// gradient of the other.
#include "core/ops/unfold/unfold.h"

#include "core/ops/op.h"
#include "core/ops/window_numbers.h"
#include "core/tensor/pointwise.h"

namespace rushlight {
namespace {

// What can be added up; booleans are true where any is.
inline constexpr DTypeSet kFoldable([](DType t) { return is_differentiable(t) || is_bool(t); });

// An argument as two numbers: one may stand for both.
Shape pair(ShapeRef list, const char* name, int64_t least) {
  CHECK(list.size() == 1 || list.size() == 2, name, " must have 1 or 2 numbers, but is ",
        ShapeText{list}, ".");
  check_window_range(list, name, least);
  return {list[0], list.back()};
}

// Whether a tensor has `dims` dims, or one before them for a batch, and is only empty by that.
bool is_batch_or_one(const Tensor& t, int64_t dims) {
  if (t.dim() != dims && t.dim() != dims + 1) return false;
  for (int64_t size : ShapeRef(t.sizes()).last(size_t(dims)))
    if (size == 0) return false;
  return true;
}

// The four arguments of windows, each as two numbers.
struct Arguments {
  Shape kernel, dilation, padding, stride;

  Arguments(ShapeRef kernel_size, ShapeRef dilation_, ShapeRef padding_, ShapeRef stride_)
      : kernel(pair(kernel_size, "kernel_size", 1)),
        dilation(pair(dilation_, "dilation", 1)),
        padding(pair(padding_, "padding", 0)),
        stride(pair(stride_, "stride", 1)) {}
};

struct Windows {
  UnfoldWindows along[2];

  Windows(ShapeRef size, const Arguments& a) {
    for (size_t d = 0; d < 2; ++d) {
      along[d] = {size[d], a.kernel[d], a.dilation[d], a.padding[d], a.stride[d]};
      CHECK(size[d] <= kLargestOfWindow && a.kernel[d] * a.dilation[d] <= kLargestOfWindow,
            "images or windows are too large: each size must be below 2^31.");
    }
    CHECK(along[0].out() > 0 && along[1].out() > 0, "no window of kernel_size ",
          ShapeText{a.kernel}, " with dilation ", ShapeText{a.dilation}, " and stride ",
          ShapeText{a.stride}, " fits in images of ", ShapeText{size}, " with padding ",
          ShapeText{a.padding}, ": there must be at least one sliding block.");
    checked_numel(Shape{along[0].kernel, along[1].kernel, along[0].out(), along[1].out()});
  }
  int64_t elements() const { return along[0].kernel * along[1].kernel; }
  int64_t outputs() const { return along[0].out() * along[1].out(); }
};

void check_columns(const Tensor& columns, const Windows& windows, ShapeRef size) {
  CHECK(columns.size(1) % windows.elements() == 0, "Expected size of input's dimension 1 to be ",
        "divisible by the product of kernel_size, but got input.size(1)=", columns.size(1),
        " and a product of ", windows.elements(), ".");
  CHECK(columns.size(2) == windows.outputs(), "Given output_size=", ShapeText{size},
        ", expected size of input's dimension 2 to match the calculated number of sliding blocks ",
        windows.along[0].out(), " * ", windows.along[1].out(), " = ", windows.outputs(),
        ", but got input.size(2)=", columns.size(2), ".");
}

}  // namespace

OP(_im2col,
   "(Tensor input, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor", {
  .home    = "core",
  .doc     = R"(The windows of images (N, C, H, W) as columns (N, C * window, outputs).)",
  .node    = "im2Col",
  .batch   = by_images,
  .forward = [](const Tensor& input, ShapeRef kernel_size, ShapeRef dilation, ShapeRef padding,
                ShapeRef stride) {
    Windows windows(ShapeRef(input.sizes()).last(2), {kernel_size, dilation, padding, stride});
    int64_t height = checked_numel(Shape{input.size(1), windows.elements()});
    Tensor columns = empty(Shape{input.size(0), height, windows.outputs()}, input.dtype(),
                           input.device());
    if (columns.numel() != 0 && !columns.device().is_meta())
      (columns.device().is_cuda() ? unfold_on_cuda : unfold_on_cpu)(
          windows.along, to_contiguous(input), columns);
    return columns;
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& size, const Shape& kernel_size,
                                 const Shape& dilation, const Shape& padding, const Shape& stride) {
    return call<"_col2im", Tensor>(g, ShapeRef(size).last(2), ShapeRef(kernel_size),
                                   ShapeRef(dilation), ShapeRef(padding), ShapeRef(stride));
  })),
})

OP(_col2im,
   "(Tensor input, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, "
   "int[] stride) -> Tensor", {
  .home    = "core",
  .doc     = R"(Columns (N, C * window, outputs) added up to images (N, C, H, W).)",
  .dtypes  = kFoldable,
  .batch   = by_images,
  .forward = [](const Tensor& input, ShapeRef output_size, ShapeRef kernel_size, ShapeRef dilation,
                ShapeRef padding, ShapeRef stride) {
    Windows windows(output_size, {kernel_size, dilation, padding, stride});
    check_columns(input, windows, output_size);
    Device device = input.device();
    bool widens = (is_half(input.dtype()) && device.is_cpu()) || is_bool(input.dtype());
    DType wide = widens ? DType::float32 : input.dtype();
    Shape sizes{input.size(0), input.size(1) / windows.elements(), output_size[0], output_size[1]};
    if (device.is_meta()) return empty(sizes, input.dtype(), device);
    Tensor images = empty(sizes, wide, device);
    if (images.numel() != 0)
      (device.is_cuda() ? fold_on_cuda : fold_on_cpu)(
          windows.along, to_contiguous(to_dtype(input, wide)), images);
    return to_dtype(images, input.dtype());
  },
  .grads   = grads(d<"input">([](const Tensor& g, const Shape&, const Shape& kernel_size,
                                 const Shape& dilation, const Shape& padding, const Shape& stride) {
    return call<"_im2col", Tensor>(g, ShapeRef(kernel_size), ShapeRef(dilation), ShapeRef(padding),
                                   ShapeRef(stride));
  })),
})

// Tensor.unfold, which slides over one dim, has the name without a home.
OP(nn_unfold,
   "unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, "
   "int[2] stride=1) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The windows of images as columns: (N, C, H, W) becomes (N, C * window, outputs).

There are floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1 windows along the
height, and likewise along the width.

Args:
    input: (N, C, H, W) or (C, H, W).
    kernel_size: height and width of the window.
    dilation: distance between the window's elements.
    padding: zeros added at all sides.
    stride: step between windows.)",
  .variants = function,
  .forward = [](const Tensor& input, ShapeRef kernel_size, ShapeRef dilation, ShapeRef padding,
                ShapeRef stride) {
    Arguments a(kernel_size, dilation, padding, stride);
    bool batched = input.dim() == 4;
    CHECK(is_batch_or_one(input, 3),
          "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
          "dimensions for input, but got: ", input.sizes());
    Tensor columns = call<"_im2col", Tensor>(batched ? input : unsqueeze(input, 0),
                                             ShapeRef(a.kernel), ShapeRef(a.dilation),
                                             ShapeRef(a.padding), ShapeRef(a.stride));
    return batched ? columns : squeeze(columns, 0);
  },
})

OP(fold,
   "(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, "
   "int[2] stride=1) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Columns added up to images: (N, C * window, outputs) becomes (N, C, H, W).

Each column is a window as unfold lays it out; where windows share an element, values are added.

Args:
    input: (N, C * window, outputs) or (C * window, outputs).
    output_size: height and width of the images.
    kernel_size: height and width of the window.
    dilation: distance between the window's elements.
    padding: zeros that were added at all sides.
    stride: step between windows.)",
  .dtypes  = kFoldable,
  .variants = function,
  .forward = [](const Tensor& input, ShapeRef output_size, ShapeRef kernel_size, ShapeRef dilation,
                ShapeRef padding, ShapeRef stride) {
    Shape size = pair(output_size, "output_size", 1);
    Arguments a(kernel_size, dilation, padding, stride);
    bool batched = input.dim() == 3;
    CHECK(is_batch_or_one(input, 2),
          "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
          "dimensions for input, but got: ", input.sizes());
    Tensor images = call<"_col2im", Tensor>(batched ? input : unsqueeze(input, 0), ShapeRef(size),
                                            ShapeRef(a.kernel), ShapeRef(a.dilation),
                                            ShapeRef(a.padding), ShapeRef(a.stride));
    return batched ? images : squeeze(images, 0);
  },
})

}  // namespace rushlight
