// Owns the convolutions of the pretended cuDNN: plain loops over tensors with any strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shim {

// Numbers as in cudnnDataType_t.
enum class Element : int { float32 = 0, float16 = 2, bfloat16 = 9 };
size_t bytes_of(Element element);

struct Volume {
  Element element;
  std::vector<int64_t> sizes, strides;

  // From the first element to behind the last one.
  size_t span() const;
};

enum class Product { output, input, weight };  // which of the three is made of the others

struct Windows {
  std::vector<int64_t> stride, dilation, before, after;
};

// `data` has the addresses of input, weight and output. `rounds` takes float32 factors as TF32.
void convolve(Product product, const Windows& windows, const std::array<Volume, 3>& volumes,
              const std::array<void*, 3>& data, bool rounds);

}  // namespace shim
