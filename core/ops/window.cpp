// Owns the window functions of signal processing that make tensors of a given length. Those of
// torch.signal.windows are in Python, on top of these.
#include <cmath>
#include <numbers>

#include "core/ops/op.h"
#include "core/tensor/default_device.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

using DTypeOrNone = std::optional<DType>;
using DeviceOrNone = std::optional<Device>;

// value(x) for x from 0 to 1 in even steps, computed in double. A periodic window has one element
// more, which is left out; a single element is 1.
template <class F>
Tensor window(int64_t length, bool periodic, DTypeOrNone dtype, DeviceOrNone device, F&& value) {
  CHECK(length >= 0, "requires non-negative window_length, got window_length=", length, ".");
  DType type = dtype.value_or(default_dtype());
  CHECK(is_floating(type), "expects floating point dtypes, got ", dtype_name(type), ".");
  Device place = device.value_or(default_device());
  if (place.is_meta()) return empty(Shape{length}, type, place);
  Tensor here = empty(Shape{length}, DType::float64);
  double steps = double(periodic ? length : length - 1);
  for (int64_t i = 0; i < length; ++i)
    here.data<double>()[i] = length == 1 ? 1 : value(double(i) / steps);
  Tensor out = empty(here.sizes(), type, place);
  copy_into(out, here);
  return out;
}

double cosine(double x) { return std::cos(2 * std::numbers::pi * x); }

// The modified Bessel function of order 0 by its power series, whose terms are all positive.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= x / (2 * k) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

}  // namespace

OP(hann_window, "(int window_length, bool periodic=True, *, dtype? dtype=None, "
                "device? device=None) -> Tensor", {
  .doc     = R"(0.5 - 0.5 cos(2 pi k / n), n being window_length, or one less if not periodic.

Example:
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000]))",
  .forward = [](int64_t window_length, bool periodic, DTypeOrNone dtype, DeviceOrNone device) {
    return window(window_length, periodic, dtype, device,
                  [](double x) { return 0.5 - 0.5 * cosine(x); });
  },
})

OP(hamming_window, "(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46, *, "
                   "dtype? dtype=None, device? device=None) -> Tensor", {
  .doc     = R"(alpha - beta cos(2 pi k / n), n being window_length, or one less if not periodic.)",
  .forward = [](int64_t window_length, bool periodic, double alpha, double beta, DTypeOrNone dtype,
                DeviceOrNone device) {
    return window(window_length, periodic, dtype, device,
                  [&](double x) { return alpha - beta * cosine(x); });
  },
})

OP(blackman_window, "(int window_length, bool periodic=True, *, dtype? dtype=None, "
                    "device? device=None) -> Tensor", {
  .doc     = R"(0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n).

n is window_length, or one less if not periodic.)",
  .forward = [](int64_t window_length, bool periodic, DTypeOrNone dtype, DeviceOrNone device) {
    return window(window_length, periodic, dtype, device, [](double x) {
      return std::max(0.0, 0.42 - 0.5 * cosine(x) + 0.08 * cosine(2 * x));
    });
  },
})

OP(bartlett_window, "(int window_length, bool periodic=True, *, dtype? dtype=None, "
                    "device? device=None) -> Tensor", {
  .doc     = R"(A triangle: 1 - |2 k / n - 1|.

n is window_length, or one less if not periodic.)",
  .forward = [](int64_t window_length, bool periodic, DTypeOrNone dtype, DeviceOrNone device) {
    return window(window_length, periodic, dtype, device,
                  [](double x) { return 1 - std::abs(2 * x - 1); });
  },
})

OP(kaiser_window, "(int window_length, bool periodic=True, float beta=12, *, dtype? dtype=None, "
                  "device? device=None) -> Tensor", {
  .doc     = R"(I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta), I0 being a Bessel function.

n is window_length, or one less if not periodic.)",
  .forward = [](int64_t window_length, bool periodic, double beta, DTypeOrNone dtype,
                DeviceOrNone device) {
    return window(window_length, periodic, dtype, device, [&](double x) {
      return bessel_i0(beta * std::sqrt(4 * x * (1 - x))) / bessel_i0(beta);
    });
  },
})

}  // namespace rushlight
