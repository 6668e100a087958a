// Halley's method on the C library's erf and erfc: each step triples the digits of a good guess.
#include "tests/shim/special.h"

#include <cmath>
#include <limits>

namespace shim {
namespace {

constexpr double kHalfSqrtPi = 0.88622692545275801365;  // 1 / derivative of erf at 0

// One step towards f(x) = 0, where f is erf or erfc less the target and slope is f'(x).
double halley(double x, double f, double slope) {
  double newton = f / slope;
  return x - newton / (1 + x * newton);  // f'' = -2 x f'
}

}  // namespace

double erfinv(double x) {
  if (std::fabs(x) > 0.5) return std::copysign(erfcinv(1 - std::fabs(x)), x);
  double root = x * kHalfSqrtPi;
  for (int i = 0; i < 4; ++i) {
    root = halley(root, std::erf(root) - x, std::exp(-root * root) / kHalfSqrtPi);
  }
  return root;
}

double erfcinv(double y) {
  if (!(y >= 0 && y <= 2)) return std::numeric_limits<double>::quiet_NaN();
  if (y > 1) return -erfcinv(2 - y);
  if (y == 0) return std::numeric_limits<double>::infinity();
  // Abramowitz and Stegun, 26.2.23, good to 4.5e-4.
  double t = std::sqrt(-2 * std::log(y / 2));
  double root = (t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                         (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) *
                std::sqrt(0.5);
  for (int i = 0; i < 3; ++i) {
    root = halley(root, std::erfc(root) - y, -std::exp(-root * root) / kHalfSqrtPi);
  }
  return root;
}

}  // namespace shim
