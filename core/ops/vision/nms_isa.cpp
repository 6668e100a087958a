// Owns the loop of nms: a box that stays is compared with all after it, a vector of them at a time.
#include "core/ops/vision/nms_loops.h"

#include "core/tensor/formula.h"
#include "core/tensor/formula_number.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T, class Flag>
void suppress(const void* boxes, int64_t n, double limit, void* flags) {
  const T *left = static_cast<const T*>(boxes), *top = left + n, *right = top + n,
          *bottom = right + n, *area = bottom + n;
  Flag* gone = static_cast<Flag*>(flags);
  // The overlap is compared with the threshold as a double, so that one of T must not round up.
  T threshold = T(limit);
  if (double(threshold) > limit) threshold = T(nextafter(threshold, -T(__builtin_inf())));
  for (int64_t i = 0; i < n; ++i) {
    if (gone[i]) continue;
    T x1 = left[i], y1 = top[i], x2 = right[i], y2 = bottom[i], own = area[i];
#pragma omp simd
    for (int64_t j = i + 1; j < n; ++j) {
      T low_x = x1 < left[j] ? left[j] : x1, low_y = y1 < top[j] ? top[j] : y1;
      T high_x = right[j] < x2 ? right[j] : x2, high_y = bottom[j] < y2 ? bottom[j] : y2;
      T width = high_x - low_x, height = high_y - low_y;
      width = T(0) < width ? width : T(0);
      height = T(0) < height ? height : T(0);
      T shared = width * height;
      Flag over = shared / (own + area[j] - shared) > threshold;
      gone[j] |= over;
    }
  }
}

}  // namespace

extern const NmsLoops nms_loops;
constexpr NmsLoops nms_loops = {{&suppress<float, int32_t>, &suppress<double, int64_t>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
