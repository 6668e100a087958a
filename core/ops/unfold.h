// Owns the kernels that lay the windows of images out as columns, and add columns up to images.
//
// Images are (N, C, H, W), columns (N, C * window, outputs). Nothing is recorded.
#pragma once

#include <algorithm>

#include "core/tensor/tensor.h"

namespace rushlight {

// The windows along one dim of an image.
struct UnfoldWindows {
  int64_t size, kernel, dilation, padding, stride;

  // How many there are; not positive if not even one fits.
  int64_t out() const {
    int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
  // Where in the image element k of window o lies, maybe in the padding.
  int64_t place(int64_t o, int64_t k) const { return o * stride - padding + k * dilation; }
  // The windows whose element k lies inside: from first(k) to below last(k).
  int64_t first(int64_t k) const {
    int64_t start = padding - k * dilation;
    return start <= 0 ? 0 : std::min(out(), (start + stride - 1) / stride);
  }
  int64_t last(int64_t k) const {
    int64_t room = size - 1 - place(0, k);
    return room < 0 ? first(k) : std::max(first(k), std::min(out(), room / stride + 1));
  }
};

void unfold_on_cpu(const UnfoldWindows (&windows)[2], const Tensor& images, const Tensor& columns);
void fold_on_cpu(const UnfoldWindows (&windows)[2], const Tensor& columns, const Tensor& images);

}  // namespace rushlight
