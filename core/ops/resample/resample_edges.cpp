// Defines how edges are continued on the CPU: a row is a run of the input and some elements more.
#include <algorithm>
#include <cstring>

#include "core/device/threads.h"
#include "core/ops/resample/resample.h"
#include "core/tensor/dims.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

// A dim with continued edges: the outputs from `begin` to below `end` are the elements from `first`
// on, the others those at `edges`.
struct PaddedAxis {
  int64_t size = 1, out = 1, begin = 0, end = 1, first = 0;
  std::vector<int64_t> edges;

  PaddedAxis() = default;
  PaddedAxis(std::string_view mode, int64_t size, int64_t before, int64_t after)
      : size(size), out(size + before + after) {
    begin = std::clamp<int64_t>(before, 0, out);
    end = std::clamp(before + size, begin, out);
    first = begin - before;
    for (int64_t o = 0; o < out; ++o) {
      if (o == begin) o = end;
      if (o < out) edges.push_back(padded_place(mode, size, before, after, o));
    }
  }
  int64_t place(int64_t o) const {
    if (o >= begin && o < end) return first + o - begin;
    return edges[size_t(o < begin ? o : o - (end - begin))];
  }
};

// n > 0 elements, often few: in words that may overlap.
template <class T>
inline void copy_few(T* to, const T* from, int64_t n) {
  constexpr int64_t kWord = 16 / int64_t(sizeof(T)), kLongRun = 16 * kWord;
  if (n >= kLongRun || kWord < 2) {
    std::memcpy(to, from, size_t(n) * sizeof(T));
  } else if (n >= kWord) {
    for (int64_t i = 0; i < n - kWord; i += kWord) std::memcpy(to + i, from + i, 16);
    std::memcpy(to + n - kWord, from + n - kWord, 16);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// Rows of outputs, each of which has `pixel` elements; from(r) is the input row of one.
template <class T, class Pixel, class From>
void continue_rows(const PaddedAxis& columns, Pixel pixel, int64_t begin, int64_t end, From from,
                   T* to) {
  const int64_t first = columns.begin, last = columns.end, out = columns.out;
  const int64_t run = (last - first) * pixel, run_from = columns.first * pixel;
  const int64_t* edges = columns.edges.data();
  for (int64_t r = begin; r < end; ++r, to += out * pixel) {
    const T* row = from(r);
    for (int64_t o = 0; o < first; ++o) copy_few(to + o * pixel, row + edges[o] * pixel, pixel);
    if (run > 0) copy_few(to + first * pixel, row + run_from, run);
    for (int64_t o = last; o < out; ++o)
      copy_few(to + o * pixel, row + edges[o - (last - first)] * pixel, pixel);
  }
}

}  // namespace

Tensor continue_edges_on_cpu(const Tensor& input, ShapeRef pad, std::string_view mode) {
  const size_t dims = pad.size() / 2;
  Shape sizes;
  for (size_t i = dims; i-- > 0;)
    sizes.push_back(input.size(-1 - int64_t(i)) + pad[2 * i] + pad[2 * i + 1]);
  MemoryFormat format = format_of(input, int64_t(dims));
  Tensor result = empty_resampled(input, sizes, format);
  if (result.numel() == 0) return result;
  PaddedAxis axes[3];  // planes, rows and columns
  for (size_t i = 0; i < dims; ++i)
    axes[2 - i] = {mode, input.size(-1 - int64_t(i)), pad[2 * i], pad[2 * i + 1]};
  Tensor dense = in_format(input, format);
  ResampleOperand layout = resample_operand(dense, dims, format);
  const auto& [planes, rows, columns] = axes;
  visit_item(int64_t(input.itemsize()), [&]<class T>(Tag<T>) {
    const T* in = static_cast<const T*>(dense.data());
    T* out = static_cast<T*>(result.data());
    const int64_t row = columns.size * layout.pixel, out_row = columns.out * layout.pixel;
    auto continue_from = [&](int64_t begin, int64_t end) {
      int64_t image = begin / rows.out, r = begin % rows.out;
      for (int64_t i = begin; i < end; ++image, r = 0) {
        int64_t plane = image / planes.out * planes.size + planes.place(image % planes.out);
        auto from = [&](int64_t o) { return in + (plane * rows.size + rows.place(o)) * row; };
        int64_t last = std::min(rows.out, r + end - i);
        T* to = out + i * out_row;
        if (layout.pixel == 1)
          continue_rows(columns, std::integral_constant<int64_t, 1>(), r, last, from, to);
        else continue_rows(columns, layout.pixel, r, last, from, to);
        i += last - r;
      }
    };
    parallel_for(0, layout.planes * planes.out * rows.out, kGrain / out_row + 1, continue_from);
  });
  return result;
}

}  // namespace rushlight
