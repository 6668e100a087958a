// Defines the kernels of pooling on the CPU: layouts, threads, and the tables of windows for the
// loops.
#include "core/ops/pool/pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/threads.h"
#include "core/ops/pool/pool_loops.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(MaxPoolLoops, max_pool_loops)
ISA_TABLES(AvgPoolLoops, avg_pool_loops)

namespace {

constexpr int64_t kGrain = 16384;  // pixels that are worth a thread

const AvgPoolLoops& avg_loops() { return active(avg_pool_loops_sets); }

struct Volumes {
  int64_t batch, channels;
  bool channels_last;
  int64_t in_pixels, out_pixels;
};

// Some channels of a volume that lie side by side, `pixel` apart from pixel to pixel.
struct Part {
  int64_t in, out;  // where the input and the output begin
  int64_t channels, pixel;
  void* scratch;
};

// Calls f(part) for parts of the volumes that have no element in common. Their scratch has so many
// bytes for each channel.
template <class F>
void for_each_part(const Volumes& volumes, int64_t scratch, F&& f) {
  bool side_by_side = volumes.channels_last;
  int64_t channels = side_by_side ? volumes.channels : 1;
  int64_t block = std::min(kPoolChannels, channels), blocks = ceil_div(channels, block);
  int64_t images = volumes.batch * (side_by_side ? 1 : volumes.channels);
  int64_t pixels = std::max(volumes.in_pixels, volumes.out_pixels) * block;
  parallel_for(0, images * blocks, std::max<int64_t>(1, kGrain / pixels),
               [&](int64_t begin, int64_t end) {
                 CpuBuffer buffer(size_t(block * scratch));
                 int64_t image = begin / blocks, first = begin % blocks * block;
                 for (int64_t i = begin; i < end; ++i) {
                   f(Part{image * channels * volumes.in_pixels + first,
                          image * channels * volumes.out_pixels + first,
                          std::min(block, channels - first), channels, buffer.data()});
                   first += block;
                   if (first < channels) continue;
                   first = 0;
                   ++image;
                 }
               });
}

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

  // How many windows have an element in common at most; after fill().
  int64_t sharing() const {
    int64_t most = 0;
    for (int64_t first = 0, o = 0; o < windows_.out; ++o) {
      while (first < o && end_[size_t(first)] <= begin_[size_t(o)]) ++first;
      most = std::max(most, o + 1 - first);
    }
    return most;
  }

  PoolAxis axis() const {
    const PoolWindows& w = windows_;
    PoolAxis axis{w.size, w.out, begin_.get(), end_.get(), w.dilation, 0, 0, w.stride, 1};
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
        volume_{planes_.axis(), rows_.axis(), columns_.axis(), 1, 1, nullptr} {}
  VolumeTables(const VolumeTables&) = delete;
  VolumeTables& operator=(const VolumeTables&) = delete;

  // Before the loops, after memory was found for their results: there may be any number of windows.
  void fill() {
    for (AxisTables* axis : {&planes_, &rows_, &columns_}) axis->fill();
    volume_.planes.sharing = planes_.sharing();
    volume_.rows.sharing = rows_.sharing();
    volume_.columns.sharing = columns_.sharing();
  }
  PoolVolume volume(const Part& part) const {
    PoolVolume volume = volume_;
    volume.channels = part.channels;
    volume.pixel = part.pixel;
    volume.scratch = part.scratch;
    return volume;
  }
  bool have_common_inputs() const {
    return volume_.planes.sharing * volume_.rows.sharing * volume_.columns.sharing > 1;
  }
  // The bytes of the scratch for each channel: a row of inputs and one of outputs, for gradients
  // also the rows that have an input in common.
  int64_t scratch_bytes(DType computed, bool is_backward) const {
    int64_t shared = is_backward ? volume_.planes.sharing * volume_.rows.sharing : 0;
    return (volume_.columns.size * (1 + shared) + volume_.columns.out) *
           int64_t(dtype_size(computed));
  }
  // Whether the outputs of a row with windows alike fill no vector.
  bool has_few_outputs(DType computed) const {
    int64_t even = volume_.columns.even_end - volume_.columns.even_begin;
    return even * int64_t(dtype_size(computed)) < kPoolRowBytes;
  }
  // Whether the inputs of a row fill few vectors.
  bool has_few_inputs(DType computed) const {
    return volume_.columns.size * int64_t(dtype_size(computed)) < 3 * kPoolRowBytes;
  }

 private:
  AxisTables planes_, rows_, columns_;
  PoolVolume volume_;
};

Tensor dense(const Tensor& tensor, bool channels_last) {
  return in_format(tensor,
                   channels_last ? channels_last_for(tensor.dim()) : MemoryFormat::contiguous);
}

DType computed_dtype(DType dtype) { return dtype_of_compute(compute_of(dtype)); }

// What the loops read and write: halves or what they compute in.
DType loop_dtype(DType dtype) { return is_half(dtype) ? dtype : computed_dtype(dtype); }

Tensor cast_dense(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor result = empty_strided(tensor.sizes(), tensor.strides(), dtype);
  copy_into(result, tensor);
  return result;
}

// The operand as the loops take it: dense in its layout, in a dtype of the loops.
Tensor prepared(const Tensor& tensor, bool channels_last) {
  return cast_dense(dense(tensor, channels_last), loop_dtype(tensor.dtype()));
}

// The layout in which the loops run: that of a tensor, or, where its rows are too short for vectors
// along them, all planes as the channels of one image.
class PoolLayout {
 public:
  PoolLayout(const Tensor& tensor, bool has_short_rows)
      : batch_(tensor.size(0)), channels_(tensor.size(1)), was_last_(is_channels_last(tensor)) {
    bool fills_vectors = batch_ * channels_ >= kPoolLanes * num_threads();
    turns_ = !was_last_ && has_short_rows && fills_vectors;
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

// The place of the operand's loop among those of a kind.
size_t loop_of(const Tensor& operand) {
  switch (operand.dtype()) {
    case DType::float32: return 0;
    case DType::float64: return 1;
    case DType::float16: return 3;
    case DType::bfloat16: return 4;
    default: return 2;
  }
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

// Halves are sums of one number.
template <class T>
void add_to(T& sum, T x) {
  if constexpr (std::is_arithmetic_v<T>) sum += x;
  else sum = x;
}

char* bytes_at(const Tensor& tensor, int64_t element) {
  return tensor.data<char>() + element * int64_t(tensor.itemsize());
}

}  // namespace

std::pair<Tensor, Tensor> max_pool_on_cpu(const PoolWindows3d& windows, const Tensor& input,
                                          bool with_indices) {
  VolumeTables tables(windows);
  PoolLayout layout(input, tables.has_few_outputs(computed_dtype(input.dtype())));
  bool channels_last = layout.channels_last();
  Tensor x = layout.turned(input);
  Shape sizes = pooled_sizes(windows, x);
  Tensor values = empty_volumes(sizes, x.dtype(), {}, channels_last);
  Tensor indices;
  if (with_indices) indices = empty_volumes(sizes, DType::int32, {}, channels_last);
  tables.fill();
  MaxPoolLoop loop = active(max_pool_loops_sets).of_memory[loop_of(x)];
  for_each_part(volumes_of(windows, x, channels_last), 0, [&](const Part& part) {
    loop(tables.volume(part), bytes_at(x, part.in), bytes_at(values, part.out),
         with_indices ? indices.data<int32_t>() + part.out : nullptr);
  });
  if (with_indices) indices = layout.restored(indices, DType::int32);
  return {layout.restored(values, input.dtype()), indices};
}

Tensor max_pool_backward_on_cpu(const PoolWindows3d& windows, const Tensor& grad,
                                const Tensor& indices) {
  bool channels_last = is_channels_last(indices);
  Tensor places = dense(indices, channels_last), g = prepared(grad, channels_last);
  Tensor result = empty_volumes(whole_sizes(windows, grad), g.dtype(), {}, channels_last);
  Volumes volumes = volumes_of(windows, grad, channels_last);
  int64_t pixels = volumes.in_pixels, outputs = volumes.out_pixels;
  std::atomic<bool> all_inside = true;
  auto scatter = [&]<class T>(Tag<T>) {
    bool converts = g.dtype() != dtype_of<T>;
    CastLoop load = cast_loop(g.dtype(), dtype_of<T>), store = cast_loop(dtype_of<T>, g.dtype());
    int64_t scratch = converts ? (pixels + outputs) * int64_t(sizeof(T)) : 0;
    for_each_part(volumes, scratch, [&](const Part& part) {
      int64_t channels = part.channels, pixel = converts ? channels : part.pixel;
      T* sums = converts ? static_cast<T*>(part.scratch) : result.data<T>() + part.in;
      T* loaded = sums + pixels * channels;
      const T* from = converts ? loaded : g.data<T>() + part.out;
      const int32_t* place = places.data<int32_t>() + part.out;
      for_runs(channels, pixel, pixels, [&](int64_t, int64_t at, int64_t n) {
        std::memset(sums + at, 0, size_t(n) * sizeof(T));
      });
      if (converts)
        for_runs(channels, part.pixel, outputs, [&](int64_t i, int64_t at, int64_t n) {
          load(bytes_at(g, part.out + at), loaded + i, n);
        });
      bool inside = true;
      auto add = [&](int64_t output, int64_t c) {
        auto at = uint64_t(place[output * part.pixel + c]);
        if (at < uint64_t(pixels)) add_to(sums[int64_t(at) * pixel + c], from[output * pixel + c]);
        else inside = false;
      };
      if (channels == 1)
        for (int64_t output = 0; output < outputs; ++output) add(output, 0);
      else
        for (int64_t output = 0; output < outputs; ++output)
          for (int64_t c = 0; c < channels; ++c) add(output, c);
      if (!inside) all_inside = false;
      if (converts)
        for_runs(channels, part.pixel, pixels, [&](int64_t i, int64_t at, int64_t n) {
          store(sums + i, bytes_at(result, part.in + at), n);
        });
    });
  };
  VolumeTables tables(windows);
  tables.fill();
  bool adds = tables.have_common_inputs();
  if (computed_dtype(g.dtype()) == DType::float64) scatter(Tag<double>{});
  else if (g.dtype() == DType::float16 && !adds) scatter(Tag<Half>{});
  else if (g.dtype() == DType::bfloat16 && !adds) scatter(Tag<BFloat16>{});
  else scatter(Tag<float>{});
  CHECK(all_inside, ErrorKind::kIndex, "an index is out of range for images of ", pixels,
        " pixels.");
  return cast_dense(result, grad.dtype());
}

Tensor avg_pool_on_cpu(const PoolWindows3d& windows, PoolDivisor divisor, const Tensor& input) {
  VolumeTables tables(windows);
  DType computed = computed_dtype(input.dtype());
  PoolLayout layout(input, tables.has_few_inputs(computed) && tables.has_few_outputs(computed));
  bool channels_last = layout.channels_last();
  Tensor x = layout.turned(input);
  Tensor means = empty_volumes(pooled_sizes(windows, x), x.dtype(), {}, channels_last);
  tables.fill();
  Tensor divisors = divisors_of(windows, divisor, computed);
  AvgPoolLoop loop = avg_loops().forward[loop_of(x)];
  for_each_part(volumes_of(windows, x, channels_last), tables.scratch_bytes(computed, false),
                [&](const Part& part) {
                  loop(tables.volume(part), divisors.data(), bytes_at(x, part.in),
                       bytes_at(means, part.out));
                });
  return layout.restored(means, input.dtype());
}

Tensor avg_pool_backward_on_cpu(const PoolWindows3d& windows, PoolDivisor divisor,
                                const Tensor& grad) {
  VolumeTables tables(windows);
  DType computed = computed_dtype(grad.dtype());
  PoolLayout layout(grad, tables.has_few_inputs(computed));
  bool channels_last = layout.channels_last();
  Tensor g = layout.turned(grad);
  Tensor result = empty_volumes(whole_sizes(windows, g), g.dtype(), {}, channels_last);
  tables.fill();
  Tensor divisors = divisors_of(windows, divisor, computed);
  AvgPoolBackwardLoop loop = avg_loops().backward[loop_of(g)];
  for_each_part(volumes_of(windows, g, channels_last), tables.scratch_bytes(computed, true),
                [&](const Part& part) {
                  loop(tables.volume(part), divisors.data(), bytes_at(g, part.out),
                       bytes_at(result, part.in));
                });
  return layout.restored(result, grad.dtype());
}

}  // namespace rushlight
