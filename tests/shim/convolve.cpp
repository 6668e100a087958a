#include "tests/shim/convolve.h"

#include <bit>
#include <numeric>

#include "core/base/half.h"

namespace shim {
namespace {

using rushlight::BFloat16, rushlight::Half;

// To the nearest number of 10 bits behind the point, as tensor cores are given float32.
float as_tf32(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t(0x1fff));
}

std::vector<double> read(const Volume& volume, const void* data, bool rounds) {
  std::vector<double> numbers(volume.span());
  for (size_t i = 0; i < numbers.size(); ++i) {
    switch (volume.element) {
      case Element::float32: {
        float x = static_cast<const float*>(data)[i];
        numbers[i] = double(rounds ? as_tf32(x) : x);
        break;
      }
      case Element::float16:
        numbers[i] = rushlight::to_float(static_cast<const Half*>(data)[i]);
        break;
      case Element::bfloat16:
        numbers[i] = rushlight::to_float(static_cast<const BFloat16*>(data)[i]);
        break;
    }
  }
  return numbers;
}

void write(const Volume& volume, const std::vector<double>& numbers, void* data) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    float x = float(numbers[i]);
    switch (volume.element) {
      case Element::float32: static_cast<float*>(data)[i] = x; break;
      case Element::float16: static_cast<Half*>(data)[i] = rushlight::to_half(x); break;
      case Element::bfloat16: static_cast<BFloat16*>(data)[i] = rushlight::to_bfloat16(x); break;
    }
  }
}

// Counts through places of spatial dims, the last one fastest; false at the end.
bool advance(std::vector<int64_t>& place, const Volume& volume) {
  for (size_t d = place.size(); d-- > 0;) {
    if (++place[d] < volume.sizes[d + 2]) return true;
    place[d] = 0;
  }
  return false;
}
int64_t offset_of(const std::vector<int64_t>& place, const Volume& volume) {
  return std::inner_product(place.begin(), place.end(), volume.strides.begin() + 2, int64_t(0));
}

}  // namespace

size_t bytes_of(Element element) { return element == Element::float32 ? 4 : 2; }

size_t Volume::span() const {
  size_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) last += size_t((sizes[d] - 1) * strides[d]);
  return last + 1;
}

void convolve(Product product, const Windows& windows, const std::array<Volume, 3>& volumes,
              const std::array<void*, 3>& data, bool rounds) {
  const auto& [input, weight, output] = volumes;
  std::array<std::vector<double>, 3> numbers;
  size_t made = product == Product::input ? 0 : product == Product::weight ? 1 : 2;
  for (size_t i = 0; i < 3; ++i)
    numbers[i] =
        i == made ? std::vector<double>(volumes[i].span()) : read(volumes[i], data[i], rounds);
  auto& [x, w, y] = numbers;

  size_t dims = windows.stride.size();
  int64_t inner = weight.sizes[1], outer = weight.sizes[0] / (input.sizes[1] / inner);
  std::vector<int64_t> out(dims), tap(dims), in(dims);
  do {
    do {
      bool inside = true;
      for (size_t d = 0; d < dims; ++d) {
        in[d] = out[d] * windows.stride[d] - windows.before[d] + tap[d] * windows.dilation[d];
        inside &= in[d] >= 0 && in[d] < input.sizes[d + 2];
      }
      if (!inside) continue;
      int64_t in_at = offset_of(in, input), tap_at = offset_of(tap, weight);
      int64_t out_at = offset_of(out, output);
      for (int64_t n = 0; n < input.sizes[0]; ++n)
        for (int64_t k = 0; k < weight.sizes[0]; ++k) {
          double& of_y = y[size_t(out_at + n * output.strides[0] + k * output.strides[1])];
          int64_t first = in_at + n * input.strides[0] + k / outer * inner * input.strides[1];
          int64_t filter = tap_at + k * weight.strides[0];
          for (int64_t c = 0; c < inner; ++c) {
            double& of_x = x[size_t(first + c * input.strides[1])];
            double& of_w = w[size_t(filter + c * weight.strides[1])];
            if (product == Product::output) of_y += of_x * of_w;
            else if (product == Product::input) of_x += of_y * of_w;
            else of_w += of_x * of_y;
          }
        }
    } while (advance(tap, weight));
  } while (advance(out, output));
  write(volumes[made], numbers[made], data[made]);
}

}  // namespace shim
