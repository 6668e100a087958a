// Defines the weights of resampling along one dim.
//
// Coordinates are those of PyTorch: output o of a dim stands at (o + 0.5) / scale - 0.5 of the
// input, or with align_corners the first and the last elements fall on each other.
#include <algorithm>
#include <cmath>

#include "core/base/ceil_div.h"
#include "core/base/error.h"
#include "core/ops/resample/resample.h"

namespace rushlight {
namespace {

// Inputs per output along a dim.
double step_of(bool align_corners, int64_t size, int64_t out, std::optional<double> scale) {
  if (align_corners) return out > 1 ? double(size - 1) / double(out - 1) : 0;
  return scale && *scale > 0 ? 1 / *scale : double(size) / double(out);
}

// Keys' cubic convolution kernel; a is its slope at 1 (Keys 1981, equation 4).
double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
double triangle_weight(double x) { return std::max(0.0, 1 - std::abs(x)); }

// In float, as PyTorch computes it: other digits would choose other elements.
ResampleAxis nearest_axis(bool exact, int64_t size, int64_t out, std::optional<double> scale) {
  float step = scale && *scale > 0 ? float(1 / *scale) : float(size) / float(out);
  ResampleAxis axis(size, out);
  for (int64_t o = 0; o < out; ++o) {
    float at = (float(o) + (exact ? 0.5f : 0.0f)) * step;
    int64_t nearest = at < float(size) ? int64_t(at) : size - 1;
    if (!exact && out == size) nearest = o;
    if (!exact && out == 2 * size) nearest = o / 2;
    axis.add(std::min(nearest, size - 1), 1);
    axis.end_output();
  }
  return axis;
}

ResampleAxis linear_axis(bool align_corners, int64_t size, int64_t out, double step) {
  ResampleAxis axis(size, out);
  for (int64_t o = 0; o < out; ++o) {
    double at = align_corners ? step * double(o) : step * (double(o) + 0.5) - 0.5;
    at = std::clamp(at, 0.0, double(size - 1));
    int64_t low = int64_t(at);
    double share = at - double(low);
    axis.add(low, 1 - share);
    axis.add(std::min(low + 1, size - 1), share);
    axis.end_output();
  }
  return axis;
}

ResampleAxis cubic_axis(bool align_corners, int64_t size, int64_t out, double step) {
  ResampleAxis axis(size, out);
  for (int64_t o = 0; o < out; ++o) {
    double at = align_corners ? step * double(o) : step * (double(o) + 0.5) - 0.5;
    at = std::min(at, double(size) + 1);  // further out all four are the last element
    double low = std::floor(at);
    for (int k = -1; k <= 2; ++k)
      axis.add(std::clamp(int64_t(low) + k, int64_t(0), size - 1),
               cubic_weight(at - low - k, -0.75));
    axis.end_output();
  }
  return axis;
}

ResampleAxis area_axis(int64_t size, int64_t out) {
  ResampleAxis axis(size, out);
  for (int64_t o = 0; o < out; ++o) {
    int64_t begin = o * size / out, end = ceil_div((o + 1) * size, out);
    for (int64_t i = begin; i < end; ++i) axis.add(i, 1 / double(end - begin));
    axis.end_output();
  }
  return axis;
}

// The kernel is as wide as an output, so that no input is left out when images shrink.
ResampleAxis antialias_axis(bool cubic, int64_t size, int64_t out, double step) {
  step = std::min(step, 2 * double(size) + 2);  // wider kernels would weigh all inputs alike too
  double wide = std::max(step, 1.0), narrow = 1 / wide, support = (cubic ? 2 : 1) * wide;
  ResampleAxis axis(size, out);
  std::vector<double> weights;
  for (int64_t o = 0; o < out; ++o) {
    double center = std::min(step * (double(o) + 0.5), double(size) + support);
    int64_t begin = std::max(int64_t(center - support + 0.5), int64_t(0));
    int64_t end = std::min(int64_t(center + support + 0.5), size);
    weights.clear();
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      double x = (double(i) - center + 0.5) * narrow;
      weights.push_back(cubic ? cubic_weight(x, -0.5) : triangle_weight(x));
      sum += weights.back();
    }
    for (int64_t i = begin; i < end; ++i)
      axis.add(i, sum != 0 ? weights[size_t(i - begin)] / sum : 0);
    axis.end_output();
  }
  return axis;
}

// Which element of a dim stands at a place, which may lie outside.
int64_t continued(std::string_view mode, int64_t place, int64_t size) {
  if (mode == "replicate") return std::clamp(place, int64_t(0), size - 1);
  place = std::abs(place);                           // mirrored at 0
  return (size - 1) - std::abs((size - 1) - place);  // then at size - 1
}

}  // namespace

ResampleAxis ResampleAxis::same(int64_t size) {
  ResampleAxis axis(size, size);
  for (int64_t o = 0; o < size; ++o) {
    axis.add(o, 1);
    axis.end_output();
  }
  return axis;
}

bool ResampleAxis::moves() const {
  return int64_t(index.size()) == out &&
         std::all_of(weight.begin(), weight.end(), [](double w) { return w == 1; }) &&
         std::adjacent_find(start.begin(), start.end()) == start.end();
}

bool ResampleAxis::is_same() const {
  if (size != out || !moves()) return false;
  for (int64_t o = 0; o < out; ++o)
    if (index[size_t(o)] != o) return false;
  return true;
}

ResampleAxis ResampleAxis::transposed() const {
  ResampleAxis other(out, size);
  other.start.assign(size_t(size + 1), 0);
  for (int32_t i : index) ++other.start[size_t(i) + 1];
  for (int64_t i = 0; i < size; ++i) other.start[size_t(i + 1)] += other.start[size_t(i)];
  other.index.resize(index.size());
  other.weight.resize(index.size());
  std::vector<int64_t> next = other.start;
  for (int64_t o = 0; o < out; ++o)
    for (int64_t k = start[size_t(o)]; k < start[size_t(o + 1)]; ++k) {
      size_t at = size_t(next[size_t(index[size_t(k)])]++);
      other.index[at] = int32_t(o);
      other.weight[at] = weight[size_t(k)];
    }
  return other;
}

ResampleAxis resize_axis(const Resizing& how, int64_t size, int64_t out,
                         std::optional<double> scale) {
  if (how.mode == "nearest") return nearest_axis(false, size, out, scale);
  if (how.mode == "nearest-exact") return nearest_axis(true, size, out, scale);
  if (how.mode == "area") return area_axis(size, out);
  double step = step_of(how.align_corners, size, out, scale);
  bool cubic = how.mode == "cubic";
  CHECK(cubic || how.mode == "linear", ErrorKind::kValue, "unknown mode ", how.mode, ".");
  // Whatever the scale, as PyTorch does it: but its cubic without antialias goes by the scale.
  if (size == out && (step == 1 || !cubic || how.antialias)) return ResampleAxis::same(size);
  if (how.antialias) return antialias_axis(cubic, size, out, step);
  return cubic ? cubic_axis(how.align_corners, size, out, step)
               : linear_axis(how.align_corners, size, out, step);
}

int64_t padded_place(std::string_view mode, int64_t size, int64_t before, int64_t after,
                     int64_t o) {
  if (mode != "circular") return continued(mode, o - before, size);
  // What is taken away goes first, and the rest goes around.
  int64_t cut = std::max<int64_t>(-before, 0), rest = size - cut - std::max<int64_t>(-after, 0);
  return cut + ((o - before - cut) % rest + rest) % rest;
}

ResampleAxis pad_axis(std::string_view mode, int64_t size, int64_t before, int64_t after) {
  ResampleAxis axis(size, size + before + after);
  for (int64_t o = 0; o < axis.out; ++o) {
    axis.add(padded_place(mode, size, before, after, o), 1);
    axis.end_output();
  }
  return axis;
}

}  // namespace rushlight
