// Owns what helps to read the numbers of a Fourier transform: their frequencies, and another order.
#include "core/ops/op.h"
#include "core/ops/ops.h"
#include "core/tensor/default_device.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// i / (n d) for i in [0, count), with i - n in place of i from `negative` on.
Tensor frequencies(int64_t n, int64_t count, int64_t negative, double d, std::optional<DType> dtype,
                   std::optional<Device> device) {
  DType type = dtype.value_or(default_dtype());
  CHECK(is_floating(type), is_complex(type) ? ErrorKind::kNotImplemented : ErrorKind::kRuntime,
        "requires a floating point dtype, got ", dtype_name(type), ".");
  CHECK(count >= 0, "Trying to create tensor with negative dimension ", n, ": [", n, "]");
  Tensor here = empty(Shape{count}, DType::float64);
  double step = 1 / (double(n) * d);
  for (int64_t i = 0; i < count; ++i)
    here.data<double>()[i] = double(i < negative ? i : i - n) * step;
  Tensor out = empty(here.sizes(), type, device.value_or(default_device()));
  copy_into(out, here);
  return out;
}

Tensor shifted(const Tensor& input, std::optional<ShapeRef> dim, bool back) {
  Shape dims;
  if (dim) dims = Shape(dim->begin(), dim->end());
  else
    for (int64_t d = 0; d < input.dim(); ++d) dims.push_back(d);
  Shape shifts;
  for (int64_t d : dims) {
    int64_t size = input.size(d);
    shifts.push_back(back ? (size + 1) / 2 : size / 2);
  }
  return call<"roll", Tensor>(input, ShapeRef(shifts), std::optional<ShapeRef>(dims));
}

}  // namespace

OP(fftfreq, "(int n, float d=1, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The frequencies of the numbers of fft, for samples d apart.

Example:
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500]))",
  .forward = [](int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device) {
    return frequencies(n, n, n - n / 2, d, dtype, device);
  },
})

OP(rfftfreq, "(int n, float d=1, *, dtype? dtype=None, device? device=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The frequencies of the numbers of rfft, for samples d apart.

Example:
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000]))",
  .forward = [](int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device) {
    return frequencies(n, n / 2 + 1, n / 2 + 1, d, dtype, device);
  },
})

OP(fftshift, "(Tensor input, int[1]? dim=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(Moves number 0 of a transform to the middle of dims, of all dims by default.

Example:
    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500]))",
  .forward = [](const Tensor& input, std::optional<ShapeRef> dim) {
    return shifted(input, dim, false);
  },
})

OP(ifftshift, "(Tensor input, int[1]? dim=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of fftshift.)",
  .forward = [](const Tensor& input, std::optional<ShapeRef> dim) {
    return shifted(input, dim, true);
  },
})

}  // namespace rushlight
