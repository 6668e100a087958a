// Owns pooling over regions of interest (rois): how each bin of a roi looks at an image, and the
// kernels that sum or compare what it sees.
//
// Shapes: input (N, C, H, W), rois (R, 5) of (image, x1, y1, x2, y2), result (R, C_out, bins down,
// bins across). Where each output channel looks at planes of its own, C = C_out * bins. Every rule
// is one per axis, so a bin is a product of a few rows and a few columns. Nothing is recorded.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace rushlight {

enum class RoiRule : int {
  align,         // bilinear samples in rois of at least a pixel
  align_halved,  // the same half a pixel to the left, in rois of any size
  align_planes,  // the same, and each bin has planes of its own
  mean_planes,   // the mean of whole pixels, and each bin has planes of its own
  maximum,       // the largest of whole pixels
};

struct RoiPooling {
  RoiRule rule;
  double scale;          // from the coordinates of rois to pixels
  int64_t down, across;  // bins
  int64_t samples;       // of a bin along each axis; about one for each pixel if not positive

  bool by_planes() const { return rule == RoiRule::align_planes || rule == RoiRule::mean_planes; }
};

// What the bins of all rois take along an axis: bin b of roi r takes those of `places` and
// `weights` at [start[r * bins + b], start[r * bins + b + 1]).
struct RoiAxis {
  Tensor start, places, weights;  // int64, int32 and the compute dtype, on the CPU
};

struct RoiPlan {
  std::vector<int64_t> images;  // by roi
  RoiAxis rows, columns;
};

// Raises where a roi is not finite, is too far away or names an image that is not there; so that
// all places of a plan lie inside of their image.
RoiPlan plan_rois(const RoiPooling& how, const Tensor& rois, DType compute, ShapeRef input_sizes);

struct RoiMaxima {
  Tensor values, places;  // places: in the plane, -1 where a bin is empty
};

Tensor roi_sums_on_cpu(const RoiPooling& how, const Tensor& input, const Tensor& rois);
Tensor roi_sums_backward_on_cpu(const RoiPooling& how, const Tensor& grad, const Tensor& rois,
                                ShapeRef sizes);
RoiMaxima roi_maxima_on_cpu(const RoiPooling& how, const Tensor& input, const Tensor& rois);

Tensor roi_sums_on_cuda(const RoiPooling& how, const Tensor& input, const Tensor& rois);
Tensor roi_sums_backward_on_cuda(const RoiPooling& how, const Tensor& grad, const Tensor& rois,
                                 ShapeRef sizes);
RoiMaxima roi_maxima_on_cuda(const RoiPooling& how, const Tensor& input, const Tensor& rois);

}  // namespace rushlight
