// Defines the gradients of grid_sample as compositions of other ops: inside transforms, and where
// they are differentiated themselves. The formulas are those of grid_taps.h.
#include "core/ops/grid_sample/grid_sample.h"
#include "core/ops/ops.h"

namespace rushlight {
namespace {

// ---- coordinates -------------------------------------------------------------------------------

using Axis = GridAxis<double>;

struct Coordinate {
  Tensor at, slope;  // slope: by the coordinate of the grid
};

Coordinate reflected(const Tensor& x, const Axis& axis) {
  if (axis.span <= 0) return {x * 0.0, x * 0.0};
  double period = 2 * axis.span;
  Tensor away = abs(x - axis.low);
  Tensor forth = away - floor(away / period) * period, back = period - forth;
  Tensor slope = select(x < axis.low, -1.0, ones_like(x));
  return {minimum(forth, back) + axis.low, select(forth > back, -slope, slope)};
}

Coordinate clipped(const Coordinate& c, double size) {
  Tensor inside = (c.at > 0.0) & (c.at < size - 1);
  Tensor known = select(isnan(c.at), 0.0, c.at);
  return {clamp(known, 0, size - 1), select(inside, c.slope, 0.0)};
}

// Where a coordinate of the grid lies in the image, before what the padding does.
Coordinate placed(const Tensor& grid, const Axis& axis) {
  Tensor known = select(isnan(grid), -1.0, grid);
  return {(known + axis.shift) * axis.slope + axis.start, ones_like(known) * axis.slope};
}

Coordinate padded(Coordinate c, const Axis& axis, GridPadding padding) {
  if (padding == GridPadding::zeros) return {clamp(c.at, -3, axis.size + 2), c.slope};
  if (padding == GridPadding::reflection) {
    Coordinate mirrored = reflected(c.at, axis);
    c = {mirrored.at, c.slope * mirrored.slope};
  }
  return clipped(c, axis.size);
}

// ---- taps --------------------------------------------------------------------------------------

struct Tap {
  Tensor index, weight, slope;  // (N, places); index are whole numbers
};

// The weights of the cubic kernel for distances t before and 1 - t behind; see cubic_weight in
// resample_axis.cpp.
std::vector<Tap> cubic_taps(const Coordinate& c, const Axis& axis, GridPadding padding) {
  constexpr double a = -0.75;
  Tensor at = clamp(c.at, -1e9, 1e9);
  if (padding == GridPadding::zeros) at = clamp(c.at, -3, axis.size + 2);
  Tensor first = floor(at), t = at - first;
  auto far = [&](const Tensor& x) { return ((x - 5.0) * x + 8.0) * x * a - 4 * a; };
  auto far_slope = [&](const Tensor& x) { return ((x * 3.0 - 10.0) * x + 8.0) * a; };
  auto near = [&](const Tensor& x) { return (x * (a + 2) - (a + 3)) * x * x + 1.0; };
  auto near_slope = [&](const Tensor& x) { return (x * (3 * (a + 2)) - 2 * (a + 3)) * x; };
  Tensor s = 1.0 - t;
  std::vector<Tap> taps = {{first - 1.0, far(t + 1.0), far_slope(t + 1.0) * c.slope},
                           {first, near(t), near_slope(t) * c.slope},
                           {first + 1.0, near(s), -near_slope(s) * c.slope},
                           {first + 2.0, far(s + 1.0), -far_slope(s + 1.0) * c.slope}};
  for (Tap& tap : taps) {
    if (padding == GridPadding::reflection) tap.index = reflected(tap.index, axis).at;
    if (padding != GridPadding::zeros) tap.index = clamp(tap.index, 0, axis.size - 1);
  }
  return taps;
}

std::vector<Tap> taps_along(const Tensor& grid, const Axis& axis, GridSampling how) {
  Coordinate c = placed(grid, axis);
  if (how.mode == GridMode::bicubic) return cubic_taps(c, axis, how.padding);
  c = padded(c, axis, how.padding);
  if (how.mode == GridMode::nearest) {
    Tensor at = call<"round", Tensor>(c.at);
    return {{at, ones_like(at), zeros_like(at)}};
  }
  Tensor first = floor(c.at), t = c.at - first;
  return {{first, 1.0 - t, -c.slope}, {first + 1.0, t, c.slope}};
}

// ---- sums over the taps ------------------------------------------------------------------------

class Sampling {
 public:
  Sampling(GridSampling how, const Tensor& input, const Tensor& grid)
      : dims_(input.dim() - 2), input_(input), batch_(input.size(0)), channels_(input.size(1)) {
    for (int64_t d = 0; d < dims_; ++d) places_ *= grid.size(1 + d);
    Tensor places = reshape(grid, Shape{batch_, places_, dims_});
    for (int64_t d = 0; d < dims_; ++d) {
      sizes_.push_back(input.size(-1 - d));
      pixels_ *= sizes_.back();
      axes_.push_back(
          taps_along(select(places, 2, d), Axis(double(sizes_.back()), how.units), how));
      combinations_ *= int64_t(axes_.back().size());
    }
    flat_ = reshape(input, Shape{batch_, channels_, pixels_});
  }

  GridGradients gradients(const Tensor& grad, bool wants_input, bool wants_grid) const {
    Tensor g = reshape(grad, Shape{batch_, channels_, places_});
    Tensor to_input;
    std::vector<Tensor> to_grid;
    to_grid.resize(size_t(dims_));
    for (int64_t k = 0; k < combinations_; ++k) {
      Combination tap = combination(k);
      if (wants_input) {
        if (!to_input.defined()) to_input = new_zeros(g, flat_.sizes());
        to_input = call<"scatter_add", Tensor>(to_input, int64_t(2), offsets(tap),
                                               g * unsqueeze(tap.weight, 1));
      }
      if (!wants_grid) continue;
      Tensor products = sum(g * values(tap), Shape{1});  // (N, places)
      for (size_t d = 0; d < size_t(dims_); ++d) {
        Tensor part = products * slope(k, d);
        to_grid[d] = to_grid[d].defined() ? to_grid[d] + part : part;
      }
    }
    GridGradients result;
    if (wants_input) result.input = reshape(to_input, input_.sizes());
    if (wants_grid) result.grid = stack(to_grid, 2);  // (N, places, D)
    return result;
  }

 private:
  // A tap in the plane: a combination of one along each dim.
  struct Combination {
    Tensor offset, inside, weight;  // (N, places)
  };
  const Tap& part(int64_t k, size_t dim) const {
    for (size_t d = 0; d < dim; ++d) k /= int64_t(axes_[d].size());
    return axes_[dim][size_t(k) % axes_[dim].size()];
  }
  Combination combination(int64_t k) const {
    Combination tap;
    int64_t stride = 1;
    for (size_t d = 0; d < size_t(dims_); ++d) {
      const Tap& along = part(k, d);
      Tensor inside = (along.index >= 0.0) & (along.index <= double(sizes_[d] - 1));
      Tensor offset = cast(clamp(along.index, 0, double(sizes_[d] - 1)), DType::int64) * stride;
      tap.offset = d == 0 ? offset : tap.offset + offset;
      tap.inside = d == 0 ? inside : tap.inside & inside;
      tap.weight = d == 0 ? along.weight : tap.weight * along.weight;
      stride *= sizes_[d];
    }
    tap.weight = select(tap.inside, tap.weight, 0.0);
    return tap;
  }
  Tensor slope(int64_t k, size_t dim) const {
    Tensor product;
    for (size_t d = 0; d < size_t(dims_); ++d) {
      const Tensor& factor = d == dim ? part(k, d).slope : part(k, d).weight;
      product = d == 0 ? factor : product * factor;
    }
    return product;
  }
  Tensor offsets(const Combination& tap) const {
    return expand(unsqueeze(tap.offset, 1), Shape{batch_, channels_, places_});
  }
  // What the tap sees in each channel.
  Tensor values(const Combination& tap) const {
    return select(unsqueeze(tap.inside, 1), gather(flat_, 2, offsets(tap)), 0.0);
  }

  int64_t dims_;
  Tensor input_, flat_;
  int64_t batch_, channels_, pixels_ = 1, places_ = 1, combinations_ = 1;
  Shape sizes_;  // of the image, the last dim first
  std::vector<std::vector<Tap>> axes_;
};

}  // namespace

GridGradients grid_sample_backward_of_ops(GridSampling how, const Tensor& grad, const Tensor& input,
                                          const Tensor& grid, bool wants_input, bool wants_grid) {
  GridGradients result = Sampling(how, input, grid).gradients(grad, wants_input, wants_grid);
  if (wants_grid) result.grid = reshape(result.grid, grid.sizes());
  return result;
}

}  // namespace rushlight
