// Owns the kernels that lay the windows of images out as columns, and add columns up to images.
//
// Images are (N, C, H, W), columns (N, C * window, outputs). Nothing is recorded.
#pragma once

#include "core/ops/unfold/unfold_windows.h"
#include "core/tensor/tensor.h"

namespace rushlight {

void unfold_on_cpu(const UnfoldWindows (&windows)[2], const Tensor& images, const Tensor& columns);
void fold_on_cpu(const UnfoldWindows (&windows)[2], const Tensor& columns, const Tensor& images);
void unfold_on_cuda(const UnfoldWindows (&windows)[2], const Tensor& images, const Tensor& columns);
void fold_on_cuda(const UnfoldWindows (&windows)[2], const Tensor& columns, const Tensor& images);

}  // namespace rushlight
