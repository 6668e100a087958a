// Defines the depthwise convolutions of depthwise.h: each channel is copied between zeros into a
// padded image that is read as one long row. Outputs between the ends of rows mean nothing and are
// dropped. With strides, the elements that a tap sees lie side by side in an image of their own.
#include "core/ops/conv/depthwise.h"

#include <algorithm>
#include <array>
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

// Numbers of planes, rows and columns.
using Sizes = std::array<int64_t, 3>;

int64_t product(const Sizes& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// The element at `place` of an image, in row-major order.
int64_t index_of(const Sizes& image, const Sizes& place) {
  return (place[0] * image[1] + place[1]) * image[2] + place[2];
}

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

// The elements of the input that one phase is made of, and where the first one lies in its image.
struct Phase {
  Sizes begin, count, step, first;
};

class Depthwise {
 public:
  Depthwise(const Convolution& original, DType dtype)
      : conv_(in_three_dims(original)), item_(int64_t(dtype_size(dtype))) {
    for (size_t d = 0; d < 3; ++d) {
      sides_[d] = {conv_.size[d],   conv_.out_size(int(d)), conv_.kernel[d],
                   conv_.stride[d], conv_.dilation[d],      conv_.padding_before[d]};
      out_[d] = sides_[d].out;
      stride_[d] = sides_[d].stride;
    }
  }

  void forward(const char* input, const char* weight, const char* bias, char* output) const {
    Sizes phase = input_phase();
    std::vector<DepthwiseTap> taps = input_taps();
    CorrelateLoop correlate = depthwise_loops().correlate[item_ == 8];
    int64_t n = flat_length(phase, out_);
    for_each(conv_.batch * conv_.in_channels, [&](int64_t begin, int64_t end) {
      int64_t images_bytes = bytes(phases() * product(phase));
      CpuBuffer buffer(images_bytes + bytes(n));
      char* images = static_cast<char*>(buffer.data());
      char* flat = images + images_bytes;
      std::memset(images, 0, size_t(images_bytes));
      for (int64_t i = begin; i < end; ++i) {
        gather_input(input + i * input_pixels() * item_, phase, images);
        for (int64_t m = 0; m < multiplier(); ++m) {
          int64_t channel = i % conv_.in_channels * multiplier() + m;
          correlate(images, taps.data(), int64_t(taps.size()),
                    weight + channel * conv_.taps() * item_,
                    bias ? bias + channel * item_ : nullptr, flat, n);
          copy(output + (i * multiplier() + m) * points() * item_, out_, flat, phase, out_);
        }
      }
    });
  }

  // The elements of each phase of the input are a convolution of the gradient with some of the
  // weights, turned round.
  void backward_input(const char* grad, const char* weight, char* grad_input) const {
    Sizes reach, image, kept;
    for (size_t d = 0; d < 3; ++d) {
      const Side& side = sides_[d];
      reach[d] = (side.kernel - 1) * side.dilation / side.stride;
      image[d] = (side.size - 1 + side.before) / side.stride + 1 + reach[d];
      kept[d] = std::min(side.out, image[d] - reach[d]);
    }
    std::vector<std::vector<DepthwiseTap>> taps;
    for (int64_t p = 0; p < phases(); ++p) taps.push_back(grad_taps(p, image, reach));
    CorrelateLoop correlate = depthwise_loops().correlate[item_ == 8];
    for_each(conv_.batch * conv_.in_channels, [&](int64_t begin, int64_t end) {
      int64_t images_bytes = bytes(multiplier() * product(image));
      CpuBuffer buffer(images_bytes + bytes(product(image)));
      char* images = static_cast<char*>(buffer.data());
      char* flat = images + images_bytes;
      std::memset(images, 0, size_t(images_bytes));
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t m = 0; m < multiplier(); ++m)
          copy(images + (m * product(image) + index_of(image, reach)) * item_, image,
               grad + (i * multiplier() + m) * points() * item_, out_, kept);
        const char* weights = weight + i % conv_.in_channels * multiplier() * conv_.taps() * item_;
        char* result = grad_input + i * input_pixels() * item_;
        for (int64_t p = 0; p < phases(); ++p) {
          Phase part = phase(p);
          if (product(part.count) == 0) continue;
          correlate(images + index_of(image, part.first) * item_, taps[size_t(p)].data(),
                    int64_t(taps[size_t(p)].size()), weights, nullptr, flat,
                    flat_length(image, part.count));
          copy(result + index_of(conv_.size, part.begin) * item_, conv_.size, flat, image,
               part.count, part.step, {1, 1, 1});
        }
      }
    });
  }

  void backward_weight(const char* input, const char* grad, char* grad_weight,
                       char* grad_bias) const {
    Sizes phase = input_phase();
    std::vector<DepthwiseTap> taps = input_taps();
    TapSumsLoop sum_taps = depthwise_loops().sum_taps[item_ == 8];
    int64_t n = flat_length(phase, out_);
    std::memset(grad_weight, 0, size_t(conv_.out_channels * conv_.taps() * item_));
    if (grad_bias) std::memset(grad_bias, 0, size_t(conv_.out_channels * item_));
    // The images of a batch are added in order, whatever the number of threads.
    for_each(conv_.in_channels, [&](int64_t begin, int64_t end) {
      int64_t images_bytes = bytes(phases() * product(phase));
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
            copy(flat, phase, grad + (i * multiplier() + m) * points() * item_, out_, out_);
            sum_taps(images, taps.data(), int64_t(taps.size()), flat,
                     grad_weight + channel * conv_.taps() * item_,
                     grad_bias ? grad_bias + channel * item_ : nullptr, n);
          }
        }
    });
  }

 private:
  int64_t multiplier() const { return conv_.out_channels / conv_.in_channels; }
  int64_t phases() const { return product(stride_); }
  int64_t points() const { return product(out_); }
  int64_t input_pixels() const { return product(conv_.size); }
  int64_t bytes(int64_t elements) const { return (elements + kDepthwiseSlack) * item_; }
  // From the first of so many elements of an image to the last one.
  static int64_t flat_length(const Sizes& image, const Sizes& count) {
    return index_of(image, {count[0] - 1, count[1] - 1, count[2] - 1}) + 1;
  }

  template <class F>
  void for_each(int64_t count, F&& f) const {
    double work = double(conv_.batch) * double(conv_.out_channels * points() * conv_.taps());
    parallel_for(0, count, int64_t(kMultiplicationsPerThread * double(count) / work) + 1, f);
  }

  // Copies a part of one image into another; neighbors in the part are `step` apart in them.
  void copy(char* to, const Sizes& to_image, const char* from, const Sizes& from_image,
            const Sizes& count, const Sizes& to_step = {1, 1, 1},
            const Sizes& from_step = {1, 1, 1}) const {
    auto rows = [&](const Sizes& image, const Sizes& step) {
      return RowStrides{step[1] * image[2] * item_, step[2] * item_};
    };
    for (int64_t plane = 0; plane < count[0]; ++plane)
      copy_rows(to + index_of(to_image, {plane * to_step[0], 0, 0}) * item_,
                rows(to_image, to_step),
                from + index_of(from_image, {plane * from_step[0], 0, 0}) * item_,
                rows(from_image, from_step), item_, count[1], count[2]);
  }

  // Which remainder of each dim makes up a phase.
  Sizes remainders(int64_t phase) const {
    return {phase / (stride_[1] * stride_[2]), phase / stride_[2] % stride_[1], phase % stride_[2]};
  }
  Phase phase(int64_t index) const {
    Phase part;
    for (size_t d = 0; d < 3; ++d) {
      Steps steps = Steps::of_phase(sides_[d], remainders(index)[d]);
      part.begin[d] = steps.begin;
      part.count[d] = steps.count;
      part.step[d] = steps.stride;
      part.first[d] = (steps.begin + sides_[d].before) / steps.stride;
    }
    return part;
  }

  // The size of the padded input, or of each of its phases.
  Sizes input_phase() const {
    Sizes sizes;
    for (size_t d = 0; d < 3; ++d)
      sizes[d] = out_[d] + (sides_[d].kernel - 1) * sides_[d].dilation / stride_[d];
    return sizes;
  }

  void gather_input(const char* input, const Sizes& image, char* images) const {
    for (int64_t p = 0; p < phases(); ++p) {
      Phase part = phase(p);
      for (size_t d = 0; d < 3; ++d)
        part.count[d] = std::max<int64_t>(0, std::min(part.count[d], image[d] - part.first[d]));
      if (product(part.count) == 0) continue;
      copy(images + (p * product(image) + index_of(image, part.first)) * item_, image,
           input + index_of(conv_.size, part.begin) * item_, conv_.size, part.count, {1, 1, 1},
           part.step);
    }
  }

  // Calls f(tap of a filter, its distance from the first one) for all taps.
  template <class F>
  void for_each_tap(F&& f) const {
    int64_t tap = 0;
    for (int64_t z = 0; z < sides_[0].kernel; ++z)
      for (int64_t y = 0; y < sides_[1].kernel; ++y)
        for (int64_t x = 0; x < sides_[2].kernel; ++x)
          f(tap++, Sizes{z * sides_[0].dilation, y * sides_[1].dilation, x * sides_[2].dilation});
  }

  std::vector<DepthwiseTap> input_taps() const {
    Sizes image = input_phase();
    std::vector<DepthwiseTap> taps;
    for_each_tap([&](int64_t tap, const Sizes& distance) {
      Sizes phase, place;
      for (size_t d = 0; d < 3; ++d) {
        phase[d] = distance[d] % stride_[d];
        place[d] = distance[d] / stride_[d];
      }
      taps.push_back({index_of(stride_, phase) * product(image) + index_of(image, place), tap});
    });
    return taps;
  }

  // Those that element q of a phase sees of the gradient: that of output q - step, for taps that
  // lie a multiple of the stride, `step` times, behind the phase.
  std::vector<DepthwiseTap> grad_taps(int64_t phase, const Sizes& image, const Sizes& reach) const {
    Sizes behind = remainders(phase);
    std::vector<DepthwiseTap> taps;
    for (int64_t m = 0; m < multiplier(); ++m)
      for_each_tap([&](int64_t tap, const Sizes& distance) {
        Sizes place;
        for (size_t d = 0; d < 3; ++d) {
          if ((distance[d] - behind[d]) % stride_[d]) return;
          place[d] = reach[d] - (distance[d] - behind[d]) / stride_[d];
        }
        taps.push_back({m * product(image) + index_of(image, place), m * conv_.taps() + tap});
      });
    return taps;
  }

  Convolution conv_;
  int64_t item_;
  Side sides_[3];  // planes, rows and columns
  Sizes out_, stride_;
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
