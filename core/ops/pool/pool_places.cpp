// Owns pooling by places: maxima over windows that lie at random, and the inverse of max pooling.
// Both are made of gather and scatter.
#include "core/autograd/node.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/pool/pool_arguments.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

Tensor flat_pixels(const Tensor& volumes) {
  return call<"flatten", Tensor>(volumes, int64_t(2), int64_t(-1));
}

Tensor count_to(int64_t n, DType dtype, Device device) {
  return call<"arange", Tensor>(Scalar(n), std::optional(dtype), std::optional(device));
}

// Where the windows along a dim begin, from a number in [0, 1) for each channel: (N, C, out).
// Graham 2014, "Fractional max-pooling", section 2: steps of two lengths in pseudorandom order.
Tensor random_begins(const Tensor& samples, int64_t size, int64_t kernel, int64_t out) {
  Tensor last = expand(full(Shape{1, 1, 1}, size - kernel, DType::int64, samples.device()),
                       Shape{samples.size(0), samples.size(1), 1});
  if (out <= 1) return narrow(last, 2, 0, out);
  Scalar step(double(size - kernel) / double(out - 1));
  Tensor start = unsqueeze(samples, -1);
  Tensor number = count_to(out - 1, samples.dtype(), samples.device());
  Tensor begins = trunc((number + start) * step) - trunc(start * step);
  const Tensor parts[] = {cast(begins, DType::int64), last};
  return cat(parts, -1);
}

// The places of the pixels of all windows in the flattened input: (N, C, windows, pixels).
Tensor random_windows(const Tensor& input, const Tensor& samples, ShapeRef kernel, ShapeRef out) {
  size_t dims = kernel.size();
  Tensor places;
  int64_t windows = 1, pixels = 1;
  for (size_t d = 0; d < dims; ++d) {
    // Images have the number of their columns first, as PyTorch has it.
    int64_t column = int64_t(dims == 2 ? 1 - d : d);
    int64_t size = input.size(int64_t(d) + 2);
    Tensor begins =
        random_begins(call<"select", Tensor>(samples, int64_t(2), column), size, kernel[d], out[d]);
    Tensor along = unsqueeze(begins, -1) + count_to(kernel[d], DType::int64, input.device());
    Shape shape{samples.size(0), samples.size(1)};
    shape.resize(2 + 2 * dims, 1);
    shape[2 + d] = out[d];
    shape[2 + dims + d] = kernel[d];
    along = reshape(along, shape);
    places = places.defined() ? places * Scalar(size) + along : along;
    windows *= out[d];
    pixels *= kernel[d];
  }
  return reshape(places, Shape{input.size(0), input.size(1), windows, pixels});
}

}  // namespace

OP(_fractional_max_pool,
   "(Tensor input, Tensor samples, int[] kernel_size, int[] output_size) -> "
   "(Tensor values, Tensor indices)", {
  .home    = "private",
  .doc     = R"(Maxima over windows at random places, and their places in the flattened input.

Args:
    input: a batch of images or volumes, (N, C, ...).
    samples: (N, C, spatial dims), numbers in [0, 1) that say where the windows lie.
    kernel_size: sizes of the window.
    output_size: how many windows there are along each dim.)",
  .dtypes  = floating,
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& samples, ShapeRef kernel_size,
                ShapeRef output_size) {
    size_t dims = kernel_size.size();
    CHECK((dims == 2 || dims == 3) && input.dim() == int64_t(dims) + 2, "Expected a batch of ",
          "images (N, C, H, W) or volumes (N, C, D, H, W), but got shape ", input.sizes(), ".");
    check_window_numbers(kernel_size, dims, "kernel_size", 1);
    check_window_numbers(output_size, dims, "output_size", 0);
    CHECK(samples.sizes() == (Shape{input.size(0), input.size(1), int64_t(dims)}),
          "_random_samples must have shape (", input.size(0), ", ", input.size(1), ", ", dims,
          "), but has ", samples.sizes(), ".");
    for (size_t d = 0; d < dims; ++d)
      CHECK(output_size[d] + kernel_size[d] - 1 <= input.size(int64_t(d) + 2), "pool size ",
            ShapeText{kernel_size}, " too large relative to input size ", input.sizes(),
            ": an output of ", ShapeText{output_size}, " does not fit.");
    Tensor pixels = flat_pixels(input);
    Tensor precise = cast(detach(samples), compute_dtype(input.dtype()));
    Tensor places = random_windows(input, precise, kernel_size, output_size);
    Shape each{places.size(0), places.size(1), places.size(2) * places.size(3)};
    Tensor candidates = reshape(gather(detach(pixels), 2, reshape(places, each)), places.sizes());
    Tensor best = call<"argmax", Tensor>(candidates, std::optional(int64_t(-1)), true);
    Tensor chosen = squeeze(gather(places, 3, best), 3);
    Shape sizes{input.size(0), input.size(1)};
    for (int64_t out : output_size) sizes.push_back(out);
    return std::tuple(reshape(gather(pixels, 2, chosen), sizes), reshape(chosen, sizes));
  },
})

OP(_max_unpool, "(Tensor input, Tensor indices, int[] output_size) -> Tensor", {
  .home    = "private",
  .doc     = R"(Zeros of `output_size` with each element of a batch at the place that indices names.

The places count the pixels of a flattened image or volume, as max pooling returns them.)",
  .dtypes  = numeric,
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, const Tensor& indices, ShapeRef output_size) {
    CHECK(indices.dtype() == DType::int64, "elements in indices should be type int64 but got: ",
          dtype_name(indices.dtype()));
    CHECK(input.dim() >= 3 && input.dim() == int64_t(output_size.size()) + 2,
          "input must have a batch, channels and ", output_size.size(),
          " more dims, but has shape ", input.sizes(), ".");
    CHECK(indices.sizes() == input.sizes(), "Expected shape of indices to be same as that of the ",
          "input tensor (", input.sizes(), ") but got indices tensor with shape: ",
          indices.sizes());
    Shape sizes{input.size(0), input.size(1)};
    for (int64_t size : output_size) {
      CHECK(size >= 0, "output_size ", ShapeText{output_size}, " must not be negative.");
      sizes.push_back(size);
    }
    checked_numel(sizes);
    int64_t pixels = checked_numel(output_size);
    Tensor outside = (indices < Scalar(0)) | (indices >= Scalar(pixels));
    CHECK(indices.device().is_meta() || all_true(logical_not(outside)),
          "Found an invalid max index: output volumes are of size ", ShapeText{output_size},
          ", so indices must be 0 to ", pixels - 1, ".");
    Tensor empty = new_zeros(input, Shape{input.size(0), input.size(1), pixels});
    Tensor filled = call<"scatter", Tensor>(empty, int64_t(2), flat_pixels(indices),
                                            flat_pixels(input), std::optional<std::string_view>());
    return call<"contiguous", Tensor>(reshape(filled, sizes),
                                      std::optional(suggested_format(input)));
  },
})

}  // namespace rushlight
