// Owns the discrete Fourier transforms: three private ops with gradients, of which the public ones
// are made. fft_cpu.cpp computes them. fft_frequencies.cpp has what helps to read them.
//
// A transform is linear, so its gradient is the conjugate transpose: the transform in the other
// direction with the same scale. Where real numbers are involved, only the first n / 2 + 1 numbers
// of a dim exist. Of them, those that stand for two numbers (all but number 0 and, when n is even,
// number n / 2) count twice on the way to real numbers and once on the way from them, hence the
// factors 2 and 1 / 2 below.
#include "core/ops/fft/fft.h"

#include <cmath>

#include "core/ops/op.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

constexpr DTypeSet transformable([](DType t) { return !is_half(t) && !is_float8(t); });
constexpr DTypeSet transformable_real([](DType t) {
  return !is_half(t) && !is_float8(t) && !is_complex(t);
});

// ---- what the private ops do --------------------------------------------------------------------

Tensor c2c(const Tensor& input, ShapeRef dim, bool inverse, double scale) {
  return call<"_fft_c2c", Tensor>(input, dim, inverse, scale);
}
Tensor r2c(const Tensor& input, ShapeRef dim, double scale) {
  return call<"_fft_r2c", Tensor>(input, dim, scale);
}
Tensor c2r(const Tensor& input, ShapeRef dim, int64_t length, double scale) {
  return call<"_fft_c2r", Tensor>(input, dim, length, scale);
}

// Multiplies the numbers that stand for two of the n along dim.
Tensor scale_pairs(const Tensor& input, int64_t dim, int64_t n, double factor) {
  DType dtype = real_dtype(input.dtype());
  auto run = [&](int64_t length, double value) {
    return full(Shape{length}, value, dtype, input.device());
  };
  int64_t pairs = (n - 1) / 2;
  const Tensor runs[] = {run(1, 1), run(pairs, factor), run(n / 2 - pairs, 1)};
  Shape sizes(size_t(input.dim()), 1);
  sizes[size_t(dim)] = n / 2 + 1;
  return input * reshape(cat(runs, 0), sizes);
}

// ---- arguments ----------------------------------------------------------------------------------

enum class Kind { c2c, r2c, c2r };

// What to transform: dims without repetition, and the number of points along each.
struct Points {
  Shape dims, counts;
};

void check_count(int64_t n) {
  CHECK(n >= 1, "Invalid number of data points (", n, ") specified. Transforms take at least one.");
}

Points points_of(const Tensor& input, std::optional<ShapeRef> s, std::optional<ShapeRef> dim) {
  int64_t ndim = input.dim();
  Points points;
  if (dim) {
    for (int64_t d : *dim) {
      int64_t wrapped = wrap_dim(d, ndim);
      CHECK(ndim > 0, ErrorKind::kIndex, "Dimension specified as ", d,
            " but tensor has no dimensions");
      for (int64_t other : points.dims)
        CHECK(other != wrapped, "FFT dims must be unique, got ", d, " twice.");
      points.dims.push_back(wrapped);
    }
    CHECK(!s || s->size() == dim->size(),
          "When given, dim and shape arguments must have the same length, got ", dim->size(),
          " and ", s ? s->size() : 0, ".");
  } else {
    int64_t count = s ? int64_t(s->size()) : ndim;
    CHECK(count <= ndim, "Got shape with ", count, " values but input tensor only has ", ndim,
          " dimensions.");
    for (int64_t d = ndim - count; d < ndim; ++d) points.dims.push_back(d);
  }
  for (size_t i = 0; i < points.dims.size(); ++i) {
    int64_t size = input.sizes()[size_t(points.dims[i])];
    points.counts.push_back(s && (*s)[i] != -1 ? (*s)[i] : size);
  }
  return points;
}

double scale_of(std::optional<std::string_view> norm, bool inverse, ShapeRef counts) {
  double n = 1;
  for (int64_t count : counts) n *= double(count);
  std::string_view mode = norm.value_or("backward");
  if (mode == "ortho") return 1 / std::sqrt(n);
  if (mode == "forward") return inverse ? 1 : 1 / n;
  CHECK(mode == "backward", "Invalid normalization mode: \"", mode,
        "\". Use \"forward\", \"backward\" or \"ortho\".");
  return inverse ? 1 / n : 1;
}

// Cut, or filled with zeros, to `count` along dim.
Tensor resized(const Tensor& input, int64_t dim, int64_t count) {
  int64_t size = input.size(dim);
  if (count == size) return input;
  if (count < size) return narrow(input, dim, 0, count);
  Shape sizes = input.sizes();
  sizes[size_t(dim)] = count - size;
  const Tensor parts[] = {input, zeros(sizes, input.dtype(), input.device())};
  return cat(parts, dim);
}

// A transform as the public functions do it. Those from halves of complex numbers to real ones and
// back run in one direction only: in the other, the halves are conjugates.
Tensor transformed(Kind kind, bool inverse, const Tensor& input, Points points,
                   std::optional<std::string_view> norm) {
  CHECK(kind == Kind::c2c || !points.dims.empty(), "must transform at least one axis");
  DType dtype = is_differentiable(input.dtype()) ? input.dtype() : default_dtype();
  Tensor x = cast(input, kind == Kind::c2r ? complex_dtype(dtype) : dtype);
  double scale = scale_of(norm, inverse, points.counts);
  for (int64_t count : points.counts) check_count(count);
  for (size_t i = 0; i < points.dims.size(); ++i) {
    bool half = kind == Kind::c2r && i + 1 == points.dims.size();
    x = resized(x, points.dims[i], half ? points.counts[i] / 2 + 1 : points.counts[i]);
  }
  switch (kind) {
    case Kind::c2c: return c2c(x, points.dims, inverse, scale);
    case Kind::r2c: {
      Tensor half = r2c(x, points.dims, scale);
      return inverse ? conj(half) : half;
    }
    default: return c2r(inverse ? x : conj(x), points.dims, points.counts.back(), scale);
  }
}

Tensor along_one(Kind kind, bool inverse, const Tensor& input, std::optional<int64_t> n,
                 int64_t dim, std::optional<std::string_view> norm) {
  Points points = points_of(input, {}, ShapeRef(&dim, 1));
  if (n) points.counts[0] = *n;
  else if (kind == Kind::c2r) points.counts[0] = 2 * (points.counts[0] - 1);
  return transformed(kind, inverse, input, points, norm);
}

Tensor along_many(Kind kind, bool inverse, const Tensor& input, std::optional<ShapeRef> s,
                  std::optional<ShapeRef> dim, std::optional<std::string_view> norm) {
  Points points = points_of(input, s, dim);
  if (kind == Kind::c2r && !points.dims.empty() && (!s || s->back() == -1))
    points.counts.back() = 2 * (points.counts.back() - 1);
  return transformed(kind, inverse, input, points, norm);
}

}  // namespace

OP(_fft_c2c, "(Tensor input, int[] dim, bool inverse, float scale) -> Tensor", {
  .home    = "core",
  .doc     = R"(The transform along dims of real or complex numbers, times scale.)",
  .dtypes  = full_precision,
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef dim, bool inverse, double scale) {
    Tensor x = to_contiguous(input);
    Tensor out = empty(x.sizes(), complex_dtype(x.dtype()), x.device());
    if (dim.empty()) copy_into(out, x);
    else if (x.device().is_cpu()) fft_c2c_cpu(x, out, dim, inverse, scale);
    else if (x.device().is_cuda()) fft_c2c_cuda(x, out, dim, inverse, scale);
    return out;
  },
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& dim, bool inverse, double scale) {
    return c2c(g, dim, !inverse, scale);
  })),
})

OP(_fft_r2c, "(Tensor input, int[] dim, float scale) -> Tensor", {
  .home    = "core",
  .doc     = R"(The transform of real numbers, half of it along the last of dims, times scale.)",
  .dtypes  = full_precision,
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef dim, double scale) {
    Tensor x = to_contiguous(input);
    Shape sizes = x.sizes();
    sizes[size_t(dim.back())] = sizes[size_t(dim.back())] / 2 + 1;
    Tensor out = empty(sizes, complex_dtype(x.dtype()), x.device());
    if (x.device().is_cpu()) fft_r2c_cpu(x, out, dim, scale);
    else if (x.device().is_cuda()) fft_r2c_cuda(x, out, dim, scale);
    return out;
  },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, const Shape& dim,
                                 double scale) {
    int64_t n = shape[size_t(dim.back())];
    return c2r(scale_pairs(g, dim.back(), n, 0.5), dim, n, scale);
  })),
})

OP(_fft_c2r, "(Tensor input, int[] dim, int length, float scale) -> Tensor", {
  .home    = "core",
  .doc     = R"(The inverse of _fft_r2c, times scale; length is that of the last of dims.)",
  .dtypes  = full_precision,
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef dim, int64_t length, double scale) {
    Tensor x = to_contiguous(input);
    Shape sizes = x.sizes();
    sizes[size_t(dim.back())] = length;
    Tensor out = empty(sizes, real_dtype(x.dtype()), x.device());
    if (x.device().is_cpu()) fft_c2r_cpu(x, out, dim, scale);
    else if (x.device().is_cuda()) fft_c2r_cuda(x, out, dim, scale);
    return out;
  },
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& dim, int64_t length,
                                 double scale) {
    return scale_pairs(r2c(g, dim, scale), dim.back(), length, 2);
  })),
})

OP(fft, "(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The discrete Fourier transform: X[k] = sum over j of x[j] exp(-2 pi i j k / n).

n cuts the input or fills it with zeros. norm says where the scale goes: "backward" (None) divides
the inverse transform by n, "forward" the forward one, "ortho" both by sqrt(n).

Example:
    >>> torch.fft.fft(torch.tensor([1.0, 0.0, 0.0, 0.0])).real
    tensor([1., 1., 1., 1.]))",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<int64_t> n, int64_t dim,
                std::optional<std::string_view> norm) {
    return along_one(Kind::c2c, false, input, n, dim, norm);
  },
})

OP(ifft, "(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of fft: x[j] = 1 / n sum over k of X[k] exp(2 pi i j k / n).

Example:
    >>> torch.fft.ifft(torch.fft.fft(torch.tensor([1.0, 2.0]))).real
    tensor([1., 2.]))",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<int64_t> n, int64_t dim,
                std::optional<std::string_view> norm) {
    return along_one(Kind::c2c, true, input, n, dim, norm);
  },
})

OP(rfft, "(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fft of real numbers: the first n / 2 + 1 numbers; the others are their conjugates.

Example:
    >>> torch.fft.rfft(torch.ones(4)).real
    tensor([4., 0., 0.]))",
  .dtypes  = transformable_real,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<int64_t> n, int64_t dim,
                std::optional<std::string_view> norm) {
    return along_one(Kind::r2c, false, input, n, dim, norm);
  },
})

OP(irfft, "(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of rfft: real numbers of which input is half of the transform.

n is their number, by default the even one, 2 (m - 1) for m numbers in input.

Example:
    >>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0])), n=3)
    tensor([1., 2., 3.]))",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<int64_t> n, int64_t dim,
                std::optional<std::string_view> norm) {
    return along_one(Kind::c2r, true, input, n, dim, norm);
  },
})

OP(hfft, "(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fft of a signal of which input is half, the other half being conjugates: real.

n is the number of results, by default 2 (m - 1) for m numbers in input.)",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<int64_t> n, int64_t dim,
                std::optional<std::string_view> norm) {
    return along_one(Kind::c2r, false, input, n, dim, norm);
  },
})

OP(ihfft, "(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of hfft: the first n / 2 + 1 numbers of the ifft of real numbers.)",
  .dtypes  = transformable_real,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<int64_t> n, int64_t dim,
                std::optional<std::string_view> norm) {
    return along_one(Kind::r2c, true, input, n, dim, norm);
  },
})

OP(fft2, "(Tensor input, int[1]? s=None, int[1] dim=(-2, -1), str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fft along two dims.)",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, ShapeRef dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2c, false, input, s, dim, norm);
  },
})

OP(ifft2, "(Tensor input, int[1]? s=None, int[1] dim=(-2, -1), str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of fft2.)",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, ShapeRef dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2c, true, input, s, dim, norm);
  },
})

OP(rfft2, "(Tensor input, int[1]? s=None, int[1] dim=(-2, -1), str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fft2 of real numbers: the first n / 2 + 1 numbers along the last of two dims.)",
  .dtypes  = transformable_real,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, ShapeRef dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::r2c, false, input, s, dim, norm);
  },
})

OP(irfft2, "(Tensor input, int[1]? s=None, int[1] dim=(-2, -1), str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of rfft2.)",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, ShapeRef dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2r, true, input, s, dim, norm);
  },
})

OP(hfft2, "(Tensor input, int[1]? s=None, int[1] dim=(-2, -1), str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fft along the first of two dims and hfft along the second.)",
  .dtypes  = transformable,
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, ShapeRef dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2r, false, input, s, dim, norm);
  },
})

OP(ihfft2, "(Tensor input, int[1]? s=None, int[1] dim=(-2, -1), str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of hfft2.)",
  .dtypes  = transformable_real,
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, ShapeRef dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::r2c, true, input, s, dim, norm);
  },
})

OP(fftn, "(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fft along several dims, all of them unless dim or s is given.

s cuts the input or fills it with zeros; -1 keeps a size. Without dim it means the last dims.)",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, std::optional<ShapeRef> dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2c, false, input, s, dim, norm);
  },
})

OP(ifftn, "(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of fftn.)",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, std::optional<ShapeRef> dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2c, true, input, s, dim, norm);
  },
})

OP(rfftn, "(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fftn of real numbers: the first n / 2 + 1 numbers along the last of dims.)",
  .dtypes  = transformable_real,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, std::optional<ShapeRef> dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::r2c, false, input, s, dim, norm);
  },
})

OP(irfftn, "(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of rfftn; s gives the sizes of the result.)",
  .dtypes  = transformable,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, std::optional<ShapeRef> dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2r, true, input, s, dim, norm);
  },
})

OP(hfftn, "(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(fftn along all dims but the last, and hfft along that.)",
  .dtypes  = transformable,
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, std::optional<ShapeRef> dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::c2r, false, input, s, dim, norm);
  },
})

OP(ihfftn, "(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", {
  .home    = "fft",
  .doc     = R"(The inverse of hfftn.)",
  .dtypes  = transformable_real,
  .forward = [](const Tensor& input, std::optional<ShapeRef> s, std::optional<ShapeRef> dim,
                std::optional<std::string_view> norm) {
    return along_many(Kind::r2c, true, input, s, dim, norm);
  },
})

}  // namespace rushlight
