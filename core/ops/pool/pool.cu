// Owns pooling on CUDA: a thread finishes an output, or an element of a gradient, by itself, so
// that no order of threads shows. ELEMENT names the type in memory, SUM the one to compute in.
#include "core/tensor/formula.cuh"

#include "core/ops/pool/pool_windows.h"
#include "core/tensor/convert.h"
#include "core/tensor/limits.cuh"

namespace rushlight::on_cuda {

using Sum = SUM;

constexpr int kBatch = 0, kChannel = 1, kPlane = 2, kRow = 3, kColumn = 4;

// What a thread works on: an element of volumes, whose neighbors in memory are its neighbors'.
struct Place {
  int64_t at[5];  // batch, channel, plane, row, column

  int64_t offset(const PoolVolumes& volumes) const {
    int64_t offset = 0;
    for (int d = 0; d < 5; ++d) offset += at[d] * volumes.strides[d];
    return offset;
  }
};

// Index is as narrow as the count of elements allows, because divisions of 64 bits are slow.
template <class Index>
Place place_of(const PoolArgs& args, Index index, const int64_t (&sizes)[3]) {
  Place place;
  auto split = [&](Index size) {
    Index rest = index % size;
    index /= size;
    return int64_t(rest);
  };
  Index channels = Index(args.channels);
  if (args.channels_last) place.at[kChannel] = split(channels);
  for (int d = 2; d >= 0; --d) place.at[kPlane + d] = split(Index(sizes[d]));
  if (!args.channels_last) place.at[kChannel] = split(channels);
  place.at[kBatch] = int64_t(index);
  return place;
}

// Calls f(place) for the thread's element of volumes of these sizes.
template <class F>
void for_place(const PoolArgs& args, const int64_t (&sizes)[3], F f) {
  int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t count = args.batch * args.channels * sizes[0] * sizes[1] * sizes[2];
  if (index >= count) return;
  if (count < int64_t(1) << 32) f(place_of<uint32_t>(args, uint32_t(index), sizes));
  else f(place_of<uint64_t>(args, uint64_t(index), sizes));
}

// Calls f(place) for the thread's output, or for its element of the input.
template <class F>
void for_output(const PoolArgs& args, F f) {
  const PoolWindows* w = args.windows;
  for_place(args, {w[0].out, w[1].out, w[2].out}, f);
}
template <class F>
void for_element(const PoolArgs& args, F f) {
  const PoolWindows* w = args.windows;
  for_place(args, {w[0].size, w[1].size, w[2].size}, f);
}

// The number of an element in its volume.
int64_t number_of(const PoolArgs& args, int64_t plane, int64_t row, int64_t column) {
  return (plane * args.windows[1].size + row) * args.windows[2].size + column;
}

Sum load(const PoolVolumes& volumes, int64_t offset) {
  return convert<Sum>(static_cast<const ELEMENT*>(volumes.data)[offset]);
}
void store(const PoolVolumes& volumes, const Place& place, Sum value) {
  static_cast<ELEMENT*>(volumes.data)[place.offset(volumes)] = convert<ELEMENT>(value);
}

// Calls f(element, plane, row, column) for what the window of an output holds.
template <class F>
void for_window(const PoolArgs& args, const Place& output, F f) {
  const PoolWindows &planes = args.windows[0], &rows = args.windows[1], &columns = args.windows[2];
  const int64_t* strides = args.input.strides;
  int64_t first = output.at[kBatch] * strides[kBatch] + output.at[kChannel] * strides[kChannel];
  int64_t plane_end = planes.end(output.at[kPlane]), row_end = rows.end(output.at[kRow]);
  int64_t row_begin = rows.begin(output.at[kRow]);
  int64_t column_begin = columns.begin(output.at[kColumn]);
  int64_t column_end = columns.end(output.at[kColumn]);
  for (int64_t plane = planes.begin(output.at[kPlane]); plane < plane_end; plane += planes.dilation)
    for (int64_t row = row_begin; row < row_end; row += rows.dilation)
      for (int64_t column = column_begin; column < column_end; column += columns.dilation) {
        int64_t offset =
            first + plane * strides[kPlane] + row * strides[kRow] + column * strides[kColumn];
        f(load(args.input, offset), plane, row, column);
      }
}

// Calls f(output) for the outputs whose windows span an element of the input.
template <class F>
void for_outputs(const PoolArgs& args, const Place& element, F f) {
  const PoolWindows &planes = args.windows[0], &rows = args.windows[1], &columns = args.windows[2];
  int64_t last_plane = planes.last_output(element.at[kPlane]);
  int64_t first_row = rows.first_output(element.at[kRow]);
  int64_t last_row = rows.last_output(element.at[kRow]);
  int64_t first_column = columns.first_output(element.at[kColumn]);
  int64_t last_column = columns.last_output(element.at[kColumn]);
  Place output = element;
  for (int64_t plane = planes.first_output(element.at[kPlane]); plane <= last_plane; ++plane)
    for (int64_t row = first_row; row <= last_row; ++row)
      for (int64_t column = first_column; column <= last_column; ++column) {
        output.at[kPlane] = plane;
        output.at[kRow] = row;
        output.at[kColumn] = column;
        f(output);
      }
}

Sum quotient(Sum sum, Sum divisor) {
  if constexpr (detail::kSame<Sum, int64_t>) return trunc_divide(sum, divisor);
  else return sum / divisor;
}

Sum divisor_of(const PoolArgs& args, const Place& output) {
  if (args.divisor.number != 0) return Sum(args.divisor.number);
  auto count = [&](const PoolWindows& windows, int64_t o) {
    return args.divisor.counts_padding ? windows.padded_count(o)
                                       : windows.end(o) - windows.begin(o);
  };
  Sum product(1);
  for (int d = 0; d < 3; ++d) product *= Sum(count(args.windows[d], output.at[kPlane + d]));
  return product;
}

extern "C" __global__ void max_pool(PoolArgs args) {
  for_output(args, [&](const Place& output) {
    const PoolWindows* w = args.windows;
    Sum best = kLowest<Sum>;
    int64_t index = number_of(args, w[0].begin(output.at[kPlane]), w[1].begin(output.at[kRow]),
                              w[2].begin(output.at[kColumn]));
    for_window(args, output, [&](Sum x, int64_t plane, int64_t row, int64_t column) {
      bool is_better = x > best || x != x;  // NaN is the largest
      best = is_better ? x : best;
      index = is_better ? number_of(args, plane, row, column) : index;
    });
    store(args.output, output, best);
    static_cast<int32_t*>(args.indices.data)[output.offset(args.indices)] = int32_t(index);
  });
}

extern "C" __global__ void max_pool_backward(PoolArgs args) {
  for_element(args, [&](const Place& element) {
    int64_t index = number_of(args, element.at[kPlane], element.at[kRow], element.at[kColumn]);
    Sum sum(0);
    for_outputs(args, element, [&](const Place& output) {
      int32_t chosen = static_cast<const int32_t*>(args.indices.data)[output.offset(args.indices)];
      if (chosen == index) sum += load(args.output, output.offset(args.output));
    });
    store(args.input, element, sum);
  });
}

extern "C" __global__ void avg_pool(PoolArgs args) {
  for_output(args, [&](const Place& output) {
    Sum sum(0);
    for_window(args, output, [&](Sum x, int64_t, int64_t, int64_t) { sum += x; });
    store(args.output, output, quotient(sum, divisor_of(args, output)));
  });
}

extern "C" __global__ void avg_pool_backward(PoolArgs args) {
  for_element(args, [&](const Place& element) {
    Sum sum(0);
    for_outputs(args, element, [&](const Place& output) {
      sum += load(args.output, output.offset(args.output)) / divisor_of(args, output);
    });
    store(args.input, element, sum);
  });
}

}  // namespace rushlight::on_cuda
