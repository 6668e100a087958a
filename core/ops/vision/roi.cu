// Owns roi pooling on CUDA. Where bins look is a plan that the host has made; a thread finishes an
// element of the result by itself, so that sums have one order.
//   ITEM      the dtype in memory
//   COMPUTE   float or double
#include "core/tensor/formula.cuh"

#include "core/ops/vision/roi_args.h"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

using Compute = COMPUTE;

// What a bin takes along an axis.
struct Taps {
  const int32_t* places;
  const Compute* weights;
  int64_t count;

  Taps(const RoiAxisArgs& axis, int64_t bin) {
    int64_t first = axis.start[bin];
    places = axis.places + first;
    weights = static_cast<const Compute*>(axis.weights) + first;
    count = axis.start[bin + 1] - first;
  }
  // The weight of a place, 0 if it is not taken.
  Compute weight(int64_t place) const {
    Compute sum = 0;
    for (int64_t k = 0; k < count; ++k)
      if (places[k] == place) sum += weights[k];
    return sum;
  }
};

// An element (roi, channel, bin down, bin across) of the result.
struct Bin {
  int64_t roi, channel, down, across;
  Bin(const RoiArgs& args, int64_t number) {
    across = number % args.across;
    down = number / args.across % args.down;
    channel = number / (args.across * args.down) % args.outputs;
    roi = number / (args.across * args.down * args.outputs);
  }
  Taps rows(const RoiArgs& args) const { return Taps(args.rows, roi * args.down + down); }
  Taps columns(const RoiArgs& args) const { return Taps(args.columns, roi * args.across + across); }
  // The plane of the input that it looks at.
  int64_t plane(const RoiArgs& args) const {
    int64_t own = args.by_planes ? (channel * args.down + down) * args.across + across : channel;
    return args.images[roi] * args.channels + own;
  }
};

inline int64_t thread_number() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

extern "C" __global__ void sums(RoiArgs args, const ITEM* input, ITEM* result) {
  int64_t number = thread_number();
  if (number >= args.total) return;
  Bin bin(args, number);
  Taps rows = bin.rows(args), columns = bin.columns(args);
  const ITEM* plane = input + bin.plane(args) * args.height * args.width;
  Compute total = 0;
  for (int64_t k = 0; k < rows.count; ++k) {
    const ITEM* row = plane + rows.places[k] * args.width;
    Compute sum = 0;
    for (int64_t l = 0; l < columns.count; ++l)
      sum = multiply_add(convert<Compute>(row[columns.places[l]]), columns.weights[l], sum);
    total = multiply_add(sum, rows.weights[k], total);
  }
  result[number] = convert<ITEM>(total);
}

extern "C" __global__ void maxima(RoiArgs args, const ITEM* input, ITEM* values, int64_t* places) {
  int64_t number = thread_number();
  if (number >= args.total) return;
  Bin bin(args, number);
  Taps rows = bin.rows(args), columns = bin.columns(args);
  const ITEM* plane = input + bin.plane(args) * args.height * args.width;
  Compute best = 0;
  int64_t place = -1;
  for (int64_t k = 0; k < rows.count; ++k)
    for (int64_t l = 0; l < columns.count; ++l) {
      int64_t here = rows.places[k] * args.width + columns.places[l];
      Compute value = convert<Compute>(plane[here]);
      if (place >= 0 && !(value > best)) continue;
      best = value;
      place = here;
    }
  values[number] = convert<ITEM>(best);
  places[number] = place;
}

// The gradient of one pixel: of all bins that took it, roi after roi.
extern "C" __global__ void spread(RoiArgs args, const ITEM* grad, ITEM* result) {
  int64_t number = thread_number(), area = args.down * args.across;
  if (number >= args.total) return;
  int64_t x = number % args.width, y = number / args.width % args.height;
  int64_t plane = number / (args.width * args.height);
  int64_t channel = plane % args.channels, image = plane / args.channels;
  int64_t output = args.by_planes ? channel / area : channel;
  Compute total = 0;
  for (int64_t roi = 0; roi < args.rois; ++roi) {
    if (args.images[roi] != image) continue;
    const ITEM* bins = grad + (roi * args.outputs + output) * area;
    int64_t first = args.by_planes ? channel % area : 0, end = args.by_planes ? first + 1 : area;
    Compute row = 0;
    for (int64_t bin = first; bin < end; ++bin) {
      int64_t down = bin / args.across, across = bin % args.across;
      if (bin == first || across == 0) row = Taps(args.rows, roi * args.down + down).weight(y);
      if (row == 0) continue;
      Compute column = Taps(args.columns, roi * args.across + across).weight(x);
      total = multiply_add(convert<Compute>(bins[bin]), row * column, total);
    }
  }
  result[number] = convert<ITEM>(total);
}

}  // namespace rushlight::on_cuda
