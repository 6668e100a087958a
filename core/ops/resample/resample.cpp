// Owns the ops that resize images, as PyTorch's interpolate does: one op and its gradient for all
// ways and numbers of dims. What Python calls is in rushlight/nn/_vision.py.
#include "core/ops/resample/resample.h"

#include "core/ops/op.h"

namespace rushlight {
namespace {

// Integers have no fractions to hold what lies between them, but bytes of images are common.
constexpr DTypeSet resizable([](DType t) { return is_floating(t) || t == DType::uint8; });

using Scale = std::optional<double>;

// The axes that resize the last dims, from sizes to sizes.
std::vector<ResampleAxis> resize_axes(ShapeRef from, ShapeRef to, const Resizing& how,
                                      const Scale (&scales)[3]) {
  std::vector<ResampleAxis> axes;
  for (size_t d = 0; d < to.size(); ++d)
    axes.push_back(resize_axis(how, from[d], to[d], scales[3 - to.size() + d]));
  return axes;
}

void check_resized(const Tensor& tensor, ShapeRef size) {
  size_t dims = size.size();
  CHECK(dims >= 1 && dims <= 3 && tensor.dim() > int64_t(dims),
        "expected 1 to 3 sizes and dims before those that are resized, but got size ",
        ShapeText{size}, " for shape ", tensor.sizes(), ".");
  for (size_t d = 0; d < dims; ++d) {
    int64_t from = ShapeRef(tensor.sizes()).last(dims)[d], to = size[d];
    CHECK(from > 0 && to > 0,
          "Input and output sizes should be greater than 0, but got input size ", from,
          " and output size ", to, ".");
    CHECK(from < int64_t(1) << 31 && to < int64_t(1) << 31, "sizes ", from, " and ", to,
          " are out of range: each must be below 2^31.");
  }
}

}  // namespace

OP(_interpolate,
   "(Tensor input, int[] size, str mode='nearest', bool align_corners=False, "
   "bool antialias=False, float? scale_d=None, float? scale_h=None, float? scale_w=None) -> Tensor",
   {
  .home    = "nn.functional",
  .doc     = R"(Images of another size: what nn.functional.interpolate runs.

Args:
    input: (N, C, ...) with as many dims after the channels as size has numbers, one to three.
    size: the sizes of the output.
    mode: "nearest", "nearest-exact", "linear", "cubic" or "area", for any number of dims.
    align_corners: whether the centers of corner pixels fall on each other, and not their corners.
    antialias: whether the kernel is widened to cover all inputs when images shrink.
    scale_d: output over input for the depth; that of the sizes if None.
    scale_h: the same for the rows.
    scale_w: the same for the columns.)",
  .dtypes  = resizable,
  .variants = function,
  .batch   = by_last_dims,
  .forward = [](const Tensor& input, ShapeRef size, std::string_view mode, bool align_corners,
                bool antialias, Scale scale_d, Scale scale_h, Scale scale_w) {
    check_resized(input, size);
    return resample_kernel(input, size, [&] {
      return resize_axes(ShapeRef(input.sizes()).last(size.size()), size,
                         {mode, align_corners, antialias}, {scale_d, scale_h, scale_w});
    });
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& input, const Shape& size,
                                 const std::string& mode, bool align_corners, bool antialias,
                                 Scale scale_d, Scale scale_h, Scale scale_w) {
    return call<"_interpolate_backward", Tensor>(g, ShapeRef(input).last(size.size()),
                                                 std::string_view(mode), align_corners, antialias,
                                                 scale_d, scale_h, scale_w);
  })),
})

OP(_interpolate_backward,
   "(Tensor grad, int[] size, str mode, bool align_corners, bool antialias, float? scale_d, "
   "float? scale_h, float? scale_w) -> Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of _interpolate for inputs of `size`.)",
  .dtypes  = floating,
  .batch   = by_last_dims,
  .forward = [](const Tensor& grad, ShapeRef size, std::string_view mode, bool align_corners,
                bool antialias, Scale scale_d, Scale scale_h, Scale scale_w) {
    check_resized(grad, size);
    return resample_kernel(grad, size, [&] {
      std::vector<ResampleAxis> axes =
          resize_axes(size, ShapeRef(grad.sizes()).last(size.size()),
                      {mode, align_corners, antialias}, {scale_d, scale_h, scale_w});
      for (ResampleAxis& axis : axes) axis = axis.transposed();
      return axes;
    });
  },
  .saves   = saves<"grad.shape">,
  .grads   = grads(d<"grad">([](const Tensor& g, const Shape& out, const Shape& size,
                                const std::string& mode, bool align_corners, bool antialias,
                                Scale scale_d, Scale scale_h, Scale scale_w) {
    return call<"_interpolate", Tensor>(g, ShapeRef(out).last(size.size()), std::string_view(mode),
                                        align_corners, antialias, scale_d, scale_h, scale_w);
  })),
})

}  // namespace rushlight
