// Defines the kernels of unfold and fold on the CPU. A thread takes whole planes, which stay in its
// cache while the rows of all columns are copied from them or added to them.
#include <algorithm>
#include <cstring>

#include "core/device/threads.h"
#include "core/ops/unfold/unfold.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

// Calls f(plane number, where its columns begin) for all planes.
template <class F>
void for_planes(const UnfoldWindows (&windows)[2], int64_t planes, F&& f) {
  int64_t of_plane = windows[0].kernel * windows[1].kernel * windows[0].out() * windows[1].out();
  parallel_for(0, planes, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, of_plane)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) f(i, i * of_plane);
               });
}

// The windows whose element k lies inside: from first_window to below last_window.
int64_t first_window(const UnfoldWindows& w, int64_t k) {
  int64_t start = w.padding - k * w.dilation;
  return start <= 0 ? 0 : std::min(w.out(), (start + w.stride - 1) / w.stride);
}
int64_t last_window(const UnfoldWindows& w, int64_t k) {
  int64_t room = w.size - 1 - w.place(0, k), first = first_window(w, k);
  return room < 0 ? first : std::max(first, std::min(w.out(), room / w.stride + 1));
}

// Calls f(row of outputs, row of the image or -1, first and last output inside, column of the
// first) for each element of the window and each row of outputs, in the order of the columns.
template <class F>
void for_rows(const UnfoldWindows (&windows)[2], F&& f) {
  const UnfoldWindows &rows = windows[0], &columns = windows[1];
  int64_t high = rows.out(), row = 0;
  for (int64_t i = 0; i < rows.kernel; ++i)
    for (int64_t j = 0; j < columns.kernel; ++j) {
      int64_t first = first_window(columns, j), last = last_window(columns, j),
              top = first_window(rows, i);
      int64_t bottom = last_window(rows, i), place = columns.place(first, j);
      for (int64_t o = 0; o < high; ++o)
        f(row++, o < top || o >= bottom ? -1 : rows.place(o, i), first, last, place);
    }
}

template <class T>
void unfold(const UnfoldWindows (&windows)[2], const T* images, T* columns, int64_t planes) {
  int64_t wide = windows[1].out(), stride = windows[1].stride, width = windows[1].size;
  for_planes(windows, planes, [&](int64_t plane, int64_t begin) {
    const T* from = images + plane * windows[0].size * width;
    for_rows(windows, [&](int64_t row, int64_t y, int64_t first, int64_t last, int64_t x) {
      T* to = columns + begin + row * wide;
      if (y < 0) first = last = wide;
      std::fill(to, to + first, T(0));
      const T* source = from + y * width + x;
      if (stride == 1) std::copy(source, source + (last - first), to + first);
      else
        for (int64_t o = first; o < last; ++o) to[o] = source[(o - first) * stride];
      std::fill(to + last, to + wide, T(0));
    });
  });
}

template <class T>
void fold(const UnfoldWindows (&windows)[2], const T* columns, T* images, int64_t planes) {
  int64_t wide = windows[1].out(), stride = windows[1].stride, width = windows[1].size;
  int64_t pixels = windows[0].size * width;
  for_planes(windows, planes, [&](int64_t plane, int64_t begin) {
    T* to = images + plane * pixels;
    std::fill(to, to + pixels, T(0));
    for_rows(windows, [&](int64_t row, int64_t y, int64_t first, int64_t last, int64_t x) {
      if (y < 0) return;
      const T* from = columns + begin + row * wide + first;
      T* sums = to + y * width + x;
      int64_t n = last - first;
      if (stride == 1) {
#pragma omp simd
        for (int64_t o = 0; o < n; ++o) sums[o] += from[o];
      } else {
        for (int64_t o = 0; o < n; ++o) sums[o * stride] += from[o];
      }
    });
  });
}

int64_t planes_of(const Tensor& images) { return images.size(0) * images.size(1); }

}  // namespace

void unfold_on_cpu(const UnfoldWindows (&windows)[2], const Tensor& images, const Tensor& columns) {
  visit_dtype(images.dtype(), [&]<class T>(Tag<T>) {
    unfold(windows, images.data<T>(), columns.data<T>(), planes_of(images));
  });
}

void fold_on_cpu(const UnfoldWindows (&windows)[2], const Tensor& columns, const Tensor& images) {
  visit_dtype(images.dtype(), [&]<class T>(Tag<T>) {
    if constexpr (std::is_floating_point_v<T> || is_complex(dtype_of<T>))
      fold(windows, columns.data<T>(), images.data<T>(), planes_of(images));
    else ASSERT(false);
  });
}

}  // namespace rushlight
