// Owns the kernels of non-maximum suppression. Nothing is recorded.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace rushlight {

// Which boxes stay, all in one order from the greatest score to the least: box j goes where a box
// before it stays, is of the same class and overlaps it by more than the threshold. boxes (n, 4)
// are contiguous; classes are int64, or undefined when all boxes are of one.
std::vector<char> kept_boxes_cpu(const Tensor& boxes, const Tensor& classes, double threshold);
std::vector<char> kept_boxes_cuda(const Tensor& boxes, const Tensor& classes, double threshold);

}  // namespace rushlight
