// Owns an image and how a grid samples it, as the loops of the CPU and the kernels of CUDA see
// them.
#pragma once

#include <stdint.h>

namespace rushlight {

// The numbers are PyTorch's.
enum class GridMode : int { bilinear, nearest, bicubic };
enum class GridPadding : int { zeros, border, reflection };
// Whether -1 and 1 are the edges of the image, as without align_corners, or the centers of the
// corner pixels; or whether coordinates are numbers of pixels.
enum class GridUnits : int { edges, centers, pixels };

// A dim of an image, as the grid sees it: x lies at (x + shift) * slope + start, and reflection
// mirrors what is outside at low and at low + span.
template <class T>
struct GridAxis {
  T size, shift, slope, start, low, span;

  GridAxis() = default;
  GridAxis(T size, GridUnits units)
      : size(size), shift(1), slope(size * T(0.5)), start(-0.5), low(-0.5), span(size) {
    if (units == GridUnits::centers) slope = (size - 1) * T(0.5), start = low = 0, span = size - 1;
    if (units == GridUnits::pixels) shift = start = 0, slope = 1;
  }
};

// One of a batch.
struct GridImage {
  GridMode mode;
  GridPadding padding;
  GridUnits units;
  int dims;          // 2 or 3
  int64_t sizes[3];  // of the image, the last dim first
  int64_t channels;  // planes
  int64_t pixels;    // of a plane, below 2^30
  int64_t places;    // of the grid
};

}  // namespace rushlight
