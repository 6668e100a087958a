// Defines the reading of pooling's arguments.
#include "core/ops/pool/pool_arguments.h"

#include "core/ops/ops.h"

namespace rushlight {

PoolBatch::PoolBatch(const Tensor& input, int64_t dims)
    : dims_(dims), batched_(input.dim() == dims + 2) {
  bool has_elements = input.dim() > 1;
  for (int64_t d = batched_; has_elements && d < input.dim(); ++d) has_elements = input.size(d) > 0;
  CHECK(has_elements && (batched_ || input.dim() == dims + 1), "Expected ", dims + 1, "D or ",
        dims + 2,
        "D (batch mode) tensor with optional 0 dim batch size for input, but got: ", input.sizes());
  volumes_ = batched_ ? input : unsqueeze(input, 0);
  if (dims == 1) volumes_ = unsqueeze(volumes_, 2);
}

Tensor PoolBatch::restore(Tensor result) const {
  if (dims_ == 1) result = squeeze(result, 2);
  return batched_ ? result : squeeze(result, 0);
}

Shape pool_numbers(ShapeRef list, int64_t dims, int64_t first, const char* name) {
  CHECK(list.size() == 1 || int64_t(list.size()) == dims, name, " must have 1 or ", dims,
        " numbers, but is ", ShapeText{list}, ".");
  if (dims == 1) return {first, list[0]};
  return list.size() == 1 ? Shape(size_t(dims), list[0]) : Shape(list);
}

PoolArguments::PoolArguments(int64_t dims, const Tensor& volumes, ShapeRef kernel_size,
                             const std::optional<ShapeRef>& steps, ShapeRef padding_,
                             ShapeRef dilation_, bool ceil_mode)
    : kernel(pool_numbers(kernel_size, dims, 1, "kernel_size")),
      stride(steps && !steps->empty() ? pool_numbers(*steps, dims, 1, "stride") : kernel),
      padding(pool_numbers(padding_, dims, 0, "padding")),
      dilation(pool_numbers(dilation_, dims, 1, "dilation")) {
  size_t count = kernel.size();
  check_window_numbers(kernel, count, "kernel_size", 1);
  check_window_numbers(stride, count, "stride", 1);
  check_window_numbers(padding, count, "padding", 0);
  check_window_numbers(dilation, count, "dilation", 1);
  for (size_t d = 0; d < count; ++d) {
    int64_t span = dilation[d] * (kernel[d] - 1) + 1, size = volumes.sizes()[d + 2];
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
  for (int64_t outputs : out)
    CHECK(outputs > 0, "Given input size: ", volumes.sizes(),
          ". Calculated output size: ", ShapeText{out}, ". Output size is too small");
}

}  // namespace rushlight
