// Owns the windows that unfold and fold slide over images, as host and device both see them.
#pragma once

#include <stdint.h>

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
  // The window whose element k lies at a place of the image, or -1.
  int64_t window(int64_t place, int64_t k) const {
    int64_t steps = place + padding - k * dilation;
    return steps < 0 || steps % stride != 0 || steps / stride >= out() ? -1 : steps / stride;
  }
};

// What the kernels of CUDA walk through: planes are images and their channels.
struct UnfoldArgs {
  UnfoldWindows rows, columns;
  int64_t planes;
  const void* input;
  void* result;
};

}  // namespace rushlight
