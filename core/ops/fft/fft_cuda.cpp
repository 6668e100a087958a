// Owns Fourier transforms on CUDA: how long ones are split into lines that fit a block; and those
// of lengths with large primes and of real numbers, which are made of complex ones.
#include <algorithm>
#include <cmath>
#include <complex>

#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/ops/fft/fft.h"
#include "core/ops/fft/fft_args.h"
#include "core/ops/fft/fft_plan.h"
#include "core/ops/ops.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

static_assert(kFftLargestRadix == kMaxRadix);

extern const char* const fft_cu;

namespace {

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel lines{module, "fft_lines"};

  explicit Kernels(DType real)
      : module(std::string("fft<") + device_type(real) + ">", fft_cu,
               cuda::define("REAL", device_type(real)) +
                   cuda::define("REAL_IS_FLOAT", real == DType::float32 ? "1" : "0")) {}
};

cuda::CudaKernelFamily family([] {
  for (DType real : {DType::float32, DType::float64}) cuda::kernels_of<Kernels>(real);
});

// Numbers of a dtype that a block holds.
int64_t block_pairs(DType dtype) {
  return kFftBlockPairs * int64_t(dtype_size(DType::complex128) / dtype_size(dtype));
}

void run_lines(FftArgs args, const Tensor& in, const Tensor& out) {
  args.input = in.address();
  args.output = out.address();
  std::vector<int64_t> radices = fft_radices(args.n);
  args.passes = int(radices.size());
  std::copy(radices.begin(), radices.end(), args.radix);
  args.lines_per_block = int(
      std::clamp<int64_t>(block_pairs(in.dtype()) / args.n, 1, std::max<int64_t>(1, args.lines)));
  args.loads_lines = args.in.step == 1;
  args.stores_lines = args.out.step == 1;
  size_t shared = size_t(2 * args.lines_per_block * args.n) * in.itemsize();
  cuda::kernels_of<Kernels>(real_dtype(in.dtype()))
      .lines.launch({cuda::blocks_for(args.lines, args.lines_per_block)}, {kFftThreads},
                    unsigned(shared), args);
}

// The divisor of n, with n / it, that fits a block and is nearest to the root of n.
int64_t best_divisor(int64_t n, int64_t most) {
  int64_t best = 1;
  double distance = 0;
  for (int64_t d = 2; d <= most; ++d) {
    if (n % d) continue;
    double here = std::abs(std::log(double(d) * double(d) / double(n)));
    if (best == 1 || here < distance) {
      best = d;
      distance = here;
    }
  }
  return best;
}

void transform(const Tensor& in, const Tensor& out, AroundDim shape, bool inverse, double scale);

Tensor on_device(const void* from, int64_t count, DType dtype, Device device) {
  Tensor here = empty(Shape{1, count, 1}, dtype), there = empty(here.sizes(), dtype, device);
  std::copy_n(static_cast<const char*>(from), size_t(count) * here.itemsize(), here.data<char>());
  copy_into(there, here);
  return there;
}

// Bluestein's convolution, see FftPlan.
template <class T>
void transform_by_chirp(const Tensor& in, const Tensor& out, AroundDim shape, bool inverse,
                        double scale) {
  auto plan = fft_plan<T>(shape.length, inverse);
  int64_t n = shape.length, m = plan->padded->n;
  Tensor chirp = on_device(plan->chirp, n, in.dtype(), in.device());
  Tensor spectrum = on_device(plan->spectrum, m, in.dtype(), in.device());
  const Shape sizes{shape.outer, n, shape.inner};
  Tensor x = zeros(Shape{shape.outer, m, shape.inner}, in.dtype(), in.device());
  Tensor part = narrow(x, 1, 0, n);
  copy_into(part, view(in, sizes) * chirp);
  AroundDim around(x.sizes(), 1);
  transform(x, x, around, false, 1);
  x = x * spectrum;
  transform(x, x, around, true, 1);
  copy_into(view(out, sizes), narrow(x, 1, 0, n) * (chirp * wrapped_number(scale)));
}

// `in` may be `out`; both are row-major.
void transform(const Tensor& in, const Tensor& out, AroundDim shape, bool inverse, double scale) {
  int64_t n = shape.length, most = block_pairs(in.dtype()), slice = n * shape.inner;
  if (n > 1 && fft_radices(n).empty()) {
    if (in.dtype() == DType::complex64) transform_by_chirp<float>(in, out, shape, inverse, scale);
    else transform_by_chirp<double>(in, out, shape, inverse, scale);
    return;
  }
  FftArgs args{};
  args.inner = shape.inner;
  args.swap_in = inverse;
  if (n <= most) {
    args.n = int(n);
    args.lines = shape.outer * shape.inner;
    args.middle = 1;
    args.in = args.out = {slice, 0, shape.inner};
    args.scale = scale;
    args.swap_out = inverse;
    return run_lines(args, in, out);
  }
  // As a matrix of n1 rows of n2 numbers: columns, a rotation, and rows, which end up as columns.
  int64_t n1 = best_divisor(n, most), n2 = n / n1;
  Tensor middle = empty(in.sizes(), in.dtype(), in.device());
  args.n = int(n1);
  args.lines = shape.outer * n2 * shape.inner;
  args.middle = n2;
  args.in = args.out = {slice, shape.inner, n2 * shape.inner};
  args.turns = n;
  args.scale = 1;
  run_lines(args, in, middle);
  if (n2 <= most) {
    args.n = int(n2);
    args.lines = shape.outer * n1 * shape.inner;
    args.middle = n1;
    args.in = {slice, n2 * shape.inner, shape.inner};
    args.out = {slice, shape.inner, n1 * shape.inner};
    args.turns = 0;
    args.scale = scale;
    args.swap_in = false;
    args.swap_out = inverse;
    return run_lines(args, middle, out);
  }
  AroundDim rows = shape;
  rows.outer *= n1;
  rows.length = n2;
  transform(middle, middle, rows, false, scale);
  const Shape turned{shape.outer, n2, n1, shape.inner};
  Tensor result = transpose(view(middle, Shape{shape.outer, n1, n2, shape.inner}), 1, 2);
  // i conj(z) has the parts of z swapped.
  copy_into(view(out, turned),
            inverse ? conj(result) * Scalar(std::complex<double>(0, 1)) : result);
}

}  // namespace

void fft_c2c_cuda(const Tensor& in, const Tensor& out, ShapeRef dims, bool inverse, double scale) {
  if (out.numel() == 0) return;
  cuda::DeviceGuard guard(out.device().index);
  Tensor from = to_dtype(in, out.dtype());
  for (size_t i = dims.size(); i-- > 0; from = out)
    transform(from, out, AroundDim(out.sizes(), dims[i]), inverse, i == 0 ? scale : 1);
}

void fft_r2c_cuda(const Tensor& in, const Tensor& out, ShapeRef dims, double scale) {
  Tensor whole = to_dtype(in, out.dtype());
  fft_c2c_cuda(whole, whole, dims, false, scale);
  copy_into(out, narrow(whole, dims.back(), 0, out.size(dims.back())));
}

void fft_c2r_cuda(const Tensor& in, const Tensor& out, ShapeRef dims, double scale) {
  int64_t last = dims.back(), n = out.size(last);
  Tensor half = empty(in.sizes(), in.dtype(), in.device());
  if (dims.size() > 1) fft_c2c_cuda(in, half, dims.first(dims.size() - 1), true, 1);
  else copy_into(half, in);
  // The numbers left out are conjugates of those given, in reverse.
  Tensor rest = narrow(half, last, 1, n - in.size(last));
  const Tensor parts[] = {half, conj(call<"flip", Tensor>(rest, ShapeRef(&last, 1)))};
  Tensor whole = cat(parts, last);
  fft_c2c_cuda(whole, whole, ShapeRef(&last, 1), true, scale);
  copy_into(out, call<"real", Tensor>(whole));
}

}  // namespace rushlight
