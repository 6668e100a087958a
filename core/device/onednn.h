// Owns the calls into oneDNN: matrix products and convolutions of float32, bfloat16 and float16.
//
// Every function returns false, having done nothing, when oneDNN is not there or has no fast code
// for the case on this processor; the caller then takes its own way. Sizes are positive, and
// outputs do not overlap inputs. The library is opened at first use.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/dtype.h"

namespace rushlight::onednn {

// Whether the library was found and has not been switched off.
bool available();
void set_enabled(bool enabled);

// Whether the processor multiplies tiles of bfloat16 (AMX), and oneDNN is available.
bool has_bfloat16_tiles();

// The distances in memory, in elements, between matrices, rows and columns. A batch stride of 0
// uses one matrix for the whole batch. Either the rows or the columns must be contiguous.
struct MatrixStrides {
  int64_t batch, row, column;
};

struct Matmul {
  DType dtype;      // of a, b
  DType out_dtype;  // of bias, c
  int64_t batch, m, n, k;
  MatrixStrides a, b, c;
  float alpha = 1, beta = 0;
};

// c = alpha * (a @ b + bias) + beta * c for each matrix of the batch, rounded once; a is m x k, b
// is k x n, bias holds n or is null.
// int8 matrices have an int32 product, without bias.
bool matmul(Matmul product, const void* a, const void* b, const void* bias, void* c);

enum class ImageLayout : uint8_t { channels_first, channels_last };

// Sizes per dimension start with the outermost one, and are unused from `dims` on.
struct Convolution {
  DType dtype;                // of all arrays
  ImageLayout layout;         // of the input and the output: (N, C, D, H, W) or (N, D, H, W, C)
  ImageLayout weight_layout;  // (out, in / groups, D, H, W) or (out, D, H, W, in / groups)
  int dims;                   // 1, 2 or 3
  int64_t batch, groups, in_channels, out_channels;
  std::array<int64_t, 3> size, kernel, stride, dilation;  // size is the input's
  std::array<int64_t, 3> padding_before, padding_after;

  int64_t out_size(int dim) const {
    int64_t padded = size[dim] + padding_before[dim] + padding_after[dim];
    return (padded - dilation[dim] * (kernel[dim] - 1) - 1) / stride[dim] + 1;
  }
  int64_t taps() const {  // of a filter
    int64_t taps = 1;
    for (int d = 0; d < dims; ++d) taps *= kernel[size_t(d)];
    return taps;
  }
  // Whether every channel is by itself.
  bool is_depthwise() const { return groups > 1 && groups == in_channels; }
};

// output = input convolved with weight, + bias unless it is null, then relu if asked for.
bool conv_forward(const Convolution& conv, const void* input, const void* weight, const void* bias,
                  bool relu, void* output);

bool conv_backward_input(const Convolution& conv, const void* grad_output, const void* weight,
                         void* grad_input);

// grad_bias may be null.
bool conv_backward_weight(const Convolution& conv, const void* input, const void* grad_output,
                          void* grad_weight, void* grad_bias);

}  // namespace rushlight::onednn
