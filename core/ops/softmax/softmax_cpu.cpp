// Owns the walk of softmax over memory: a row-major tensor is outer blocks of rows x columns, of
// which the rows are normalized. Threads share blocks of whole columns; half types and other
// dtypes pass through buffers of the type that softmax_isa.cpp computes in.
#include "core/ops/softmax/softmax.h"

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/threads.h"
#include "core/ops/operands.h"
#include "core/ops/softmax/softmax_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(SoftmaxLoops, softmax_loops)

namespace {

constexpr int64_t kGrain = 16384;     // elements that are worth a thread
constexpr int64_t kColumns = 1024;    // that are normalized side by side: memory is read in streams
constexpr int64_t kCopied = 1 << 18;  // elements of a block that is converted: they stay in L2
constexpr int64_t kCopiedRows = 4096;  // elements of whole rows that are converted together

template <class T>
const SoftmaxLoopsOf<T>& loops() {
  return active_of<T>(softmax_loops_sets);
}

// A buffer for n elements of T.
template <class T>
CpuBuffer buffer_of(int64_t n) {
  return CpuBuffer(size_t(n) * sizeof(T));
}

// One tensor of the walk, as the kernel's type T sees it.
struct Lane {
  char* data;
  int64_t item;
  CastLoop cast;  // null: the memory holds T

  template <class T>
  T* at(int64_t i) const {
    return reinterpret_cast<T*>(data + i * item);
  }
};
template <class T>
Lane input_lane(const Tensor& t) {
  return {t.data<char>(), int64_t(t.itemsize()),
          t.dtype() == dtype_of<T> ? nullptr : cast_loop(t.dtype(), dtype_of<T>)};
}
template <class T>
Lane result_lane(const Tensor& t) {
  return {t.data<char>(), int64_t(t.itemsize()),
          t.dtype() == dtype_of<T> ? nullptr : cast_loop(dtype_of<T>, t.dtype())};
}

// Converts between the memory of a lane and a copy of n elements.
template <class T>
void convert(const Lane& lane, const void* from, void* to, int64_t n) {
  CastLoop cast = lane.cast ? lane.cast : cast_loop(dtype_of<T>, dtype_of<T>);
  cast(from, to, n);
}

// Calls along() for rows [begin, end), as many at a time as are converted well together.
template <class T, size_t N, class Along>
void along_copies(const std::array<Lane, N>& lanes, int64_t begin, int64_t end, int64_t length,
                  const Along& along) {
  int64_t most = std::max<int64_t>(kCopiedRows / length, 1);
  CpuBuffer copies = buffer_of<T>(most * length * int64_t(N));
  std::array<T*, N> at;
  for (size_t k = 0; k < N; ++k)
    at[k] = static_cast<T*>(copies.data()) + int64_t(k) * most * length;
  for (int64_t row = begin; row < end; row += most) {
    int64_t rows = std::min(most, end - row), first = row * length, n = rows * length;
    for (size_t k = 0; k < N - 1; ++k)
      convert<T>(lanes[k], lanes[k].template at<char>(first), at[k], n);
    along(at, rows, length);
    convert<T>(lanes[N - 1], at[N - 1], lanes[N - 1].template at<char>(first), n);
  }
}

// Calls along(lanes..., rows, columns) for rows that are normalized along their length, or
// down(lanes..., stride, rows, columns, scratch) for columns. The last lane is the result.
template <class T, size_t N, class Along, class Down>
void walk(const AroundDim& blocks, const std::array<Lane, N>& lanes, Along&& along, Down&& down) {
  bool converts =
      std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.cast; });
  int64_t rows = blocks.length, columns = blocks.inner;
  int64_t width =
      std::min(columns, converts ? std::clamp<int64_t>(kCopied / rows, 16, 256) : kColumns);
  int64_t tiles = ceil_div(columns, width);
  int64_t grain = std::max<int64_t>(kGrain / (rows * width), 1);
  parallel_for(0, blocks.outer * tiles, grain, [&](int64_t begin, int64_t end) {
    std::array<T*, N> at;
    if (columns == 1 && !converts) {
      for (size_t k = 0; k < N; ++k) at[k] = lanes[k].template at<T>(begin * rows);
      along(at, end - begin, rows);
      return;
    }
    if (columns == 1) return along_copies<T>(lanes, begin, end, rows, along);
    CpuBuffer scratch = buffer_of<T>(2 * width);
    CpuBuffer copies = buffer_of<T>(converts ? int64_t(N) * rows * width : 0);
    for (int64_t i = begin; i < end; ++i) {
      int64_t first = i % tiles * width, n = std::min(width, columns - first);
      int64_t start = i / tiles * rows * columns + first;
      int64_t stride = converts ? n : columns;
      // Calls f(place in memory, place in the copy, elements) for the pieces of a lane.
      auto for_each_piece = [&](size_t k, auto&& f) {
        int64_t pieces = n == columns ? 1 : rows, length = n == columns ? rows * n : n;
        for (int64_t p = 0; p < pieces; ++p)
          f(lanes[k].template at<char>(start + p * columns), at[k] + p * n, length);
      };
      for (size_t k = 0; k < N; ++k) {
        at[k] = converts ? static_cast<T*>(copies.data()) + int64_t(k) * rows * width
                         : lanes[k].template at<T>(start);
        if (!converts || k == N - 1) continue;
        for_each_piece(k, [&](char* memory, T* copy, int64_t length) {
          convert<T>(lanes[k], memory, copy, length);
        });
      }
      down(at, stride, rows, n, static_cast<T*>(scratch.data()));
      if (!converts) continue;
      for_each_piece(N - 1, [&](char* memory, T* copy, int64_t length) {
        convert<T>(lanes[N - 1], copy, memory, length);
      });
    }
  });
}

}  // namespace

void softmax_cpu(SoftmaxKind kind, const Tensor& input, AroundDim blocks, const Tensor& result) {
  by_type(compute_dtype(result.dtype()), [&]<class T>(Tag<T>) {
    const SoftmaxLoopsOf<T>& loop = loops<T>();
    bool logs = kind == SoftmaxKind::log_softmax;
    auto along = logs ? loop.log_softmax : loop.softmax;
    auto down = logs ? loop.log_softmax_down : loop.softmax_down;
    walk<T, 2>(
        blocks, {input_lane<T>(input), result_lane<T>(result)},
        [&](auto& at, int64_t rows, int64_t n) { along(at[0], at[1], rows, n); },
        [&](auto& at, int64_t stride, int64_t rows, int64_t columns, T* scratch) {
          down(at[0], at[1], stride, rows, columns, scratch);
        });
  });
}

void softmax_backward_cpu(SoftmaxKind kind, const Tensor& grad, const Tensor& result,
                          AroundDim blocks, const Tensor& grad_input) {
  by_type(compute_dtype(grad.dtype()), [&]<class T>(Tag<T>) {
    const SoftmaxLoopsOf<T>& loop = loops<T>();
    bool logs = kind == SoftmaxKind::log_softmax;
    auto along = logs ? loop.log_softmax_grad : loop.softmax_grad;
    auto down = logs ? loop.log_softmax_down_grad : loop.softmax_down_grad;
    walk<T, 3>(
        blocks, {input_lane<T>(grad), input_lane<T>(result), result_lane<T>(grad_input)},
        [&](auto& at, int64_t rows, int64_t n) { along(at[0], at[1], at[2], rows, n); },
        [&](auto& at, int64_t stride, int64_t rows, int64_t columns, T* scratch) {
          down(at[0], at[1], at[2], stride, rows, columns, scratch);
        });
  });
}

}  // namespace rushlight
