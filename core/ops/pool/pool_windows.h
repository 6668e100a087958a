// Owns the windows of pooling and the arguments of its CUDA kernels, as host and device both see
// them.
#pragma once

#include <stdint.h>

namespace rushlight {

// The windows along one dim of a volume; an image is a volume of one plane. With kernel = 0 they
// share the size out among the outputs as evenly as they can ("adaptive" pooling); else they are
// alike.
struct PoolWindows {
  int64_t size, out;
  int64_t kernel, stride, padding, dilation;

  // The first element inside the image.
  int64_t begin(int64_t output) const {
    if (kernel == 0) return output * size / out;
    int64_t start = output * stride - padding;
    return start < 0 ? start + (dilation - 1 - start) / dilation * dilation : start;
  }
  // Past the last one.
  int64_t end(int64_t output) const {
    if (kernel == 0) return ((output + 1) * size + out - 1) / out;
    int64_t past = output * stride - padding + (kernel - 1) * dilation + 1;
    return past < size ? past : size;
  }
  // How many elements a window has, padding included.
  int64_t padded_count(int64_t output) const {
    if (kernel == 0) return end(output) - begin(output);
    int64_t start = output * stride - padding;
    int64_t past = start + kernel < size + padding ? start + kernel : size + padding;
    return past - start;
  }

  // The first and the last output whose window spans an element; with a dilation the element may
  // lie between those of the window.
  int64_t first_output(int64_t element) const {
    if (kernel == 0) return element * out / size;
    int64_t start = element + padding - (kernel - 1) * dilation;
    return start <= 0 ? 0 : (start + stride - 1) / stride;
  }
  int64_t last_output(int64_t element) const {
    int64_t last = kernel == 0 ? ((element + 1) * out - 1) / size : (element + padding) / stride;
    return last < out ? last : out - 1;
  }
};

// What the sum of a window is divided by: a number if it is not 0, else a count of elements.
struct PoolDivisor {
  int64_t number;
  bool counts_padding;
};

// Where the elements of volumes (batch, channel, plane, row, column) lie.
struct PoolVolumes {
  void* data;
  int64_t strides[5];  // in elements
};

struct PoolArgs {
  PoolVolumes input, output, indices;  // no indices: their data is null
  PoolWindows windows[3];              // of planes, rows and columns
  PoolDivisor divisor;
  int64_t batch, channels;
  bool channels_last;  // the order in which neighboring threads walk
};

}  // namespace rushlight
