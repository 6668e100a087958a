// Defines the kernels of pooling on the CPU: layouts, threads, and the tables of windows for
// pool_isa.cpp.
#include "core/ops/pool/pool.h"

#include <atomic>
#include <cstring>
#include <memory>

#include "core/base/ceil_div.h"
#include "core/device/threads.h"
#include "core/ops/pool/pool_loops.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(PoolLoops, pool_loops)

namespace {

constexpr int64_t kGrain = 16384;  // pixels that are worth a thread

const PoolLoops& loops() { return active(pool_loops_sets); }

// The tables that a PoolAxis points to.
class AxisTables {
 public:
  explicit AxisTables(const PoolWindows& windows)
      : windows_(windows),
        begin_(std::make_unique_for_overwrite<int32_t[]>(size_t(windows.out))),
        end_(std::make_unique_for_overwrite<int32_t[]>(size_t(windows.out))) {}

  void fill() {
    for (int64_t o = 0; o < windows_.out; ++o) {
      begin_[size_t(o)] = int32_t(windows_.begin(o));
      end_[size_t(o)] = int32_t(windows_.end(o));
    }
  }

  PoolAxis axis() const {
    const PoolWindows& w = windows_;
    PoolAxis axis{w.size, w.out, begin_.get(), end_.get(), w.dilation, 0, 0, w.stride};
    int64_t last =
        w.size + w.padding - ((w.kernel - 1) * w.dilation + 1);  // start of a whole window
    if (w.kernel == 0 || last < 0) return axis;
    axis.even_begin = ceil_div(w.padding, w.stride);
    axis.even_end = std::max(axis.even_begin, std::min(w.out, last / w.stride + 1));
    return axis;
  }

 private:
  PoolWindows windows_;
  std::unique_ptr<int32_t[]> begin_, end_;
};

// The tables of all three dims.
class VolumeTables {
 public:
  explicit VolumeTables(const PoolWindows3d& windows)
      : planes_(windows[0]),
        rows_(windows[1]),
        columns_(windows[2]),
        volume_{planes_.axis(), rows_.axis(), columns_.axis(), 1, 1} {}
  VolumeTables(const VolumeTables&) = delete;
  VolumeTables& operator=(const VolumeTables&) = delete;

  // Before the loops, after memory was found for their results: there may be any number of windows.
  void fill() {
    for (AxisTables* axis : {&planes_, &rows_, &columns_}) axis->fill();
  }
  PoolVolume volume(int64_t channels, int64_t pixel) const {
    PoolVolume volume = volume_;
    volume.channels = channels;
    volume.pixel = pixel;
    return volume;
  }
  // How many vectors of the loops the outputs of a row fill.
  int64_t vectors_along_rows(DType dtype) const {
    int64_t even = volume_.columns.even_end - volume_.columns.even_begin;
    return even * int64_t(dtype_size(dtype)) / kPoolRowBytes;
  }

 private:
  AxisTables planes_, rows_, columns_;
  PoolVolume volume_;
};

struct Volumes {
  int64_t batch, channels;
  bool channels_last;
  int64_t in_pixels, out_pixels;
};

// Calls f(where the input begins, where the output begins, channels side by side, their distance
// from pixel to pixel) for parts of the volumes that have no element in common.
template <class F>
void for_each_part(const Volumes& volumes, F&& f) {
  bool side_by_side = volumes.channels_last;
  int64_t channels = side_by_side ? volumes.channels : 1;
  int64_t block = std::min(kPoolChannels, channels), blocks = ceil_div(channels, block);
  int64_t images = volumes.batch * (side_by_side ? 1 : volumes.channels);
  int64_t pixels = std::max(volumes.in_pixels, volumes.out_pixels) * block;
  parallel_for(0, images * blocks, std::max<int64_t>(1, kGrain / pixels),
               [&](int64_t begin, int64_t end) {
                 int64_t image = begin / blocks, first = begin % blocks * block;
                 for (int64_t i = begin; i < end; ++i) {
                   f(image * channels * volumes.in_pixels + first,
                     image * channels * volumes.out_pixels + first,
                     std::min(block, channels - first), channels);
                   first += block;
                   if (first < channels) continue;
                   first = 0;
                   ++image;
                 }
               });
}

Tensor dense(const Tensor& tensor, bool channels_last) {
  return in_format(tensor,
                   channels_last ? channels_last_for(tensor.dim()) : MemoryFormat::contiguous);
}

DType loop_dtype(DType dtype) { return dtype_of_compute(compute_of(dtype)); }

Tensor cast_dense(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor result = empty_strided(tensor.sizes(), tensor.strides(), dtype);
  copy_into(result, tensor);
  return result;
}

// The operand as the loops take it: dense in its layout, in float32, float64 or int64.
Tensor prepared(const Tensor& tensor, bool channels_last) {
  return cast_dense(dense(tensor, channels_last), loop_dtype(tensor.dtype()));
}

// The layout in which the loops run: that of a tensor, or, where no vectors run along the rows of
// its planes, all planes as the channels of one image.
class PoolLayout {
 public:
  PoolLayout(const Tensor& tensor, int64_t vectors_along_rows)
      : batch_(tensor.size(0)), channels_(tensor.size(1)), was_last_(is_channels_last(tensor)) {
    // Turning pays where each thread gets a block of channels.
    bool has_blocks = batch_ * channels_ >= kPoolChannels * num_threads();
    turns_ = !was_last_ && vectors_along_rows == 0 && has_blocks;
  }

  bool channels_last() const { return was_last_ || turns_; }
  // A tensor as the loops take it.
  Tensor turned(const Tensor& tensor) const {
    return prepared(turns_ ? with_planes(dense(tensor, false), 1, batch_ * channels_) : tensor,
                    channels_last());
  }
  // A result as the user gets it.
  Tensor restored(const Tensor& result, DType dtype) const {
    Tensor narrow = cast_dense(result, dtype);
    return turns_ ? with_planes(dense(narrow, false), batch_, channels_) : narrow;
  }

 private:
  static Tensor with_planes(const Tensor& tensor, int64_t batch, int64_t channels) {
    Shape sizes = tensor.sizes();
    sizes[0] = batch;
    sizes[1] = channels;
    return alias(tensor, sizes, contiguous_strides(sizes), tensor.offset());
  }

  int64_t batch_, channels_;
  bool was_last_, turns_;
};

// The place of the operand's loop in PoolLoops.
size_t loop_of(const Tensor& operand) {
  return operand.dtype() == DType::float32 ? 0 : operand.dtype() == DType::float64 ? 1 : 2;
}

Tensor zero_volumes(ShapeRef sizes, DType dtype, bool channels_last) {
  Tensor zeros = empty_volumes(sizes, dtype, {}, channels_last);
  std::memset(zeros.data(), 0, size_t(zeros.numel()) * zeros.itemsize());
  return zeros;
}

Volumes volumes_of(const PoolWindows3d& windows, const Tensor& tensor, bool channels_last) {
  return {tensor.size(0), tensor.size(1), channels_last,
          windows[0].size * windows[1].size * windows[2].size,
          windows[0].out * windows[1].out * windows[2].out};
}

// The divisor of each output.
Tensor divisors_of(const PoolWindows3d& windows, PoolDivisor divisor, DType dtype) {
  auto count = [&](const PoolWindows& w, int64_t o) {  // a product of three may not fit in int64_t
    return double(divisor.counts_padding ? w.padded_count(o) : w.end(o) - w.begin(o));
  };
  Tensor divisors = empty(Shape{windows[0].out, windows[1].out, windows[2].out}, DType::float64);
  double* at = divisors.data<double>();
  for (int64_t plane = 0; plane < windows[0].out; ++plane)
    for (int64_t row = 0; row < windows[1].out; ++row) {
      double of_row = count(windows[0], plane) * count(windows[1], row);
      for (int64_t column = 0; column < windows[2].out; ++column)
        *at++ = divisor.number ? double(divisor.number) : of_row * count(windows[2], column);
    }
  return to_dtype(divisors, dtype);
}

char* bytes_at(const Tensor& tensor, int64_t element) {
  return tensor.data<char>() + element * int64_t(tensor.itemsize());
}

}  // namespace

std::pair<Tensor, Tensor> max_pool_on_cpu(const PoolWindows3d& windows, const Tensor& input) {
  VolumeTables tables(windows);
  PoolLayout layout(input, tables.vectors_along_rows(loop_dtype(input.dtype())));
  bool channels_last = layout.channels_last();
  Tensor x = layout.turned(input);
  Shape sizes = pooled_sizes(windows, x);
  Tensor values = empty_volumes(sizes, x.dtype(), {}, channels_last);
  Tensor indices = empty_volumes(sizes, DType::int32, {}, channels_last);
  tables.fill();
  MaxPoolLoop loop = loops().max[loop_of(x)];
  for_each_part(volumes_of(windows, x, channels_last), [&](int64_t in, int64_t out,
                                                           int64_t channels, int64_t pixel) {
    PoolVolume volume = tables.volume(channels, pixel);
    loop(volume, bytes_at(x, in), bytes_at(values, out), indices.data<int32_t>() + out);
  });
  return {layout.restored(values, input.dtype()), layout.restored(indices, DType::int32)};
}

Tensor max_pool_backward_on_cpu(const PoolWindows3d& windows, const Tensor& grad,
                                const Tensor& indices) {
  bool channels_last = is_channels_last(indices);
  Tensor places = dense(indices, channels_last), g = prepared(grad, channels_last);
  Tensor result = zero_volumes(whole_sizes(windows, grad), g.dtype(), channels_last);
  Volumes volumes = volumes_of(windows, grad, channels_last);
  int64_t pixels = volumes.in_pixels;
  std::atomic<bool> all_inside = true;
  auto scatter = [&]<class T>(Tag<T>) {
    for_each_part(volumes, [&](int64_t in, int64_t out, int64_t channels, int64_t pixel) {
      const T* from = g.data<T>() + out;
      const int32_t* place = places.data<int32_t>() + out;
      T* to = result.data<T>() + in;
      bool inside = true;
      auto add = [&](int64_t i, int64_t c) {
        auto at = uint64_t(place[i + c]);
        if (at < uint64_t(pixels)) to[int64_t(at) * pixel + c] += from[i + c];
        else inside = false;
      };
      int64_t end = volumes.out_pixels * pixel;
      if (channels == 1)
        for (int64_t i = 0; i < end; i += pixel) add(i, 0);
      else
        for (int64_t i = 0; i < end; i += pixel)
          for (int64_t c = 0; c < channels; ++c) add(i, c);
      if (!inside) all_inside = false;
    });
  };
  if (g.dtype() == DType::float64) scatter(Tag<double>{});
  else scatter(Tag<float>{});
  CHECK(all_inside, ErrorKind::kIndex, "an index is out of range for images of ", pixels,
        " pixels.");
  return cast_dense(result, grad.dtype());
}

Tensor avg_pool_on_cpu(const PoolWindows3d& windows, PoolDivisor divisor, const Tensor& input) {
  VolumeTables tables(windows);
  PoolLayout layout(input, tables.vectors_along_rows(loop_dtype(input.dtype())));
  bool channels_last = layout.channels_last();
  Tensor x = layout.turned(input);
  Tensor means = empty_volumes(pooled_sizes(windows, x), x.dtype(), {}, channels_last);
  tables.fill();
  Tensor divisors = divisors_of(windows, divisor, x.dtype());
  AvgPoolLoop loop = loops().avg[loop_of(x)];
  for_each_part(volumes_of(windows, x, channels_last),
                [&](int64_t in, int64_t out, int64_t channels, int64_t pixel) {
                  PoolVolume volume = tables.volume(channels, pixel);
                  loop(volume, divisors.data(), bytes_at(x, in), bytes_at(means, out));
                });
  return layout.restored(means, input.dtype());
}

Tensor avg_pool_backward_on_cpu(const PoolWindows3d& windows, PoolDivisor divisor,
                                const Tensor& grad) {
  VolumeTables tables(windows);
  PoolLayout layout(grad, 0);  // windows overlap: no vectors along rows
  bool channels_last = layout.channels_last();
  Tensor g = layout.turned(grad);
  Tensor result = zero_volumes(whole_sizes(windows, g), g.dtype(), channels_last);
  tables.fill();
  Tensor divisors = divisors_of(windows, divisor, g.dtype());
  AvgPoolBackwardLoop loop = loops().avg_backward[loop_of(g)];
  for_each_part(volumes_of(windows, g, channels_last),
                [&](int64_t in, int64_t out, int64_t channels, int64_t pixel) {
                  PoolVolume volume = tables.volume(channels, pixel);
                  loop(volume, divisors.data(), bytes_at(g, out), bytes_at(result, in));
                });
  return layout.restored(result, grad.dtype());
}

}  // namespace rushlight
