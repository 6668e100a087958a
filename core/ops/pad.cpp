// Owns padding: elements added around the last dims, or taken away.
//
// The amounts of a pad are those before and after, of the last dim first. Continued edges are
// resampling with one input per output, so their gradient is that of resample.h.
#include "core/ops/op.h"
#include "core/ops/resample/resample.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// How many dims are padded; checks that no size becomes negative.
int64_t padded_dims(const Tensor& input, ShapeRef pad) {
  CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2, but got ", pad.size(), ".");
  int64_t dims = int64_t(pad.size() / 2);
  CHECK(dims <= input.dim(), "Padding length should be less than or equal to two times the input ",
        "dimension but got padding length ", pad.size(), " and input of dimension ", input.dim(),
        ".");
  for (int64_t i = 0; i < dims; ++i) {
    int64_t size = input.size(-1 - i), before = pad[size_t(2 * i)], after = pad[size_t(2 * i + 1)];
    int64_t sum;
    bool fits = !__builtin_add_overflow(before, after, &sum) &&
                !__builtin_add_overflow(sum, size, &sum) && sum >= 0 &&
                std::min(before, after) >= -size;
    CHECK(fits, "dimension ", -1 - i, " of input ", input.sizes(), " has ", size,
          " elements; padding (", before, ", ", after,
          ") would leave a negative number of them, or too many.");
  }
  return dims;
}

int64_t added(int64_t amount) { return std::max<int64_t>(amount, 0); }

// The window of `whole` where a padded tensor holds elements of the input, or with -pad the window
// of the input that it holds.
Tensor window(const Tensor& whole, ShapeRef pad, int64_t sign) {
  Shape sizes = whole.sizes();
  int64_t offset = whole.offset();
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    size_t dim = sizes.size() - 1 - i;
    int64_t before = sign * pad[2 * i], after = sign * pad[2 * i + 1];
    sizes[dim] = std::max<int64_t>(0, sizes[dim] - added(before) - added(after));
    offset += added(before) * whole.strides()[dim];
  }
  return alias(whole, sizes, whole.strides(), checked_numel(sizes) == 0 ? whole.offset() : offset);
}

Shape padded_sizes(const Tensor& input, ShapeRef pad) {
  Shape sizes = input.sizes();
  for (size_t i = 0; i < pad.size() / 2; ++i)
    sizes[sizes.size() - 1 - i] += pad[2 * i] + pad[2 * i + 1];
  return sizes;
}

// The axes of the dims that are padded, with `sizes` those of the input.
std::vector<ResampleAxis> pad_axes(ShapeRef sizes, ShapeRef pad, std::string_view mode) {
  std::vector<ResampleAxis> axes;
  for (size_t i = pad.size() / 2; i-- > 0;)
    axes.push_back(pad_axis(mode, sizes[sizes.size() - 1 - i], pad[2 * i], pad[2 * i + 1]));
  return axes;
}

void check_continued(const Tensor& input, ShapeRef pad, std::string_view mode) {
  CHECK(mode == "reflect" || mode == "replicate" || mode == "circular", ErrorKind::kNotImplemented,
        "Unrecognized padding mode ", mode, ". Use constant, reflect, replicate or circular.");
  int64_t dims = padded_dims(input, pad);
  CHECK(dims <= 3, ErrorKind::kNotImplemented, "Only 2D, 3D, 4D, 5D padding with non-constant ",
        "padding are supported for now, but the padding ", ShapeText{pad}, " is for ", dims,
        " dims.");
  for (int64_t i = 0; i < dims; ++i) {
    int64_t size = input.size(-1 - i), before = pad[size_t(2 * i)], after = pad[size_t(2 * i + 1)];
    int64_t most = std::max(before, after);
    int64_t limit = mode == "reflect" ? size - 1 : mode == "circular" ? size : most;
    bool has_rest = size > added(-before) + added(-after) || (before == 0 && after == 0);
    CHECK(std::max(size, size + before + after) < int64_t(1) << 31, "dimension ", -1 - i,
          " of input ", input.sizes(), " with padding (", before, ", ", after,
          ") is too large: it must be below 2^31.");
    CHECK(most <= limit && (mode == "circular" ? has_rest : size > 0),
          "Padding size should be at most ", limit, " for mode ", mode, " and a dimension of size ",
          size, ", but got (", before, ", ", after, ").");
  }
}

Shape negated(ShapeRef pad) {
  Shape other;
  for (int64_t amount : pad) other.push_back(-amount);
  return other;
}

}  // namespace

OP(constant_pad_nd, "(Tensor input, int[] pad, Scalar value=0) -> Tensor", {
  .doc     = R"(The input with elements of one value added around its last dims.

Args:
    input: any shape.
    pad: amounts before and after, for the last dimension, then the one before it, and so on;
        negative amounts take elements away.
    value: what is added.)",
  .variants = function,
  .batch   = by_last_dims,
  .forward = [](const Tensor& input, ShapeRef pad, Scalar value) {
    padded_dims(input, pad);
    Tensor kept = window(input, pad, -1);
    bool grows = std::any_of(pad.begin(), pad.end(), [](int64_t amount) { return amount > 0; });
    if (!grows) return clone_dense(kept, MemoryFormat::preserve);
    Shape sizes = padded_sizes(input, pad);
    Shape strides = strides_for(sizes, format_of(input, input.dim() - 2));
    Tensor result = empty_strided(sizes, strides, input.dtype(), input.device());
    if (result.numel() == 0 || result.device().is_meta()) return result;
    copy_into(result, scalar_tensor(value, result.dtype()));
    Tensor inside = window(result, pad, 1);
    if (inside.numel() != 0) copy_into(inside, kept);
    return result;
  },
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& pad, const Scalar&) {
    Shape back = negated(pad);
    return call<"constant_pad_nd", Tensor>(g, ShapeRef(back), Scalar(0));
  })),
})

OP(_continue_edges, "(Tensor input, int[] pad, str mode) -> Tensor", {
  .home    = "core",
  .doc     = R"(The input with edges continued by its own elements, over one to three last dims.)",
  .batch   = by_last_dims,
  .forward = [](const Tensor& input, ShapeRef pad, std::string_view mode) {
    check_continued(input, pad, mode);
    if (input.device().is_cpu()) return continue_edges_on_cpu(input, pad, mode);
    Shape sizes = padded_sizes(input, pad);
    return resample_kernel(input, ShapeRef(sizes).last(pad.size() / 2),
                           [&] { return pad_axes(input.sizes(), pad, mode); });
  },
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& pad, const std::string& mode) {
    return call<"_continue_edges_backward", Tensor>(g, ShapeRef(pad), std::string_view(mode));
  })),
})

OP(_continue_edges_backward, "(Tensor grad, int[] pad, str mode) -> Tensor", {
  .home    = "core",
  .doc     = R"(The gradient of _continue_edges.)",
  .dtypes  = floating_or_complex,
  .batch   = by_last_dims,
  .forward = [](const Tensor& grad, ShapeRef pad, std::string_view mode) {
    Shape back = negated(pad), sizes = padded_sizes(grad, back);
    return resample_kernel(grad, ShapeRef(sizes).last(pad.size() / 2), [&] {
      std::vector<ResampleAxis> axes = pad_axes(sizes, pad, mode);
      for (ResampleAxis& axis : axes) axis = axis.transposed();
      return axes;
    });
  },
  .grads   = grads(d<"grad">([](const Tensor& g, const Shape& pad, const std::string& mode) {
    return call<"_continue_edges", Tensor>(g, ShapeRef(pad), std::string_view(mode));
  })),
})

OP(pad, "(Tensor input, int[] pad, str mode='constant', Scalar? value=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The input with elements added around its last dims.

Args:
    input: any shape.
    pad: amounts before and after, for the last dimension, then the one before it, and so on;
        negative amounts take elements away.
    mode: "constant" adds value; "reflect" mirrors without repeating the edge; "replicate"
        repeats the edge; "circular" goes around.
    value: what "constant" adds; 0 if None.

Raises:
    RuntimeError: if pad has an odd length or more entries than input has ends, or takes away
        more than there is.
    NotImplementedError: for an unknown mode.)",
  .variants = function,
  .forward = [](const Tensor& input, ShapeRef pad, std::string_view mode,
                std::optional<Scalar> value) {
    if (mode == "constant")
      return call<"constant_pad_nd", Tensor>(input, pad, value.value_or(Scalar(0)));
    check_continued(input, pad, mode);
    if (pad.empty()) return clone(input);
    return call<"_continue_edges", Tensor>(input, pad, mode);
  },
})

}  // namespace rushlight
