// Declares the kernels of running sums, products and extremes along a dim.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

enum class Scan : uint8_t { sum, product, log_sum_exp, linear, maximum, minimum };

// Result i combines elements 0 to i, or i to the last when `reverse`; row-major, in `dtype`.
Tensor scan_cpu(Scan scan, const Tensor& input, int64_t dim, bool reverse, DType dtype);

// Result i is input[i] + factor[i] * result[i - 1], or result[i + 1] when `reverse`.
Tensor linear_scan_cpu(const Tensor& input, const Tensor& factor, int64_t dim, bool reverse);

// The largest or smallest of elements 0 to i, and its last position. NaN is both.
std::pair<Tensor, Tensor> extreme_scan_cpu(const Tensor& input, int64_t dim, bool largest);

// Any of these into row-major results; `factor` and `positions` are there where the scan has them.
void scan_cuda(Scan scan, const Tensor& input, const Tensor& factor, int64_t dim, bool reverse,
               const Tensor& result, const Tensor& positions);

// The products of all elements along dim but one each, which holds where some are zero; recorded.
Tensor products_of_others(const Tensor& input, int64_t dim);

}  // namespace rushlight
