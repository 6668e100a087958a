// Defines the depthwise convolutions of depthwise.h: each channel is copied between zeros into a
// padded image that is read as one long row. Outputs between the ends of rows mean nothing and are
// dropped. With strides, the elements that a tap sees lie side by side in an image of their own.
#include "core/ops/conv/depthwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/threads.h"
#include "core/ops/conv/depthwise_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(DepthwiseLoops, depthwise_loops)

namespace {

const DepthwiseLoops& depthwise_loops() { return active(depthwise_loops_sets); }

// One dim of the images.
struct Side {
  int64_t size, out, kernel, stride, dilation, before;
};

struct Image {
  int64_t rows, columns;
  int64_t size() const { return rows * columns; }
};

// The elements begin, begin + stride, ... of a side of `size` elements.
struct Steps {
  int64_t begin, count, stride;

  // Those among -padding, ..., size - 1 that leave `phase` when padding is added and divided by
  // the stride; elements of the padding are left out.
  static Steps of_phase(const Side& side, int64_t phase) {
    int64_t skipped = ceil_div(std::max<int64_t>(side.before - phase, 0), side.stride);
    int64_t begin = skipped * side.stride + phase - side.before;
    int64_t count = begin < side.size ? ceil_div(side.size - begin, side.stride) : 0;
    return {begin, count, side.stride};
  }
};

class Depthwise {
 public:
  Depthwise(const Convolution& original, DType dtype)
      : conv_(in_three_dims(original)), item_(int64_t(dtype_size(dtype))) {
    for (int d = 0; d < 2; ++d) {
      size_t from = size_t(d) + 1;
      sides_[d] = {conv_.size[from],   conv_.out_size(d + 1), conv_.kernel[from],
                   conv_.stride[from], conv_.dilation[from],  conv_.padding_before[from]};
    }
  }

  void forward(const char* input, const char* weight, const char* bias, char* output) const {
    Image phase = input_phase();
    std::vector<DepthwiseTap> taps = input_taps();
    CorrelateLoop correlate = depthwise_loops().correlate[item_ == 8];
    int64_t n = flat_outputs(phase.columns);
    for_each(conv_.batch * conv_.in_channels, [&](int64_t begin, int64_t end) {
      CpuBuffer buffer(bytes(phases() * phase.size()) + bytes(n));
      char* images = static_cast<char*>(buffer.data());
      char* flat = images + bytes(phases() * phase.size());
      std::memset(images, 0, size_t(bytes(phases() * phase.size())));
      for (int64_t i = begin; i < end; ++i) {
        gather_input(input + i * input_pixels() * item_, phase, images);
        for (int64_t m = 0; m < multiplier(); ++m) {
          int64_t channel = i % conv_.in_channels * multiplier() + m;
          correlate(images, taps.data(), int64_t(taps.size()), weight + channel * kernel() * item_,
                    bias ? bias + channel * item_ : nullptr, flat, n);
          copy_rows(output + (i * multiplier() + m) * points() * item_,
                    {sides_[1].out * item_, item_}, flat, {phase.columns * item_, item_}, item_,
                    sides_[0].out, sides_[1].out);
        }
      }
    });
  }

  // The elements of each phase of the input are a convolution of the gradient with some of the
  // weights, turned round.
  void backward_input(const char* grad, const char* weight, char* grad_input) const {
    int64_t reach[2];
    Image image;
    for (int d = 0; d < 2; ++d) {
      const Side& side = sides_[d];
      reach[d] = (side.kernel - 1) * side.dilation / side.stride;
      (d ? image.columns : image.rows) = (side.size - 1 + side.before) / side.stride + 1 + reach[d];
    }
    Image kept{std::min(sides_[0].out, image.rows - reach[0]),
               std::min(sides_[1].out, image.columns - reach[1])};
    std::vector<std::vector<DepthwiseTap>> taps;
    for (int64_t p = 0; p < phases(); ++p) taps.push_back(grad_taps(p, image, reach));
    CorrelateLoop correlate = depthwise_loops().correlate[item_ == 8];
    for_each(conv_.batch * conv_.in_channels, [&](int64_t begin, int64_t end) {
      int64_t images_bytes = bytes(multiplier() * image.size());
      CpuBuffer buffer(images_bytes + bytes(image.size()));
      char* images = static_cast<char*>(buffer.data());
      char* flat = images + images_bytes;
      std::memset(images, 0, size_t(images_bytes));
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t m = 0; m < multiplier(); ++m)
          copy_rows(images + (m * image.size() + reach[0] * image.columns + reach[1]) * item_,
                    {image.columns * item_, item_},
                    grad + (i * multiplier() + m) * points() * item_,
                    {sides_[1].out * item_, item_}, item_, kept.rows, kept.columns);
        const char* weights = weight + i % conv_.in_channels * multiplier() * kernel() * item_;
        char* result = grad_input + i * input_pixels() * item_;
        for (int64_t p = 0; p < phases(); ++p) {
          Steps rows = Steps::of_phase(sides_[0], p / sides_[1].stride);
          Steps columns = Steps::of_phase(sides_[1], p % sides_[1].stride);
          if (rows.count == 0 || columns.count == 0) continue;
          int64_t first_row = (rows.begin + sides_[0].before) / rows.stride;
          int64_t first_column = (columns.begin + sides_[1].before) / columns.stride;
          correlate(images + (first_row * image.columns + first_column) * item_,
                    taps[size_t(p)].data(), int64_t(taps[size_t(p)].size()), weights, nullptr, flat,
                    (rows.count - 1) * image.columns + columns.count);
          copy_rows(result + (rows.begin * sides_[1].size + columns.begin) * item_,
                    {rows.stride * sides_[1].size * item_, columns.stride * item_}, flat,
                    {image.columns * item_, item_}, item_, rows.count, columns.count);
        }
      }
    });
  }

  void backward_weight(const char* input, const char* grad, char* grad_weight,
                       char* grad_bias) const {
    Image phase = input_phase();
    std::vector<DepthwiseTap> taps = input_taps();
    TapSumsLoop sum_taps = depthwise_loops().sum_taps[item_ == 8];
    int64_t n = flat_outputs(phase.columns);
    std::memset(grad_weight, 0, size_t(conv_.out_channels * kernel() * item_));
    if (grad_bias) std::memset(grad_bias, 0, size_t(conv_.out_channels * item_));
    // The images of a batch are added in order, whatever the number of threads.
    for_each(conv_.in_channels, [&](int64_t begin, int64_t end) {
      int64_t images_bytes = bytes(phases() * phase.size());
      CpuBuffer buffer(images_bytes + bytes(n));
      char* images = static_cast<char*>(buffer.data());
      char* flat = images + images_bytes;
      std::memset(images, 0, size_t(images_bytes + bytes(n)));
      for (int64_t c = begin; c < end; ++c)
        for (int64_t b = 0; b < conv_.batch; ++b) {
          int64_t i = b * conv_.in_channels + c;
          gather_input(input + i * input_pixels() * item_, phase, images);
          for (int64_t m = 0; m < multiplier(); ++m) {
            int64_t channel = c * multiplier() + m;
            copy_rows(flat, {phase.columns * item_, item_},
                      grad + (i * multiplier() + m) * points() * item_,
                      {sides_[1].out * item_, item_}, item_, sides_[0].out, sides_[1].out);
            sum_taps(images, taps.data(), int64_t(taps.size()), flat,
                     grad_weight + channel * kernel() * item_,
                     grad_bias ? grad_bias + channel * item_ : nullptr, n);
          }
        }
    });
  }

 private:
  int64_t multiplier() const { return conv_.out_channels / conv_.in_channels; }
  int64_t kernel() const { return sides_[0].kernel * sides_[1].kernel; }
  int64_t phases() const { return sides_[0].stride * sides_[1].stride; }
  int64_t points() const { return sides_[0].out * sides_[1].out; }
  int64_t input_pixels() const { return sides_[0].size * sides_[1].size; }
  int64_t bytes(int64_t elements) const { return (elements + kDepthwiseSlack) * item_; }
  // From the first output to the last one in images of so many columns.
  int64_t flat_outputs(int64_t columns) const {
    return (sides_[0].out - 1) * columns + sides_[1].out;
  }

  template <class F>
  void for_each(int64_t count, F&& f) const {
    double work = double(conv_.batch) * double(conv_.out_channels * points() * kernel());
    parallel_for(0, count, int64_t(kMultiplicationsPerThread * double(count) / work) + 1, f);
  }

  // The padded input, or of each of its phases.
  Image input_phase() const {
    auto length = [](const Side& side) {
      return side.out + (side.kernel - 1) * side.dilation / side.stride;
    };
    return {length(sides_[0]), length(sides_[1])};
  }

  void gather_input(const char* input, const Image& phase, char* images) const {
    for (int64_t p = 0; p < phases(); ++p) {
      Steps rows = Steps::of_phase(sides_[0], p / sides_[1].stride);
      Steps columns = Steps::of_phase(sides_[1], p % sides_[1].stride);
      int64_t first_row = (rows.begin + sides_[0].before) / rows.stride;
      int64_t first_column = (columns.begin + sides_[1].before) / columns.stride;
      int64_t row_count = std::min(rows.count, phase.rows - first_row);
      int64_t column_count = std::min(columns.count, phase.columns - first_column);
      if (row_count <= 0 || column_count <= 0) continue;
      copy_rows(images + (p * phase.size() + first_row * phase.columns + first_column) * item_,
                {phase.columns * item_, item_},
                input + (rows.begin * sides_[1].size + columns.begin) * item_,
                {rows.stride * sides_[1].size * item_, columns.stride * item_}, item_, row_count,
                column_count);
    }
  }

  std::vector<DepthwiseTap> input_taps() const {
    Image phase = input_phase();
    std::vector<DepthwiseTap> taps;
    for (int64_t y = 0; y < sides_[0].kernel; ++y)
      for (int64_t x = 0; x < sides_[1].kernel; ++x) {
        int64_t row = y * sides_[0].dilation, column = x * sides_[1].dilation;
        int64_t of_phase = row % sides_[0].stride * sides_[1].stride + column % sides_[1].stride;
        taps.push_back({of_phase * phase.size() + row / sides_[0].stride * phase.columns +
                            column / sides_[1].stride,
                        y * sides_[1].kernel + x});
      }
    return taps;
  }

  // Those that element q of a phase sees of the gradient: that of output q - step, for taps that
  // lie a multiple of the stride, `step` times, behind the phase.
  std::vector<DepthwiseTap> grad_taps(int64_t phase, const Image& image,
                                      const int64_t (&reach)[2]) const {
    std::vector<DepthwiseTap> taps;
    for (int64_t m = 0; m < multiplier(); ++m)
      for (int64_t y = 0; y < sides_[0].kernel; ++y)
        for (int64_t x = 0; x < sides_[1].kernel; ++x) {
          int64_t row = y * sides_[0].dilation - phase / sides_[1].stride;
          int64_t column = x * sides_[1].dilation - phase % sides_[1].stride;
          if (row % sides_[0].stride || column % sides_[1].stride) continue;
          taps.push_back({m * image.size() + (reach[0] - row / sides_[0].stride) * image.columns +
                              reach[1] - column / sides_[1].stride,
                          m * kernel() + y * sides_[1].kernel + x});
        }
    return taps;
  }

  Convolution conv_;
  int64_t item_;
  Side sides_[2];  // rows and columns
};

}  // namespace

void depthwise_forward(const Convolution& conv, DType dtype, const void* input, const void* weight,
                       const void* bias, void* output) {
  Depthwise(conv, dtype)
      .forward(static_cast<const char*>(input), static_cast<const char*>(weight),
               static_cast<const char*>(bias), static_cast<char*>(output));
}

void depthwise_backward_input(const Convolution& conv, DType dtype, const void* grad,
                              const void* weight, void* grad_input) {
  Depthwise(conv, dtype)
      .backward_input(static_cast<const char*>(grad), static_cast<const char*>(weight),
                      static_cast<char*>(grad_input));
}

void depthwise_backward_weight(const Convolution& conv, DType dtype, const void* input,
                               const void* grad, void* grad_weight, void* grad_bias) {
  Depthwise(conv, dtype)
      .backward_weight(static_cast<const char*>(input), static_cast<const char*>(grad),
                       static_cast<char*>(grad_weight), static_cast<char*>(grad_bias));
}

}  // namespace rushlight
