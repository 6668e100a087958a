// Owns the pooling ops: maxima and means over windows of images; a sequence is an image one pixel
// high. What Python calls prepares sizes for four private ops, which call pool_kernel.cpp.
#include "core/ops/pool.h"

#include <limits>

#include "core/ops/op.h"

namespace rushlight {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
// What is compared or added as float32, float64 or int64.
constexpr DTypeSet poolable([](DType t) {
  return is_floating(t) || (is_integral(t) && t != DType::uint64);
});

// ---- windows -----------------------------------------------------------------------------------

void check_range(ShapeRef list, const char* name, int64_t least) {
  CHECK(list.size() == 2, name, " must have 2 numbers, but is ", ShapeText{list}, ".");
  for (int64_t value : list)
    CHECK(value >= least && value <= kLargest, name, " ", ShapeText{list},
          " is out of range: each number must be at least ", least, " and below 2^31.");
}

// The windows over images of this size; an empty kernel makes them adaptive.
PoolWindows2d make_windows(ShapeRef size, ShapeRef out, ShapeRef kernel, ShapeRef stride,
                           ShapeRef padding, ShapeRef dilation) {
  check_range(size, "image size", 1);
  check_range(out, "output size", 0);
  CHECK(size[0] * size[1] <= kLargest, "an image of ", size[0], " x ", size[1],
        " pixels is too large: it may have 2^31 - 1.");
  PoolWindows2d windows;
  if (kernel.empty()) {
    for (size_t d = 0; d < 2; ++d) {
      int64_t even = out[d] > 0 && size[d] % out[d] == 0 ? size[d] / out[d] : 0;
      windows[d] = {size[d], out[d], even, even, 0, 1};
    }
  } else {
    check_range(kernel, "kernel_size", 1);
    check_range(stride, "stride", 1);
    check_range(padding, "padding", 0);
    check_range(dilation, "dilation", 1);
    for (size_t d = 0; d < 2; ++d)
      windows[d] = {size[d], out[d], kernel[d], stride[d], padding[d], dilation[d]};
  }
  return windows;
}

ShapeRef image_size(const Shape& sizes) { return ShapeRef(sizes).last(2); }

void check_images(const Tensor& tensor) {
  CHECK(tensor.dim() == 4 && tensor.size(1) > 0, "expected a batch of images (N, C, H, W) with ",
        "channels, but got shape ", tensor.sizes(), ".");
}

// ---- what Python passes ------------------------------------------------------------------------

// Sequences or images, with or without a batch, as a batch of images; and back.
class ImageBatch {
 public:
  ImageBatch(const Tensor& input, int64_t dims) : dims_(dims), batched_(input.dim() == dims + 2) {
    bool has_elements = input.dim() > 1;
    for (int64_t d = batched_; has_elements && d < input.dim(); ++d)
      has_elements = input.size(d) > 0;
    CHECK(has_elements && (batched_ || input.dim() == dims + 1), "Expected ", dims + 1, "D or ",
          dims + 2, "D (batch mode) tensor with optional 0 dim batch size for input, but got: ",
          input.sizes());
    images_ = batched_ ? input : unsqueeze(input, 0);
    if (dims == 1) images_ = unsqueeze(images_, 2);
  }

  const Tensor& images() const { return images_; }
  Tensor restore(Tensor result) const {
    if (dims_ == 1) result = squeeze(result, 2);
    return batched_ ? result : squeeze(result, 0);
  }

 private:
  int64_t dims_;
  bool batched_;
  Tensor images_;
};

// An argument as two numbers: one may stand for both, and sequences have `first` for the height.
Shape pair(ShapeRef list, int64_t dims, int64_t first, const char* name) {
  CHECK(list.size() == 1 || int64_t(list.size()) == dims, name, " must have 1 or ", dims,
        " numbers, but is ", ShapeText{list}, ".");
  return {dims == 1 ? first : list[0], list.back()};
}

// The arguments of windows that are all alike.
struct Arguments {
  Shape kernel, stride, padding, dilation, out;

  Arguments(int64_t dims, const Tensor& images, ShapeRef kernel_size,
            const std::optional<ShapeRef>& steps, ShapeRef padding_, ShapeRef dilation_,
            bool ceil_mode)
      : kernel(pair(kernel_size, dims, 1, "kernel_size")),
        stride(steps && !steps->empty() ? pair(*steps, dims, 1, "stride") : kernel),
        padding(pair(padding_, dims, 0, "padding")),
        dilation(pair(dilation_, dims, 1, "dilation")) {
    check_range(kernel, "kernel_size", 1);
    check_range(stride, "stride", 1);
    check_range(padding, "padding", 0);
    check_range(dilation, "dilation", 1);
    for (size_t d = 0; d < 2; ++d) {
      int64_t span = dilation[d] * (kernel[d] - 1) + 1, size = images.sizes()[d + 2];
      CHECK(padding[d] <= span / 2,
            "pad should be at most half of effective kernel size, but got pad=", padding[d],
            ", kernel_size=", kernel[d], " and dilation=", dilation[d]);
      int64_t room = size + 2 * padding[d] - span;
      int64_t steps_inside = room < 0 ? -1 : room / stride[d];
      if (ceil_mode && room >= 0 && room % stride[d] != 0) ++steps_inside;
      if (ceil_mode && room < 0 && -room < stride[d]) steps_inside = 0;
      // A window must start inside the image or its padding before it.
      if (ceil_mode && steps_inside * stride[d] >= size + padding[d]) --steps_inside;
      out.push_back(steps_inside + 1);
    }
    CHECK(out[0] > 0 && out[1] > 0, "Given input size: ", images.sizes(),
          ". Calculated output size: ", out[0], " x ", out[1], ". Output size is too small");
  }
};

using Pair = std::tuple<Tensor, Tensor>;

Pair max_pool_nd(int64_t dims, const Tensor& input, ShapeRef kernel_size,
                 const std::optional<ShapeRef>& stride, ShapeRef padding, ShapeRef dilation,
                 bool ceil_mode) {
  ImageBatch batch(input, dims);
  Arguments a(dims, batch.images(), kernel_size, stride, padding, dilation, ceil_mode);
  auto [values, indices] =
      call<"_max_pool2d", Pair>(batch.images(), ShapeRef(a.out), ShapeRef(a.kernel),
                                ShapeRef(a.stride), ShapeRef(a.padding), ShapeRef(a.dilation));
  return {batch.restore(values), batch.restore(indices)};
}

Tensor avg_pool_nd(int64_t dims, const Tensor& input, ShapeRef kernel_size,
                   const std::optional<ShapeRef>& stride, ShapeRef padding, bool ceil_mode,
                   bool count_include_pad, std::optional<int64_t> divisor) {
  CHECK(!divisor || *divisor != 0, "divisor must be not zero");
  ImageBatch batch(input, dims);
  Arguments a(dims, batch.images(), kernel_size, stride, padding, Shape{1}, ceil_mode);
  return batch.restore(call<"_avg_pool2d", Tensor>(
      batch.images(), ShapeRef(a.out), ShapeRef(a.kernel), ShapeRef(a.stride), ShapeRef(a.padding),
      count_include_pad, divisor.value_or(0)));
}

Pair adaptive_max_pool_nd(int64_t dims, const Tensor& input, ShapeRef output_size) {
  ImageBatch batch(input, dims);
  Shape out = pair(output_size, dims, 1, "output_size");
  auto [values, indices] = call<"_max_pool2d", Pair>(batch.images(), ShapeRef(out), ShapeRef(),
                                                     ShapeRef(), ShapeRef(), ShapeRef());
  return {batch.restore(values), batch.restore(indices)};
}

Tensor adaptive_avg_pool_nd(int64_t dims, const Tensor& input, ShapeRef output_size) {
  ImageBatch batch(input, dims);
  Shape out = pair(output_size, dims, 1, "output_size");
  if (out[0] == 1 && out[1] == 1) return batch.restore(mean(batch.images(), Shape{2, 3}, true));
  return batch.restore(call<"_avg_pool2d", Tensor>(batch.images(), ShapeRef(out), ShapeRef(),
                                                   ShapeRef(), ShapeRef(), true, int64_t(0)));
}

Pair with_long_indices(const Pair& pooled) {
  return {std::get<0>(pooled), cast(std::get<1>(pooled), DType::int64)};
}

}  // namespace

OP(_max_pool2d,
   "(Tensor input, int[] out, int[] kernel_size, int[] stride, int[] padding, int[] dilation) -> "
   "(Tensor values, Tensor indices)", {
  .home    = "private",
  .doc     = R"(The maxima over windows of images, and their places (int32) in the flattened image.

An empty kernel_size gives adaptive windows; the numbers after it are then not read.)",
  .dtypes  = poolable,
  .batch   = by_images,
  .forward = [](const Tensor& input, ShapeRef out, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef padding, ShapeRef dilation) {
    check_images(input);
    PoolWindows2d windows =
        make_windows(image_size(input.sizes()), out, kernel_size, stride, padding, dilation);
    auto [values, indices] = max_pool_kernel(windows, input);
    return std::tuple(values, indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& size,
                                 const Shape&, const Shape& kernel_size, const Shape& stride,
                                 const Shape& padding, const Shape& dilation) {
    return call<"_max_pool2d_backward", Tensor>(g[0], indices, image_size(size),
                                                ShapeRef(kernel_size), ShapeRef(stride),
                                                ShapeRef(padding), ShapeRef(dilation));
  })),
})

OP(_max_pool2d_backward,
   "(Tensor grad, Tensor indices, int[] size, int[] kernel_size, int[] stride, int[] padding, "
   "int[] dilation) -> Tensor", {
  .home    = "private",
  .doc     = R"(Images of `size` with each element of grad added to the place that indices names.

The indices must be those that _max_pool2d found with the same windows.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, ShapeRef size,
                ShapeRef kernel_size, ShapeRef stride, ShapeRef padding, ShapeRef dilation) {
    Tensor grad = batch.full("grad");
    auto joined = [](const Tensor& t) {
      return call<"flatten", Tensor>(t, int64_t(0), int64_t(1));
    };
    Tensor images = call<"_max_pool2d_backward", Tensor>(
        joined(grad), joined(batch.full("indices")), size, kernel_size, stride, padding, dilation);
    Shape parts{grad.size(0), grad.size(1)};
    return call<"unflatten", Tensor>(images, int64_t(0), ShapeRef(parts));
  },
  .forward = [](const Tensor& grad, const Tensor& indices, ShapeRef size, ShapeRef kernel_size,
                ShapeRef stride, ShapeRef padding, ShapeRef dilation) {
    check_images(grad);
    CHECK(indices.sizes() == grad.sizes() && indices.dtype() == DType::int32,
          "indices must be int32 of the shape of grad, but have shape ", indices.sizes(),
          " and dtype ", dtype_name(indices.dtype()), ".");
    PoolWindows2d windows = make_windows(size, image_size(grad.sizes()), kernel_size, stride,
                                         padding, dilation);
    return max_pool_backward_kernel(windows, grad, indices);
  },
  .saves   = saves<"indices">,
  .grads   = grads(
    d<"grad">([](const Tensor& g, const Tensor& indices, const Shape&, const Shape&, const Shape&,
                 const Shape&, const Shape&) {
      Shape planes{indices.size(0), indices.size(1), indices.size(2) * indices.size(3)};
      Tensor places = reshape(cast(indices, DType::int64), planes);
      Tensor pixels = reshape(g, Shape{g.size(0), g.size(1), g.size(2) * g.size(3)});
      return reshape(gather(pixels, 2, places), indices.sizes());
    }),
    no_grad<"indices">),
})

OP(_avg_pool2d,
   "(Tensor input, int[] out, int[] kernel_size, int[] stride, int[] padding, "
   "bool count_include_pad, int divisor) -> Tensor", {
  .home    = "private",
  .doc     = R"(The sums over windows of images, over the divisor or, if it is 0, the window's size.

An empty kernel_size gives adaptive windows; stride and padding are then not read.)",
  .dtypes  = poolable,
  .batch   = by_images,
  .forward = [](const Tensor& input, ShapeRef out, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef padding, bool count_include_pad, int64_t divisor) {
    check_images(input);
    PoolWindows2d windows =
        make_windows(image_size(input.sizes()), out, kernel_size, stride, padding, Shape{1, 1});
    return avg_pool_kernel(windows, {divisor, count_include_pad}, input);
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& size, const Shape&,
                                 const Shape& kernel_size, const Shape& stride,
                                 const Shape& padding, bool count_include_pad, int64_t divisor) {
    return call<"_avg_pool2d_backward", Tensor>(g, image_size(size), ShapeRef(kernel_size),
                                                ShapeRef(stride), ShapeRef(padding),
                                                count_include_pad, divisor);
  })),
})

OP(_avg_pool2d_backward,
   "(Tensor grad, int[] size, int[] kernel_size, int[] stride, int[] padding, "
   "bool count_include_pad, int divisor) -> Tensor", {
  .home    = "private",
  .doc     = R"(The gradient of _avg_pool2d for images of `size`.)",
  .dtypes  = floating,
  .batch   = by_images,
  .forward = [](const Tensor& grad, ShapeRef size, ShapeRef kernel_size, ShapeRef stride,
                ShapeRef padding, bool count_include_pad, int64_t divisor) {
    check_images(grad);
    PoolWindows2d windows = make_windows(size, image_size(grad.sizes()), kernel_size, stride,
                                         padding, Shape{1, 1});
    return avg_pool_backward_kernel(windows, {divisor, count_include_pad}, grad);
  },
  .saves   = saves<"grad.shape">,
  .grads   = grads(d<"grad">([](const Tensor& g, const Shape& out, const Shape&,
                                const Shape& kernel_size, const Shape& stride,
                                const Shape& padding, bool count_include_pad, int64_t divisor) {
    return call<"_avg_pool2d", Tensor>(g, image_size(out), ShapeRef(kernel_size), ShapeRef(stride),
                                       ShapeRef(padding), count_include_pad, divisor);
  })),
})

OP(max_pool1d,
   "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The maxima over windows of sequences.

Output length: floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, rounded up
with ceil_mode.

Args:
    input: (N, C, L) or (C, L).
    kernel_size: length of the window.
    stride: step between windows; kernel_size if None.
    padding: -inf added at both ends, at most half of the window.
    dilation: distance between the window's elements.
    ceil_mode: whether a window may overhang the end.)",
  .dtypes  = poolable,
  .forward = [](const Tensor& input, ShapeRef kernel_size, std::optional<ShapeRef> stride,
                ShapeRef padding, ShapeRef dilation, bool ceil_mode) {
    return std::get<0>(max_pool_nd(1, input, kernel_size, stride, padding, dilation, ceil_mode));
  },
})

OP(max_pool1d_with_indices,
   "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, "
   "bool ceil_mode=False) -> (Tensor, Tensor)", {
  .home    = "torch nn.functional",
  .doc     = R"(What max_pool1d returns, and the places of the maxima in their sequences.)",
  .dtypes  = poolable,
  .forward = [](const Tensor& input, ShapeRef kernel_size, std::optional<ShapeRef> stride,
                ShapeRef padding, ShapeRef dilation, bool ceil_mode) {
    return with_long_indices(
        max_pool_nd(1, input, kernel_size, stride, padding, dilation, ceil_mode));
  },
})

OP(max_pool2d,
   "(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, "
   "bool ceil_mode=False) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The maxima over windows of images.

Output height: floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1, rounded up
with ceil_mode, and likewise the width.

Args:
    input: (N, C, H, W) or (C, H, W).
    kernel_size: height and width of the window.
    stride: step between windows; kernel_size if None.
    padding: -inf added at all sides, at most half of the window.
    dilation: distance between the window's elements.
    ceil_mode: whether a window may overhang the image.)",
  .dtypes  = poolable,
  .forward = [](const Tensor& input, ShapeRef kernel_size, std::optional<ShapeRef> stride,
                ShapeRef padding, ShapeRef dilation, bool ceil_mode) {
    return std::get<0>(max_pool_nd(2, input, kernel_size, stride, padding, dilation, ceil_mode));
  },
})

OP(max_pool2d_with_indices,
   "(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, "
   "bool ceil_mode=False) -> (Tensor, Tensor)", {
  .home    = "torch nn.functional",
  .doc     = R"(What max_pool2d returns, and the places of the maxima in their flattened images.)",
  .dtypes  = poolable,
  .forward = [](const Tensor& input, ShapeRef kernel_size, std::optional<ShapeRef> stride,
                ShapeRef padding, ShapeRef dilation, bool ceil_mode) {
    return with_long_indices(
        max_pool_nd(2, input, kernel_size, stride, padding, dilation, ceil_mode));
  },
})

OP(avg_pool1d,
   "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
   "bool ceil_mode=False, bool count_include_pad=True) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The means over windows of sequences.

Output length: floor((L + 2 * padding - kernel_size) / stride) + 1, rounded up with ceil_mode.

Args:
    input: (N, C, L) or (C, L).
    kernel_size: length of the window.
    stride: step between windows; kernel_size if None.
    padding: zeros added at both ends, at most half of the window.
    ceil_mode: whether a window may overhang the end.
    count_include_pad: whether the padding counts among the elements.)",
  .dtypes  = poolable,
  .forward = [](const Tensor& input, ShapeRef kernel_size, std::optional<ShapeRef> stride,
                ShapeRef padding, bool ceil_mode, bool count_include_pad) {
    return avg_pool_nd(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, {});
  },
})

OP(avg_pool2d,
   "(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
   "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The means over windows of images.

Output height: floor((H + 2 * padding - kernel_size) / stride) + 1, rounded up with ceil_mode, and
likewise the width.

Args:
    input: (N, C, H, W) or (C, H, W).
    kernel_size: height and width of the window.
    stride: step between windows; kernel_size if None.
    padding: zeros added at all sides, at most half of the window.
    ceil_mode: whether a window may overhang the image.
    count_include_pad: whether the padding counts among the elements.
    divisor_override: what to divide the sums by instead; integers are rounded towards zero.)",
  .dtypes  = poolable,
  .forward = [](const Tensor& input, ShapeRef kernel_size, std::optional<ShapeRef> stride,
                ShapeRef padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor_override) {
    return avg_pool_nd(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                       divisor_override);
  },
})

OP(adaptive_avg_pool1d, "(Tensor input, int[1] output_size) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(The means of `output_size` windows that share a sequence out as evenly as they can.

Output i is the mean of the elements from floor(i * L / output_size) to below
ceil((i + 1) * L / output_size).)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, ShapeRef output_size) {
    return adaptive_avg_pool_nd(1, input, output_size);
  },
})

OP(adaptive_avg_pool2d, "(Tensor input, int[2] output_size) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The means of `output_size` windows that share an image out as evenly as they can.

Along each dim, output i covers the elements from floor(i * size / output_size) to below
ceil((i + 1) * size / output_size).)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, ShapeRef output_size) {
    return adaptive_avg_pool_nd(2, input, output_size);
  },
})

OP(adaptive_max_pool1d_with_indices, "(Tensor input, int[1] output_size) -> (Tensor, Tensor)", {
  .home    = "nn.functional",
  .doc     = R"(The maxima of the windows of adaptive_avg_pool1d, and their places.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, ShapeRef output_size) {
    return with_long_indices(adaptive_max_pool_nd(1, input, output_size));
  },
})

OP(adaptive_max_pool2d_with_indices, "(Tensor input, int[2] output_size) -> (Tensor, Tensor)", {
  .home    = "nn.functional",
  .doc     = R"(The maxima of the windows of adaptive_avg_pool2d, and their places.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, ShapeRef output_size) {
    return with_long_indices(adaptive_max_pool_nd(2, input, output_size));
  },
})

}  // namespace rushlight
