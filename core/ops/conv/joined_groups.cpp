#include "core/ops/conv/joined_groups.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/device/allocator.h"
#include "core/device/cpu_features.h"
#include "core/tensor/reduce.h"

namespace rushlight {
namespace {

// Tiles take 16 channels at once; with more than 64, nearly all work would be for zeros.
constexpr int64_t kTileChannels = 16, kMostChannels = 64;
// The kernels of AVX2 take multiples of 8; else oneDNN multiplies matrices.
constexpr int64_t kVectorChannels = 8, kMostInVectors = 32;

// How many groups become one: the fewest that have enough channels and leave no rest.
int64_t groups_to_join(const Convolution& conv) {
  const int64_t in = conv.in_channels / conv.groups, out = conv.out_channels / conv.groups;
  if (conv.is_depthwise()) return 1;
  auto fewest = [&](int64_t most, auto is_enough) {
    for (int64_t n = 1; n <= most; ++n)
      if (conv.groups % n == 0 && is_enough(n)) return n;
    return int64_t(1);
  };
  if (conv.dtype == DType::bfloat16 && onednn::has_bfloat16_tiles())
    return fewest(kMostChannels / std::max(in, out),
                  [&](int64_t n) { return n * std::min(in, out) >= kTileChannels; });
  if (conv.dtype == DType::float32 && active_isa() == Isa::v3)
    return fewest(kMostInVectors / std::max(in, out), [&](int64_t n) {
      return n * in % kVectorChannels == 0 && n * out % kVectorChannels == 0;
    });
  return 1;
}

Convolution with_joined_groups(Convolution conv, int64_t count) {
  conv.groups /= count;
  return conv;
}

// The weights of `count` groups as those of one group, in the layout of the convolution's.
class JoinedWeight {
 public:
  JoinedWeight(const Convolution& conv, int64_t count)
      : conv_(conv), count_(count), buffer_(bytes()) {}

  void* data() const { return buffer_.data(); }

  void join(const Tensor& weight) {
    std::memset(data(), 0, bytes());
    for_each_run([&](int64_t own, int64_t joined, int64_t n) {
      std::memcpy(static_cast<char*>(data()) + joined, weight.data<char>() + own, size_t(n));
    });
  }

  void part(const Tensor& weight) const {
    for_each_run([&](int64_t own, int64_t joined, int64_t n) {
      std::memcpy(weight.data<char>() + own, static_cast<char*>(data()) + joined, size_t(n));
    });
  }

 private:
  size_t item() const { return dtype_size(conv_.dtype); }
  int64_t channels() const { return conv_.in_channels / conv_.groups; }
  size_t bytes() const {
    return size_t(conv_.out_channels * channels() * count_ * conv_.taps()) * item();
  }

  // Calls f(place in the weight, place in the joined one, length), in bytes, for the runs that both
  // have.
  template <class F>
  void for_each_run(F&& f) const {
    bool last = conv_.weight_layout == onednn::ImageLayout::channels_last;
    int64_t runs = last ? conv_.taps() : 1;  // of each output channel
    int64_t n = (last ? channels() : channels() * conv_.taps()) * int64_t(item());
    for (int64_t c = 0; c < conv_.out_channels; ++c) {
      int64_t member = c / (conv_.out_channels / conv_.groups) % count_;
      for (int64_t i = 0; i < runs; ++i) {
        int64_t own = (c * runs + i) * n;
        f(own, own * count_ + member * n, n);
      }
    }
  }

  const Convolution& conv_;
  int64_t count_;
  CpuBuffer buffer_;
};

// Zeros between groups take infinity in one to NaN in another.
bool has_nan(const Tensor& tensor) {
  Tensor greatest =
      reduce(Reduction::maximum, tensor, reduced_dims({}, tensor.dim()), false, tensor.dtype());
  return std::isnan(item(greatest).to<double>());
}

}  // namespace

bool joined_forward(const Convolution& conv, const Tensor& input, const Tensor& weight,
                    const Tensor& bias, const Tensor& output) {
  int64_t count = groups_to_join(conv);
  if (count == 1) return false;
  JoinedWeight joined(conv, count);
  joined.join(weight);
  return onednn::conv_forward(with_joined_groups(conv, count), input.data(), joined.data(),
                              bias.defined() ? bias.data() : nullptr, false, output.data()) &&
         !has_nan(output);
}

bool joined_backward_input(const Convolution& conv, const Tensor& grad, const Tensor& weight,
                           const Tensor& grad_input) {
  int64_t count = groups_to_join(conv);
  if (count == 1) return false;
  JoinedWeight joined(conv, count);
  joined.join(weight);
  return onednn::conv_backward_input(with_joined_groups(conv, count), grad.data(), joined.data(),
                                     grad_input.data()) &&
         !has_nan(grad_input);
}

bool joined_backward_weight(const Convolution& conv, const Tensor& input, const Tensor& grad,
                            const Tensor& grad_weight, const Tensor& grad_bias) {
  int64_t count = groups_to_join(conv);
  if (count == 1) return false;
  JoinedWeight joined(conv, count);
  if (!onednn::conv_backward_weight(with_joined_groups(conv, count), input.data(), grad.data(),
                                    joined.data(),
                                    grad_bias.defined() ? grad_bias.data() : nullptr))
    return false;
  joined.part(grad_weight);
  return true;
}

}  // namespace rushlight
