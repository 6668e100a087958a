// Owns the overlaps of boxes on CUDA: a thread compares a box with 64 others, a bit for each.
//   ITEM      the dtype in memory
//   COMPUTE   float or double
#include "core/tensor/formula.cuh"

#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

using Compute = COMPUTE;

struct Box {
  Compute left, top, right, bottom;
  explicit Box(const ITEM* at)
      : left(convert<Compute>(at[0])),
        top(convert<Compute>(at[1])),
        right(convert<Compute>(at[2])),
        bottom(convert<Compute>(at[3])) {}
  Compute area() const { return (right - left) * (bottom - top); }
};

inline Compute least(Compute a, Compute b) { return b < a ? b : a; }
inline Compute most(Compute a, Compute b) { return a < b ? b : a; }

inline Compute overlap(const Box& a, const Box& b) {
  Compute width = least(a.right, b.right) - most(a.left, b.left);
  Compute height = least(a.bottom, b.bottom) - most(a.top, b.top);
  Compute shared = most(0, width) * most(0, height);
  return shared / (a.area() + b.area() - shared);
}

// masks (n, words): bit j of row i says whether box i would remove box j, which comes after it.
extern "C" __global__ void overlaps(const ITEM* boxes, const int64_t* classes, int64_t n,
                                    double threshold, uint64_t* masks) {
  int64_t words = (n + 63) / 64, number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= n * words) return;
  int64_t i = number / words, first = number % words * 64;
  Box box(boxes + i * 4);
  uint64_t mask = 0;
  for (int64_t j = first > i ? first : i + 1; j < first + 64 && j < n; ++j) {
    if (classes && classes[j] != classes[i]) continue;
    if (overlap(box, Box(boxes + j * 4)) > threshold) mask |= uint64_t(1) << (j - first);
  }
  masks[number] = mask;
}

}  // namespace rushlight::on_cuda
