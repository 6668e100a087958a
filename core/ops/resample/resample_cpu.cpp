// Defines the kernel of resampling on the CPU: threads, and the tables for resample_isa.cpp.
#include <algorithm>

#include "core/device/allocator.h"
#include "core/device/threads.h"
#include "core/ops/resample/resample.h"
#include "core/ops/resample/resample_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(ResampleLoops, resample_loops)

namespace {

constexpr int64_t kGrain = 16384;  // numbers that are worth a thread

const ResampleLoops& loops() { return active(resample_loops_sets); }

// The type of sums.
template <class T>
using Sum = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, T>;

// The weights of an axis in the type of the sums.
template <class T>
class Weights {
 public:
  explicit Weights(const ResampleAxis& axis)
      : axis_(axis), weight_(axis.weight.begin(), axis.weight.end()) {}

  ResampleWeights weights() const {
    return {axis_.out,     axis_.start.data(), axis_.index.data(), weight_.data(),
            axis_.moves(), axis_.is_same(),    has_pairs()};
  }
  const ResampleAxis& axis() const { return axis_; }
  const T* weight(int64_t first) const { return weight_.data() + first; }

 private:
  bool has_pairs() const {
    for (size_t o = 0; o < axis_.start.size(); ++o)
      if (axis_.start[o] != 2 * int64_t(o)) return false;
    return true;
  }

  const ResampleAxis& axis_;
  std::vector<T> weight_;
};

// How the outputs of a row are cut into vectors.
template <class T>
class Blocks {
  using Lane = std::conditional_t<sizeof(T) <= 2, int16_t,
                                  std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  static constexpr bool kHasVectors = sizeof(T) > 1;

 public:
  Blocks(const ResampleAxis& axis, int64_t lanes) {
    bool has_runs = lanes > 0 && axis.moves();
    int64_t begin = 0;
    for (int64_t o = 0; has_runs && o < axis.out;) {
      int64_t end = end_of_run(axis, o);
      if (end - o >= lanes) {
        cut(axis, begin, o, lanes);
        blocks_.push_back({o, end, kResampleRun, axis.index[size_t(o)], false});
        begin = end;
      }
      o = end;
    }
    cut(axis, begin, axis.out, lanes);
  }

  void show(ResampleImage& image) const {
    image.blocks = int64_t(blocks_.size());
    image.block = blocks_.data();
    image.reads_past_row = !base_.empty();
    image.base = base_.data();
    image.lanes = lanes_.data();
    image.weights = weights_.data();
  }

 private:
  // Past the outputs from o on that are elements one after the other.
  static int64_t end_of_run(const ResampleAxis& axis, int64_t o) {
    int64_t end = o + 1;
    while (end < axis.out && axis.index[size_t(end)] == axis.index[size_t(end - 1)] + 1) ++end;
    return end;
  }
  // Outputs from begin to below end as vectors; a last one may compute some of the others again.
  void cut(const ResampleAxis& axis, int64_t begin, int64_t end, int64_t lanes) {
    if (!kHasVectors) lanes = 0;
    bool has_vector = lanes > 0 && end - begin >= lanes;
    for (; lanes > 0 && begin + lanes <= end; begin += lanes) add(axis, begin, lanes);
    if (begin == end) return;
    if (has_vector) add(axis, end - lanes, lanes);
    else blocks_.push_back({begin, end, 0, 0, false});
  }
  void add(const ResampleAxis& axis, int64_t begin, int64_t lanes) {
    ResampleBlock block{begin, begin + lanes, 0, int64_t(base_.size()), false};
    for (int64_t o = begin; o < begin + lanes; ++o) {
      block.has_gaps |= o > begin && taps_of(axis, o) != taps_of(axis, begin);
      block.taps = std::max(block.taps, taps_of(axis, o));
    }
    if (!fits(axis, block)) block.taps = 0;
    for (int64_t k = 0; k < block.taps; ++k) {
      base_.push_back(bounds(axis, block, k).first);
      for (int64_t o = begin; o < begin + lanes; ++o) {
        bool has_tap = k < taps_of(axis, o);
        size_t at = size_t(axis.start[size_t(o)] + k);
        lanes_.push_back(has_tap ? Lane(axis.index[at] - base_.back()) : Lane(-1));
        weights_.push_back(has_tap ? T(axis.weight[at]) : T(0));
      }
    }
    blocks_.push_back(block);
  }
  static int64_t taps_of(const ResampleAxis& axis, int64_t o) {
    return axis.start[size_t(o + 1)] - axis.start[size_t(o)];
  }
  // Whether two vectors hold the elements of each tap.
  static bool fits(const ResampleAxis& axis, const ResampleBlock& block) {
    for (int64_t k = 0; k < block.taps; ++k) {
      auto [least, greatest] = bounds(axis, block, k);
      if (greatest >= least + 2 * (block.end - block.begin)) return false;
    }
    return true;
  }
  // The least and the greatest of the elements that a tap of a block takes.
  static std::pair<int64_t, int64_t> bounds(const ResampleAxis& axis, const ResampleBlock& block,
                                            int64_t k) {
    int64_t least = axis.size, greatest = 0;
    for (int64_t o = block.begin; o < block.end; ++o) {
      if (k >= taps_of(axis, o)) continue;
      int64_t index = axis.index[size_t(axis.start[size_t(o)] + k)];
      least = std::min(least, index);
      greatest = std::max(greatest, index);
    }
    return {least, greatest};
  }

  std::vector<ResampleBlock> blocks_;
  std::vector<int64_t> base_;
  std::vector<Lane> lanes_;
  std::vector<T> weights_;
};

template <class T>
void resample(std::span<const ResampleAxis, 3> axes, ResampleOperand layout, ResampleType which,
              const T* input, T* result) {
  const int type = int(which);
  int64_t lanes = loops().lanes[type];
  const Weights<Sum<T>> depth(axes[0]), rows(axes[1]), columns(axes[2]);
  const Blocks<Sum<T>> blocks(axes[2], layout.pixel == 1 ? lanes : 0);
  ResampleImage image{};
  image.rows = rows.weights();
  image.columns = columns.weights();
  image.row = axes[2].size * layout.pixel;
  image.pixel = layout.pixel;
  blocks.show(image);

  int64_t image_in = axes[1].size * image.row, volume_in = axes[0].size * image_in;
  int64_t rows_out = axes[1].out, row_out = axes[2].out * layout.pixel;
  bool depth_moves = axes[0].moves();
  int64_t all_rows = layout.planes * axes[0].out * rows_out;
  int64_t work = std::max(row_out, volume_in / std::max<int64_t>(1, axes[0].out * rows_out));
  parallel_for(0, all_rows, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    CpuBuffer row(size_t(image.row + 2 * lanes) * sizeof(Sum<T>));
    CpuBuffer summed(depth_moves ? 0 : size_t(image_in) * sizeof(Sum<T>));
    while (begin < end) {
      int64_t plane = begin / rows_out, first = begin % rows_out;
      int64_t last = std::min(rows_out, first + end - begin);
      const T* volume = input + plane / axes[0].out * volume_in;
      int64_t d = plane % axes[0].out, tap = axes[0].start[size_t(d)];
      T* to = result + begin * row_out;
      if (depth_moves) {
        const T* from = volume + axes[0].index[size_t(tap)] * image_in;
        loops().rows[type](image, from, to, first, last, row.data());
      } else {
        loops().sum[type](summed.data(), volume, image_in, axes[0].index.data() + tap,
                          depth.weight(tap), axes[0].start[size_t(d + 1)] - tap, image_in);
        loops().rows_of_sums[type](image, summed.data(), to, first, last, row.data());
      }
      begin += last - first;
    }
  });
}

}  // namespace

void resample_on_cpu(std::span<const ResampleAxis, 3> axes, ResampleOperand layout,
                     const Tensor& input, const Tensor& result) {
  auto run = [&]<class T>(ResampleType type, Tag<T>) {
    resample(axes, layout, type, static_cast<const T*>(input.data()),
             static_cast<T*>(result.data()));
  };
  size_t item = dtype_size(input.dtype());
  bool moves = std::all_of(axes.begin(), axes.end(), [](auto& axis) { return axis.moves(); });
  if (is_complex(input.dtype()) && !(moves && item == sizeof(double))) {
    layout.pixel *= 2;
    item /= 2;
  }
  if (!moves && input.dtype() == DType::float16) return run(ResampleType::f16, Tag<Half>{});
  if (!moves && input.dtype() == DType::bfloat16) return run(ResampleType::bf16, Tag<BFloat16>{});
  switch (item) {
    case 1: return run(ResampleType::bytes1, Tag<uint8_t>{});
    case 2: return run(ResampleType::bytes2, Tag<uint16_t>{});
    case 4: return run(ResampleType::f32, Tag<float>{});
    default: return run(ResampleType::f64, Tag<double>{});
  }
}

}  // namespace rushlight
