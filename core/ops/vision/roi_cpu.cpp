// Defines roi pooling on the CPU: layouts and threads. Forwards, threads share out the planes of
// the result; backwards those of the gradient, so that each adds up its rois in their order.
#include <algorithm>

#include "core/device/threads.h"
#include "core/ops/operands.h"
#include "core/ops/vision/roi.h"
#include "core/ops/vision/roi_loops.h"

namespace rushlight {

ISA_TABLES(RoiLoops, roi_loops)

namespace {

constexpr int64_t kGrain = 1 << 14;  // bins that are worth a thread

// Planes that are worth a thread, when each is read for `bins`.
int64_t grain(int64_t bins) { return kGrain / std::clamp<int64_t>(bins, 1, kGrain); }

const RoiLoops& loops() { return active(roi_loops_sets); }

// Bins [first, first + bins) of an axis.
RoiBins bins_of(const RoiAxis& axis, int64_t first, int64_t bins) {
  const int64_t* start = axis.start.data<int64_t>() + first;
  const int32_t* places = axis.places.data<int32_t>();
  auto [low, high] = std::minmax_element(places + start[0], places + start[bins]);
  bool any = start[0] != start[bins];
  return {bins, any ? *low : 0, any ? *high + 1 : 0, start, places, axis.weights.data<char>()};
}

// What a plane of the input is read for: all bins of a roi, or one of them.
struct Bins {
  RoiBins rows, columns;
};

class Readers {
 public:
  Readers(const RoiPooling& how, const RoiPlan& plan) : how_(how), plan_(plan) {
    if (how.by_planes()) return;
    for (int64_t r = 0; r < int64_t(plan.images.size()); ++r)
      whole_.push_back({bins_of(plan.rows, r * how.down, how.down),
                        bins_of(plan.columns, r * how.across, how.across)});
  }
  // The bins that one reader fills.
  int64_t area() const { return how_.by_planes() ? 1 : how_.down * how_.across; }
  Bins operator()(int64_t roi, int64_t channel) const {
    if (!how_.by_planes()) return whole_[size_t(roi)];
    int64_t bin = channel % (how_.down * how_.across);
    return {bins_of(plan_.rows, roi * how_.down + bin / how_.across, 1),
            bins_of(plan_.columns, roi * how_.across + bin % how_.across, 1)};
  }

 private:
  const RoiPooling& how_;
  const RoiPlan& plan_;
  std::vector<Bins> whole_;
};

char* at(const Tensor& tensor, int64_t element) {
  return tensor.data<char>() + element * int64_t(tensor.itemsize());
}

// Room for a row of an image for each thread that asks.
struct Row {
  std::vector<char> bytes;
  Row(int64_t width, DType dtype) : bytes(size_t(width) * dtype_size(dtype)) {}
  void* data() { return bytes.data(); }
};

}  // namespace

Tensor roi_sums_on_cpu(const RoiPooling& how, const Tensor& input, const Tensor& rois) {
  DType dtype = compute_dtype(input.dtype());
  Tensor x = prepared(input, dtype);
  RoiPlan plan = plan_rois(how, rois, dtype, input.sizes());
  Readers readers(how, plan);
  int64_t area = readers.area(), channels = input.size(1), width = input.size(3);
  int64_t pixels = input.size(2) * width;
  int64_t outputs = how.by_planes() ? channels / (how.down * how.across) : channels;
  Tensor result = empty(Shape{rois.size(0), outputs, how.down, how.across}, dtype);
  auto loop = loops().sum[dtype == DType::float64];
  parallel_for(0, rois.size(0) * channels, grain(area), [&](int64_t begin, int64_t end) {
    Row row(width, dtype);
    for (int64_t k = begin; k < end; ++k) {
      int64_t r = k / channels, c = k % channels;
      const void* plane = at(x, (plan.images[size_t(r)] * channels + c) * pixels);
      Bins seen = readers(r, c);
      loop(seen.rows, seen.columns, plane, width, row.data(), at(result, k * area));
    }
  });
  return to_dtype(result, input.dtype());
}

Tensor roi_sums_backward_on_cpu(const RoiPooling& how, const Tensor& grad, const Tensor& rois,
                                ShapeRef sizes) {
  DType dtype = compute_dtype(grad.dtype());
  Tensor g = prepared(grad, dtype);
  RoiPlan plan = plan_rois(how, rois, dtype, sizes);
  Readers readers(how, plan);
  int64_t area = readers.area(), channels = sizes[1], width = sizes[3], pixels = sizes[2] * width;
  Tensor result = empty(sizes, dtype);
  copy_into(result, scalar_tensor(0.0, dtype));
  auto loop = loops().spread[dtype == DType::float64];
  parallel_for(0, channels, grain(rois.size(0) * area), [&](int64_t begin, int64_t end) {
    Row row(width, dtype);
    for (int64_t c = begin; c < end; ++c)
      for (int64_t r = 0; r < rois.size(0); ++r) {
        Bins seen = readers(r, c);
        loop(seen.rows, seen.columns, at(g, (r * channels + c) * area), width, row.data(),
             at(result, (plan.images[size_t(r)] * channels + c) * pixels));
      }
  });
  return to_dtype(result, grad.dtype());
}

namespace {

template <class T>
void largest(const Bins& bins, const T* plane, int64_t width, T* values, int64_t* places) {
  const RoiBins &rows = bins.rows, &columns = bins.columns;
  for (int64_t i = 0; i < rows.bins; ++i)
    for (int64_t j = 0; j < columns.bins; ++j, ++values, ++places) {
      T best = 0;
      int64_t place = -1;
      for (int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k)
        for (int64_t l = columns.start[j]; l < columns.start[j + 1]; ++l) {
          int64_t here = rows.places[k] * width + columns.places[l];
          if (place >= 0 && !(plane[here] > best)) continue;
          best = plane[here];
          place = here;
        }
      *values = best;
      *places = place;
    }
}

}  // namespace

RoiMaxima roi_maxima_on_cpu(const RoiPooling& how, const Tensor& input, const Tensor& rois) {
  DType dtype = compute_dtype(input.dtype());
  Tensor x = prepared(input, dtype);
  RoiPlan plan = plan_rois(how, rois, dtype, input.sizes());
  Readers readers(how, plan);
  int64_t channels = input.size(1), width = input.size(3), pixels = input.size(2) * width;
  int64_t area = how.down * how.across;
  Shape sizes{rois.size(0), channels, how.down, how.across};
  RoiMaxima result{empty(sizes, dtype), empty(sizes, DType::int64)};
  by_type(dtype, [&]<class T>(Tag<T>) {
    parallel_for(0, rois.size(0) * channels, grain(area), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        int64_t r = k / channels, c = k % channels;
        largest(readers(r, c), x.data<T>() + (plan.images[size_t(r)] * channels + c) * pixels,
                width, result.values.data<T>() + k * area,
                result.places.data<int64_t>() + k * area);
      }
    });
  });
  result.values = to_dtype(result.values, input.dtype());
  return result;
}

}  // namespace rushlight
