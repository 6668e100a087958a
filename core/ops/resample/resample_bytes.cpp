// Defines the resampling of bytes along one dim on the CPU, with weights in fixed point.
//
// The numbers are those of PyTorch and Pillow: weights have the most binary digits that leave the
// largest one below 2^15, sums are of 32 bits, and each dim rounds to a byte.
#include <algorithm>

#include "core/base/ceil_div.h"
#include "core/device/threads.h"
#include "core/ops/resample/resample.h"
#include "core/ops/resample/resample_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(ResampleByteLoops, resample_byte_loops)

namespace {

constexpr int64_t kGrain = 1 << 19;       // products that are worth a thread
constexpr int64_t kStripBytes = 1 << 18;  // of transposed lines, to stay in the cache

const ResampleByteLoops& loops() { return active(resample_byte_loops_sets); }

// The weights of an axis whose outputs are sums of neighbors.
class FixedPoint {
 public:
  explicit FixedPoint(const ResampleAxis& axis) : size_(axis.size) {
    std::vector<double> shares;
    for (int64_t o = 0; o < axis.out; ++o) add_output(axis, size_t(o), shares);
    double most = shares.empty() ? 0 : *std::max_element(shares.begin(), shares.end());
    while (precision_ < kMostDigits && 0.5 + most * (2 << precision_) < kLimit) ++precision_;
    weight_.reserve(shares.size());
    for (double share : shares) {
      double scaled = share * (1 << precision_);
      scaled = std::clamp(scaled + (scaled < 0 ? -0.5 : 0.5), 1 - kLimit, kLimit - 1);
      weight_.push_back(int16_t(scaled));
    }
  }

  ByteWeights weights() const {
    return {size_, int64_t(outputs_.size()), outputs_.data(), weight_.data(), precision_};
  }
  int64_t products() const { return int64_t(weight_.size()); }

 private:
  static constexpr int kMostDigits = 22;
  static constexpr double kLimit = 1 << 15;

  // An input that an output names several times, as at the edges, has the sum of its weights.
  void add_output(const ResampleAxis& axis, size_t o, std::vector<double>& shares) {
    size_t begin = size_t(axis.start[o]), end = size_t(axis.start[o + 1]), at = shares.size();
    int32_t low = 0, taps = 0;
    if (begin < end) {
      auto [least, most] =
          std::minmax_element(&axis.index[begin], &axis.index[begin] + end - begin);
      low = *least;
      taps = *most - low + 1;
    }
    outputs_.push_back({low, taps, int64_t(at)});
    shares.resize(at + size_t(taps + taps % 2));
    for (size_t k = begin; k < end; ++k) shares[at + size_t(axis.index[k] - low)] += axis.weight[k];
  }

  int64_t size_;
  std::vector<ByteOutput> outputs_;
  std::vector<int16_t> weight_;
  int precision_ = 0;
};

}  // namespace

void resample_bytes_on_cpu(const ResampleAxis& axis, int64_t outer, int64_t inner,
                           const Tensor& input, const Tensor& result) {
  const FixedPoint fixed(axis);
  ByteWeights weights = fixed.weights();
  const uint8_t* in = static_cast<const uint8_t*>(input.data());
  uint8_t* out = static_cast<uint8_t*>(result.data());
  int64_t line_in = axis.size * inner, line_out = axis.out * inner;
  int64_t work = std::max<int64_t>(1, fixed.products() * inner);  // products of a line
  if (inner >= kByteLanes) {
    int64_t grain = std::max<int64_t>(1, kGrain * axis.out / work);
    parallel_for(0, outer * axis.out, grain, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        int64_t line = begin / axis.out, first = begin % axis.out;
        int64_t last = std::min(axis.out, first + end - begin);
        loops().sum(weights, in + line * line_in, out + begin * inner, inner, first, last);
        begin += last - first;
      }
    });
    return;
  }
  // Elements of a few bytes are summed for many lines at once, which lie side by side in strips.
  int64_t most = std::min(kByteStrip, kStripBytes / (line_in + line_out));
  int64_t strip = std::clamp(round_up(std::min(most, outer), kByteLanes), kByteLanes, kByteStrip);
  int64_t strips = ceil_div(outer, strip);
  parallel_for(0, strips, std::max<int64_t>(1, kGrain / (work * strip)),
               [&](int64_t begin, int64_t end) {
                 std::vector<uint8_t> scratch(size_t((line_in + line_out) * strip));
                 for (int64_t s = begin; s < end; ++s) {
                   int64_t line = s * strip;
                   loops().lines(weights, in + line * line_in, out + line * line_out, inner,
                                 std::min(strip, outer - line), strip, scratch.data());
                 }
               });
}

}  // namespace rushlight
