// Defines which rows and columns the bins of a roi take, and with which weights. Arithmetic is that
// of PyTorch's kernels, in the same dtype and order, because a rounding decides how many samples
// a bin has.
#include <algorithm>
#include <cmath>

#include "core/ops/operands.h"
#include "core/ops/vision/roi.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

constexpr double kFarthest = 1 << 30;  // pixels

template <class T>
class AxisBuilder {
 public:
  AxisBuilder(const RoiPooling& how, int64_t bins, int64_t size, const char* name)
      : how_(how), bins_(bins), size_(size), name_(name) {}

  // The bins of a roi from `low` to `high`.
  void add(int64_t roi, T low, T high) {
    CHECK(std::isfinite(low) && std::isfinite(high), ErrorKind::kValue, "roi ", roi, " has ", name_,
          "1 = ", low, " and ", name_, "2 = ", high, ". Coordinates must be finite.");
    T scale = T(how_.scale), first = low * scale, last = high * scale;
    CHECK(std::abs(first) < kFarthest && std::abs(last) < kFarthest, ErrorKind::kValue, "roi ", roi,
          " has ", name_, "1 = ", low, " and ", name_, "2 = ", high, ", with a scale of ",
          how_.scale, ". Coordinates must be below 2^30 pixels.");
    if (how_.rule == RoiRule::maximum || how_.rule == RoiRule::mean_planes) add_pixels(first, last);
    else add_samples(first, last);
  }

  RoiAxis finish() const {
    DType compute = sizeof(T) == 4 ? DType::float32 : DType::float64;
    return {copied(start_, DType::int64), copied(places_, DType::int32), copied(weights_, compute)};
  }

 private:
  // Whole pixels, each with the same weight.
  void add_pixels(T low, T high) {
    bool is_maximum = how_.rule == RoiRule::maximum;
    T from = std::round(low), extent = std::round(high) - from + (is_maximum ? 1 : 0);
    T bin = std::max(extent, T(1)) / T(bins_);
    // The mean leaves out the last row and the last column, as in PyTorch.
    T end = T(is_maximum ? size_ : size_ - 1);
    for (int64_t b = 0; b < bins_; ++b) {
      T begin = is_maximum ? std::floor(T(b) * bin) + from : std::floor(T(b) * bin + from);
      T stop = is_maximum ? std::ceil(T(b + 1) * bin) + from : std::ceil(T(b + 1) * bin + from);
      auto first = int64_t(std::clamp(begin, T(0), end));
      auto last = int64_t(std::clamp(stop, T(0), end));
      for (int64_t place = first; place < last; ++place) push(place, 1 / T(last - first));
      end_bin();
    }
  }

  // Samples at even distances, each of two pixels; one more than a pixel outside counts as zero.
  void add_samples(T low, T high) {
    T offset = how_.rule == RoiRule::align ? T(0) : T(0.5);
    T from = low - offset, extent = high - offset - from;
    if (how_.rule == RoiRule::align) extent = std::max(extent, T(1));
    T bin = extent / T(bins_);
    int64_t samples = how_.samples > 0 ? how_.samples : int64_t(std::ceil(bin));
    for (int64_t b = 0; b < bins_; ++b) {
      T begin = from + T(b) * bin;
      auto [first, last] = samples_near_image(begin, bin, samples);
      for (int64_t s = first; s < last; ++s)
        add_sample(begin + (T(s) + T(0.5)) * bin / T(samples), 1 / T(samples));
      end_bin();
    }
  }

  // Which samples may lie on the image: those of a large roi may be many more than it has pixels.
  std::pair<int64_t, int64_t> samples_near_image(T begin, T bin, int64_t samples) const {
    T step = bin / T(std::max<int64_t>(samples, 1));
    if (samples <= 0 || !(step > 0)) return {0, samples};
    double before = std::floor((-1.0 - begin) / step) - 2, after = (double(size_) - begin) / step;
    return {int64_t(std::clamp(before, 0.0, double(samples))),
            int64_t(std::clamp(std::ceil(after) + 2, 0.0, double(samples)))};
  }

  void add_sample(T at, T weight) {
    if (at < -1 || at > T(size_)) return;
    at = std::max(at, T(0));
    auto place = int64_t(at);
    if (place >= size_ - 1) return push(size_ - 1, weight);
    T part = at - T(place);
    push(place, weight * (1 - part));
    if (part > 0) push(place + 1, weight * part);
  }

  // Neighboring samples often share their pixels.
  void push(int64_t place, T weight) {
    for (size_t k = places_.size(); k > size_t(start_.back()) && k + 2 > places_.size(); --k)
      if (places_[k - 1] == place) {
        weights_[k - 1] += weight;
        return;
      }
    places_.push_back(int32_t(place));
    weights_.push_back(weight);
  }
  void end_bin() { start_.push_back(int64_t(places_.size())); }

  template <class Item>
  static Tensor copied(const std::vector<Item>& items, DType dtype) {
    Tensor result = empty(Shape{int64_t(items.size())}, dtype);
    std::copy(items.begin(), items.end(), result.data<Item>());
    return result;
  }

  const RoiPooling& how_;
  int64_t bins_, size_;
  const char* name_;
  std::vector<int64_t> start_{0};
  std::vector<int32_t> places_;
  std::vector<T> weights_;
};

template <class T>
RoiPlan plan(const RoiPooling& how, const Tensor& rois, ShapeRef sizes) {
  RoiPlan result;
  AxisBuilder<T> rows(how, how.down, sizes[2], "y"), columns(how, how.across, sizes[3], "x");
  const T* roi = rois.data<T>();
  for (int64_t r = 0; r < rois.size(0); ++r, roi += 5) {
    CHECK(roi[0] >= 0 && roi[0] < T(sizes[0]), ErrorKind::kIndex, "roi ", r, " is of image ",
          roi[0], ", but input has ", sizes[0], ". Valid indices are 0 to ", sizes[0] - 1, ".");
    result.images.push_back(int64_t(roi[0]));
    columns.add(r, roi[1], roi[3]);
    rows.add(r, roi[2], roi[4]);
  }
  result.rows = rows.finish();
  result.columns = columns.finish();
  return result;
}

}  // namespace

RoiPlan plan_rois(const RoiPooling& how, const Tensor& rois, DType compute, ShapeRef input_sizes) {
  Tensor here = empty(rois.sizes(), compute);
  copy_into(here, rois);
  return by_type(compute, [&]<class T>(Tag<T>) { return plan<T>(how, here, input_sizes); });
}

}  // namespace rushlight
