// Owns the arguments of the kernels of convolution, as host and device both see them.
#pragma once

#include "core/ops/matmul/gemm_args.h"

namespace rushlight {

// Divides numbers below 2^31 by a product and a shift: a division takes many times as long.
struct Divider {
  uint32_t divisor = 1, multiplier = 0x80000000u, shift = 31;

  Divider() = default;
  explicit Divider(int64_t number) : divisor(uint32_t(number)) {
    uint32_t digits = 0;
    while ((int64_t(1) << digits) < number) ++digits;
    shift = 31 + digits;
    multiplier = uint32_t(((uint64_t(1) << shift) + divisor - 1) / divisor);
  }
  uint32_t divide(uint32_t number) const {
    return uint32_t((uint64_t(number) * multiplier) >> shift);
  }
  // The remainder; `number` becomes the quotient.
  uint32_t split(uint32_t& number) const {
    uint32_t quotient = divide(number), rest = number - quotient * divisor;
    number = quotient;
    return rest;
  }
};

// Where images lie: (batch, channel, depth, height, width), of which leading dims may be unused.
// Strides are in elements.
struct ConvImages {
  void* data;
  int64_t batch, channel;  // strides
  int64_t at[3];           // strides
  int32_t size[3];
};

// The three tensors of a convolution, of which a kernel writes one.
struct ConvArgs {
  ConvImages input, output;
  void* weight;
  int64_t weight_out, weight_in, weight_tap;  // strides
  void* bias;                                 // one for each output channel, or null
  void* partial;                              // the sums of pieces, if there are several
  int32_t groups, in_channels, out_channels;  // channels: of one group
  int32_t taps, points;                       // of a filter, of all images that are walked
  int32_t stride[3], dilation[3], padding[3];
  // Sizes that indices are split by: of the walked images, of filters, and the strides.
  Divider by_channels, by_taps, by_size[3], by_kernel[3], by_stride[3];
  GemmGrid grid;
};

}  // namespace rushlight
