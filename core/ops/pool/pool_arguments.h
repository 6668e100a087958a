// Owns what Python passes to pooling: sequences, images or volumes with or without a batch, and the
// numbers that say where the windows lie.
#pragma once

#include <optional>
#include <tuple>

#include "core/ops/value.h"
#include "core/ops/window_numbers.h"

namespace rushlight {

// What is compared or added as float32, float64 or int64.
inline constexpr DTypeSet kPoolable([](DType t) {
  return is_floating(t) || (is_integral(t) && t != DType::uint64);
});

// Tensors of `dims` spatial dims as a batch of images or volumes, and back. A sequence is an image
// of one row.
class PoolBatch {
 public:
  PoolBatch(const Tensor& input, int64_t dims);

  const Tensor& volumes() const { return volumes_; }
  Tensor restore(Tensor result) const;

 private:
  int64_t dims_;
  bool batched_;
  Tensor volumes_;
};

// An argument as one number for each dim of the images or volumes: one may stand for all, and
// sequences have `first` for the height.
Shape pool_numbers(ShapeRef list, int64_t dims, int64_t first, const char* name);

// The arguments of windows that are all alike.
struct PoolArguments {
  Shape kernel, stride, padding, dilation, out;

  PoolArguments(int64_t dims, const Tensor& volumes, ShapeRef kernel_size,
                const std::optional<ShapeRef>& steps, ShapeRef padding, ShapeRef dilation,
                bool ceil_mode);
};

// The maxima of windows over `dims` spatial dims, and their places as int32, which may be missing
// unless they are asked for.
std::tuple<Tensor, Tensor> max_pool_nd(int64_t dims, const Tensor& input, ShapeRef kernel_size,
                                       const std::optional<ShapeRef>& stride, ShapeRef padding,
                                       ShapeRef dilation, bool ceil_mode, bool with_indices);

}  // namespace rushlight
