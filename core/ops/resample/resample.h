// Owns the kernel of resampling: each output along a dim is a weighted sum of some of the inputs
// along it, whether images are resized or their edges are continued.
//
// A dim has a sparse matrix of weights, so that all ways of resampling are one pair of loops, and a
// gradient is the same with the matrices transposed. Nothing is recorded.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor/memory_order.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// The weights of one dim by output: those at [start[o], start[o + 1]) are for the inputs at index.
struct ResampleAxis {
  int64_t size = 1, out = 1;  // of the input and of the output
  std::vector<int64_t> start;
  std::vector<int32_t> index;
  std::vector<double> weight;

  ResampleAxis(int64_t size_in, int64_t out_in) : size(size_in), out(out_in) {
    start.reserve(size_t(out) + 1);
    index.reserve(size_t(out));
    weight.reserve(size_t(out));
    start.push_back(0);
  }
  // Adds an element to the sum of the output that is being filled.
  void add(int64_t input, double factor) {
    index.push_back(int32_t(input));
    weight.push_back(factor);
  }
  void end_output() { start.push_back(int64_t(index.size())); }

  static ResampleAxis same(int64_t size);
  bool is_same() const;
  // Whether each output is an element of the input as it is.
  bool moves() const;
  ResampleAxis transposed() const;
};

// How images are resized: see resize_axis for what each does along a dim.
struct Resizing {
  std::string_view mode;  // nearest, nearest-exact, linear, cubic or area
  bool align_corners = false, antialias = false;
};
// The sizes are positive. `scale` is output over input as the user gave it; without one it is that
// of the sizes.
ResampleAxis resize_axis(const Resizing& how, int64_t size, int64_t out,
                         std::optional<double> scale);

// Which element of a dim stands at output o when elements are added at both ends, or taken away
// where the amounts are negative; mode is reflect, replicate or circular.
int64_t padded_place(std::string_view mode, int64_t size, int64_t before, int64_t after, int64_t o);
// The dim so padded.
ResampleAxis pad_axis(std::string_view mode, int64_t size, int64_t before, int64_t after);

// The layout of what is made of images with so many dims: channels_last where they have it.
MemoryFormat format_of(const Tensor& input, int64_t dims);

// A dense operand as the loops see it: planes of (depth, rows, columns), each of whose pixels is
// some numbers side by side.
struct ResampleOperand {
  int64_t planes, pixel;
};
// The operand with so many last dims that are resampled, which is dense in this format.
ResampleOperand resample_operand(const Tensor& input, size_t dims, MemoryFormat format);
// An uninitialized result, with the last dims of these sizes.
Tensor empty_resampled(const Tensor& input, ShapeRef size, MemoryFormat format);

// The input with edges so continued in its last dims, on the CPU. The amounts are those before and
// after, of the last dim first.
Tensor continue_edges_on_cpu(const Tensor& input, ShapeRef pad, std::string_view mode);

// The last dims of the input, one to three, resampled to `size` by an axis each. With dims for a
// batch and channels before them, the layout channels_last is kept. The axes are made when there
// is a result to fill, and memory for it.
Tensor resample_kernel(const Tensor& input, ShapeRef size,
                       const std::function<std::vector<ResampleAxis>()>& make_axes);

// ---- for each device ---------------------------------------------------------------------------

void resample_on_cpu(std::span<const ResampleAxis, 3> axes, ResampleOperand layout,
                     const Tensor& input, const Tensor& result);
// Bytes along one dim, with so many elements before it and bytes after it.
void resample_bytes_on_cpu(const ResampleAxis& axis, int64_t outer, int64_t inner,
                           const Tensor& input, const Tensor& result);
void resample_on_cuda(std::span<const ResampleAxis, 3> axes, ResampleOperand layout,
                      const Tensor& input, const Tensor& result);

}  // namespace rushlight
