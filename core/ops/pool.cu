// Owns pooling on CUDA: a thread finishes an output, or an element of a gradient, by itself, so
// that no order of threads shows. ELEMENT names the type in memory, SUM the one to compute in.
#include "core/tensor/formula.cuh"

#include "core/ops/pool_windows.h"
#include "core/tensor/convert.h"
#include "core/tensor/limits.cuh"

namespace rushlight::on_cuda {

using Sum = SUM;

constexpr int kBatch = 0, kChannel = 1, kRow = 2, kColumn = 3;

// What a thread works on: an element of images, whose neighbours in memory are its neighbours'.
struct Place {
  int64_t at[4];  // batch, channel, row, column

  int64_t offset(const PoolImages& images) const {
    int64_t offset = 0;
    for (int d = 0; d < 4; ++d) offset += at[d] * images.strides[d];
    return offset;
  }
};

// Index is as narrow as the count of elements allows, because divisions of 64 bits are slow.
template <class Index>
Place place_of(const PoolArgs& args, Index index, Index rows, Index columns) {
  Place place;
  auto split = [&](Index size) {
    Index rest = index % size;
    index /= size;
    return int64_t(rest);
  };
  Index channels = Index(args.channels);
  if (args.channels_last) place.at[kChannel] = split(channels);
  place.at[kColumn] = split(columns);
  place.at[kRow] = split(rows);
  if (!args.channels_last) place.at[kChannel] = split(channels);
  place.at[kBatch] = int64_t(index);
  return place;
}

// Calls f(place) for the thread's element of images of rows x columns.
template <class F>
void for_place(const PoolArgs& args, int64_t rows, int64_t columns, F f) {
  int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t count = args.batch * args.channels * rows * columns;
  if (index >= count) return;
  if (count < int64_t(1) << 32) f(place_of<uint32_t>(args, index, rows, columns));
  else f(place_of<uint64_t>(args, index, rows, columns));
}

Sum load(const PoolImages& images, int64_t offset) {
  return convert<Sum>(static_cast<const ELEMENT*>(images.data)[offset]);
}
void store(const PoolImages& images, const Place& place, Sum value) {
  static_cast<ELEMENT*>(images.data)[place.offset(images)] = convert<ELEMENT>(value);
}

// Calls f(element, row, column) for what the window of an output holds.
template <class F>
void for_window(const PoolArgs& args, const Place& output, F f) {
  const PoolWindows &rows = args.windows[0], &columns = args.windows[1];
  int64_t first = output.at[kBatch] * args.input.strides[kBatch] +
                  output.at[kChannel] * args.input.strides[kChannel];
  int64_t row_end = rows.end(output.at[kRow]), column_end = columns.end(output.at[kColumn]);
  int64_t column_begin = columns.begin(output.at[kColumn]);
  for (int64_t row = rows.begin(output.at[kRow]); row < row_end; row += rows.dilation)
    for (int64_t column = column_begin; column < column_end; column += columns.dilation) {
      int64_t offset =
          first + row * args.input.strides[kRow] + column * args.input.strides[kColumn];
      f(load(args.input, offset), row, column);
    }
}

// Calls f(output) for the outputs whose windows span an element of the input.
template <class F>
void for_outputs(const PoolArgs& args, const Place& element, F f) {
  const PoolWindows &rows = args.windows[0], &columns = args.windows[1];
  int64_t last_row = rows.last_output(element.at[kRow]);
  int64_t first_column = columns.first_output(element.at[kColumn]);
  int64_t last_column = columns.last_output(element.at[kColumn]);
  Place output = element;
  for (int64_t row = rows.first_output(element.at[kRow]); row <= last_row; ++row)
    for (int64_t column = first_column; column <= last_column; ++column) {
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
  return Sum(count(args.windows[0], output.at[kRow]) * count(args.windows[1], output.at[kColumn]));
}

extern "C" __global__ void max_pool(PoolArgs args) {
  for_place(args, args.windows[0].out, args.windows[1].out, [&](const Place& output) {
    int64_t width = args.windows[1].size;
    Sum best = kLowest<Sum>;
    int64_t index =
        args.windows[0].begin(output.at[kRow]) * width + args.windows[1].begin(output.at[kColumn]);
    for_window(args, output, [&](Sum x, int64_t row, int64_t column) {
      bool is_better = x > best || x != x;  // NaN is the largest
      best = is_better ? x : best;
      index = is_better ? row * width + column : index;
    });
    store(args.output, output, best);
    static_cast<int32_t*>(args.indices.data)[output.offset(args.indices)] = int32_t(index);
  });
}

extern "C" __global__ void max_pool_backward(PoolArgs args) {
  for_place(args, args.windows[0].size, args.windows[1].size, [&](const Place& element) {
    int64_t index = element.at[kRow] * args.windows[1].size + element.at[kColumn];
    Sum sum(0);
    for_outputs(args, element, [&](const Place& output) {
      int32_t chosen = static_cast<const int32_t*>(args.indices.data)[output.offset(args.indices)];
      if (chosen == index) sum += load(args.output, output.offset(args.output));
    });
    store(args.input, element, sum);
  });
}

extern "C" __global__ void avg_pool(PoolArgs args) {
  for_place(args, args.windows[0].out, args.windows[1].out, [&](const Place& output) {
    Sum sum(0);
    for_window(args, output, [&](Sum x, int64_t, int64_t) { sum += x; });
    store(args.output, output, quotient(sum, divisor_of(args, output)));
  });
}

extern "C" __global__ void avg_pool_backward(PoolArgs args) {
  for_place(args, args.windows[0].size, args.windows[1].size, [&](const Place& element) {
    Sum sum(0);
    for_outputs(args, element, [&](const Place& output) {
      sum += load(args.output, output.offset(args.output)) / divisor_of(args, output);
    });
    store(args.input, element, sum);
  });
}

}  // namespace rushlight::on_cuda
