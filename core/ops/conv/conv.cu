// Owns convolutions on CUDA: each of the three kernels is a product of matrices of which one, the
// windows of the images, is never written down. These macros name a variant:
//   FORWARD, INPUT_GRADIENT or WEIGHT_GRADIENT   which kernel
//   ELEMENT                                      the type in memory
//   DIMS                                         1, 2 or 3
//   CHANNELS_LAST                                true when channels lie side by side
//   SMALL_TILES                                  defined for tiles of 32 x 32 elements
//   TENSOR_CORES                                 whether they multiply
//   RUN                                          how many neighbors are read at once, see gemm.cuh
#include "core/ops/conv/conv_args.h"
#include "core/ops/matmul/gemm.cuh"

namespace rushlight::on_cuda {

using ElementSum = SumOf<ELEMENT>::type;
constexpr int kFirstDim = 3 - DIMS;

// An element of a filter, of one channel: at its distance from the filter's first one.
struct Tap {
  int64_t channel, number;
  int32_t at[3];
};

// A point of an image. Its place in memory is that of the group's first channel.
struct Point {
  int64_t image, offset;
  int32_t at[3];
};

// What the three kernels have in common.
struct Conv {
  using Element = ELEMENT;
  using Sum = ElementSum;
  static constexpr bool kTensorCores = TENSOR_CORES;

  const ConvArgs& args;
  int64_t group, piece;

  Conv(const ConvArgs& args, int64_t group, int64_t piece)
      : args(args), group(group), piece(piece) {}

  Tap tap(int64_t index) const {
    uint32_t channel = uint32_t(index), number;
    if constexpr (CHANNELS_LAST) {
      number = channel;
      channel = args.by_channels.split(number);
    } else {
      number = args.by_taps.split(channel);
    }
    Tap tap{channel, number, {}};
    uint32_t rest = number;
#pragma unroll
    for (int d = 2; d > kFirstDim; --d)
      tap.at[d] = int32_t(args.by_kernel[d].split(rest)) * args.dilation[d];
    tap.at[kFirstDim] = int32_t(rest) * args.dilation[kFirstDim];
    return tap;
  }

  // A point among those of all images, with its place in them.
  Point point(const ConvImages& images, int64_t index, int64_t channels) const {
    Point point{0, group * channels * images.channel, {}};
    uint32_t rest = uint32_t(index);
#pragma unroll
    for (int d = 2; d >= kFirstDim; --d) {
      point.at[d] = int32_t(args.by_size[d].split(rest));
      point.offset += point.at[d] * images.at[d];
    }
    point.image = rest;
    point.offset += point.image * images.batch;
    return point;
  }

  // The point of an output as the place of its window's first element in the input.
  Point window(int64_t index) const {
    Point window = point(args.output, index, args.out_channels);
#pragma unroll
    for (int d = kFirstDim; d < 3; ++d)
      window.at[d] = window.at[d] * args.stride[d] - args.padding[d];
    return window;
  }

  // What a window has under a tap; null beside the image.
  const ELEMENT* under(const Point& window, const Tap& tap) const {
    int64_t offset = window.image * args.input.batch +
                     (group * args.in_channels + tap.channel) * args.input.channel;
    bool inside = true;
#pragma unroll
    for (int d = kFirstDim; d < 3; ++d) {
      int32_t at = window.at[d] + tap.at[d];
      inside &= uint32_t(at) < uint32_t(args.input.size[d]);
      offset += at * args.input.at[d];
    }
    return inside ? static_cast<const ELEMENT*>(args.input.data) + offset : nullptr;
  }

  const ELEMENT* filter(int64_t out, int64_t in) const {
    return static_cast<const ELEMENT*>(args.weight) +
           (group * args.out_channels + out) * args.weight_out + in * args.weight_in;
  }
};

#if defined(FORWARD)

// output[out channel, window] = sum of weight[out channel, tap] * input[tap, window]
struct Kernel : Conv {
  static constexpr int kLeftRun = RUN, kRightRun = CHANNELS_LAST ? RUN : 0;
  int64_t rows = args.out_channels, columns = args.points;
  int64_t inner = int64_t(args.in_channels) * args.taps;
  using Conv::Conv;

  const ELEMENT* line_of_left(int64_t i) const { return filter(i, 0); }
  Point line_of_right(int64_t j) const { return window(j); }
  Tap at(int64_t p) const { return tap(p); }
  const ELEMENT* left(const ELEMENT* filter, const Tap& tap) const {
    return filter + tap.channel * args.weight_in + tap.number * args.weight_tap;
  }
  const ELEMENT* right(const Point& window, const Tap& tap) const { return under(window, tap); }

  int64_t place(int64_t j) const { return point(args.output, j, args.out_channels).offset; }
  void store(int64_t i, int64_t place, Sum sum) const {
    int64_t channel = group * args.out_channels + i;
    if (args.bias) sum += convert<Sum>(static_cast<const ELEMENT*>(args.bias)[channel]);
    static_cast<ELEMENT*>(args.output.data)[place + i * args.output.channel] =
        convert<ELEMENT>(sum);
  }
};

#elif defined(INPUT_GRADIENT)

// input[in channel, point] = sum of weight[tap, in channel] * output[tap, point], where taps are of
// output channels.
struct Kernel : Conv {
  static constexpr int kLeftRun = !CHANNELS_LAST, kRightRun = CHANNELS_LAST ? RUN : 0;
  int64_t rows = args.in_channels, columns = args.points;
  int64_t inner = int64_t(args.out_channels) * args.taps;
  using Conv::Conv;

  const ELEMENT* line_of_left(int64_t i) const { return filter(0, i); }
  Point line_of_right(int64_t j) const {
    Point place = point(args.input, j, args.in_channels);
#pragma unroll
    for (int d = kFirstDim; d < 3; ++d) place.at[d] += args.padding[d];
    return place;
  }
  Tap at(int64_t p) const { return tap(p); }
  const ELEMENT* left(const ELEMENT* filter, const Tap& tap) const {
    return filter + tap.channel * args.weight_out + tap.number * args.weight_tap;
  }
  // The output whose window has this point under this tap.
  const ELEMENT* right(const Point& place, const Tap& tap) const {
    int64_t offset = place.image * args.output.batch +
                     (group * args.out_channels + tap.channel) * args.output.channel;
    bool inside = true;
#pragma unroll
    for (int d = kFirstDim; d < 3; ++d) {
      int32_t distance = place.at[d] - tap.at[d];
      uint32_t at = distance < 0 ? 0 : uint32_t(distance);
      uint32_t rest = args.by_stride[d].split(at);
      inside &= distance >= 0 && rest == 0 && at < uint32_t(args.output.size[d]);
      offset += at * args.output.at[d];
    }
    return inside ? static_cast<const ELEMENT*>(args.output.data) + offset : nullptr;
  }

  int64_t place(int64_t j) const { return point(args.input, j, args.in_channels).offset; }
  void store(int64_t i, int64_t place, Sum sum) const {
    static_cast<ELEMENT*>(args.input.data)[place + i * args.input.channel] = convert<ELEMENT>(sum);
  }
};

#else

// weight[out channel, tap] = sum of output[out channel, window] * input[window, tap]
struct Kernel : Conv {
  static constexpr int kLeftRun = !CHANNELS_LAST, kRightRun = !CHANNELS_LAST;
  int64_t rows = args.out_channels, columns = int64_t(args.in_channels) * args.taps;
  int64_t inner = args.points;
  using Conv::Conv;

  const ELEMENT* line_of_left(int64_t i) const {
    return static_cast<const ELEMENT*>(args.output.data) + i * args.output.channel;
  }
  Tap line_of_right(int64_t j) const { return tap(j); }
  Point at(int64_t p) const { return window(p); }
  const ELEMENT* left(const ELEMENT* channel, const Point& window) const {
    return channel + window.offset;
  }
  const ELEMENT* right(const Tap& tap, const Point& window) const { return under(window, tap); }

  // In the sums of pieces, or in the weight.
  int64_t place(int64_t j) const { return args.grid.pieces > 1 ? j : place_in_weight(j); }
  void store(int64_t i, int64_t place, Sum sum) const {
    int64_t row = group * rows + i;
    if (args.grid.pieces > 1) {
      int64_t pieces_before = piece * args.groups * rows;
      static_cast<Sum*>(args.partial)[(pieces_before + row) * columns + place] = sum;
    } else {
      finish(row, place, sum);
    }
  }

  int64_t place_in_weight(int64_t j) const {
    Tap tap = this->tap(j);
    return tap.channel * args.weight_in + tap.number * args.weight_tap;
  }
  void finish(int64_t row, int64_t place, Sum sum) const {
    static_cast<ELEMENT*>(args.weight)[row * args.weight_out + place] = convert<ELEMENT>(sum);
  }
};

#endif

extern "C" __global__ void __launch_bounds__(kGemmThreads) tiles(ConvArgs args) {
  GemmPlace place(args.grid, blockIdx.x, Kernel(args, 0, 0).inner);
  constexpr int kPer = kSumsPerThread<ElementSum>, kTile = kSide * kPer;
  multiply_tile<kPer>(Kernel(args, place.batch, place.piece), place.row * kTile,
                      place.column * kTile, place.begin, place.end);
}

#ifdef WEIGHT_GRADIENT

extern "C" __global__ void __launch_bounds__(kGemmThreads) few_channels(ConvArgs args) {
  GemmPlace place(args.grid, blockIdx.x, args.points);
  multiply_by_block(Kernel(args, place.batch, place.piece), place.row, place.column, place.begin,
                    place.end);
}

extern "C" __global__ void __launch_bounds__(kGemmThreads) add_pieces(ConvArgs args) {
  int64_t place = int64_t(blockIdx.x) * kGemmThreads + threadIdx.x;
  Kernel kernel(args, 0, 0);
  int64_t count = args.groups * kernel.rows * kernel.columns;
  if (place >= count) return;
  ElementSum sum(0);
  for (int64_t piece = 0; piece < args.grid.pieces; ++piece)
    sum += static_cast<const ElementSum*>(args.partial)[piece * count + place];
  kernel.finish(place / kernel.columns, kernel.place_in_weight(place % kernel.columns), sum);
}

#else

// A thread for each element of the result, those that lie side by side next to each other.
extern "C" __global__ void __launch_bounds__(kGemmThreads) few_channels(ConvArgs args) {
  int64_t index = int64_t(blockIdx.x) * kGemmThreads + threadIdx.x;
  Kernel sizes(args, 0, 0);
  int64_t channels = args.groups * sizes.rows;
  if (index >= channels * sizes.columns) return;
  int64_t channel = CHANNELS_LAST ? index % channels : index / sizes.columns;
  int64_t column = CHANNELS_LAST ? index / channels : index % sizes.columns;
  multiply_by_thread(Kernel(args, channel / sizes.rows, 0), channel % sizes.rows, column);
}

#endif

}  // namespace rushlight::on_cuda
