// Declares the vectorized loops behind softmax and log_softmax, compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// A matrix is `rows` rows of `columns` contiguous elements; its rows lie `stride` elements apart.
template <class T>
struct SoftmaxLoopsOf {
  // Along each row. The gradients are those of the input, from that of the result and the result.
  using Along = void (*)(const T* x, T* y, int64_t rows, int64_t columns);
  using AlongGrad = void (*)(const T* g, const T* y, T* grad, int64_t rows, int64_t columns);
  Along softmax, log_softmax;
  AlongGrad softmax_grad, log_softmax_grad;

  // Down each column, with room for 2 * columns elements in `scratch`.
  using Down = void (*)(const T* x, T* y, int64_t stride, int64_t rows, int64_t columns,
                        T* scratch);
  using DownGrad = void (*)(const T* g, const T* y, T* grad, int64_t stride, int64_t rows,
                            int64_t columns, T* scratch);
  Down softmax_down, log_softmax_down;
  DownGrad softmax_down_grad, log_softmax_down_grad;
};

struct SoftmaxLoops {
  SoftmaxLoopsOf<float> f32;
  SoftmaxLoopsOf<double> f64;
};

}  // namespace rushlight
