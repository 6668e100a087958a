// Owns histograms: how many values, or rows of several, fall between edges.
#include "core/ops/histogram.h"

#include <cmath>

#include "core/ops/op.h"
#include "core/ops/real_number.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// On a GPU: a search for the bin in each dim, then a count of bin numbers, of which the last one is
// for what lies outside.
Tensor counts_by_search(const Tensor& input, TensorList edges, const Tensor& weight, int64_t bins) {
  Tensor place = zeros(Shape{input.size(0)}, DType::int64, input.device()), outside;
  for (size_t d = 0; d < edges.size(); ++d) {
    Tensor value = contiguous(select(input, 1, int64_t(d))), edge = edges[d];
    int64_t last = edge.numel() - 1;
    Tensor bin = call<"searchsorted", Tensor>(edge, value, false, true,
                                              std::optional<std::string_view>(), Tensor()) -
                 Scalar(1);
    Tensor off = !((value >= select(edge, 0, 0)) & (value <= select(edge, 0, last)));
    bin = call<"clamp_max", Tensor>(bin, wrapped_number(last - 1));
    place = place * Scalar(last) + bin;
    outside = outside.defined() ? outside | off : off;
  }
  place = where(outside, wrapped_number(bins), place);
  return narrow(call<"bincount", Tensor>(place, weight, bins + 1), 0, 0, bins);
}

Tensor histogram_of(const Tensor& input, TensorList edges, const Tensor& weight, Binning binning) {
  Shape sizes;
  for (const Tensor& e : edges) sizes.push_back(e.numel() - 1);
  int64_t bins = checked_numel(sizes);
  if (input.device().is_meta()) return empty(sizes, input.dtype(), input.device());
  DType compute = dtype_of_compute(compute_of(input.dtype()));
  std::vector<Tensor> limits;
  for (const Tensor& e : edges) limits.push_back(to_contiguous(to_dtype(e, compute)));
  Tensor rows = to_contiguous(to_dtype(input, compute));
  Tensor weights = weight.defined() ? to_contiguous(to_dtype(weight, compute)) : weight;
  Tensor counts = input.device().is_cpu() ? histogram_cpu(rows, limits, weights, binning)
                                          : counts_by_search(rows, limits, weights, bins);
  return reshape(to_dtype(counts, input.dtype()), sizes);
}

Tensor even_edges(double low, double high, int64_t bins, const Tensor& input) {
  return call<"linspace", Tensor>(Scalar(low), Scalar(high), bins + 1, std::optional(input.dtype()),
                                  std::optional(input.device()));
}

}  // namespace

OP(histc, "(Tensor input, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", {
  .doc     = R"(How many elements fall into each of `bins` bins of equal width from min to max.

Elements outside do not count. If both are 0 they are the smallest and the largest element.

Example:
    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.]))",
  .dtypes  = floating,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, int64_t bins, Scalar min, Scalar max) {
    CHECK(bins > 0, "bins must be > 0, but is ", bins);
    CHECK(bins < INT64_MAX, "bins is too large: ", bins);
    if (input.device().is_meta()) return empty(Shape{bins}, input.dtype(), input.device());
    double low = real_number(min, "min"), high = real_number(max, "max");
    if (low == high && input.numel() > 0) {
      low = item(call<"min", Tensor>(input)).to<double>();
      high = item(call<"max", Tensor>(input)).to<double>();
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
    CHECK(std::isfinite(low) && std::isfinite(high), "range of [", low, ", ", high,
          "] is not finite");
    CHECK(low < high, "max must be larger than min, but they are ", high, " and ", low);
    const Tensor edges[] = {even_edges(low, high, bins, input)};
    return histogram_of(reshape(input, Shape{-1, 1}), edges, Tensor(), Binning::even_unmended);
  },
})

OP(_histogram, "(Tensor input, Tensor[] edges, Tensor? weight, bool even) -> Tensor", {
  .home    = "private",
  .doc     = R"(How many rows of input (N, D) fall between the edges of each dim.

With weight, which has N elements, the sum of the weights. even says that the edges are.)",
  .dtypes  = floating,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, TensorList edges, const Tensor& weight, bool even) {
    CHECK(input.dim() == 2 && input.size(1) == int64_t(edges.size()) && !edges.empty(),
          "input must have a column for each of ", edges.size(), " dims, but has shape ",
          input.sizes());
    for (const Tensor& edge : edges) {
      CHECK(edge.dim() == 1 && edge.numel() >= 2, "edges must be vectors of at least 2 elements, ",
            "but one has shape ", edge.sizes());
      CHECK(edge.dtype() == input.dtype() && edge.device() == input.device(), "edges must have ",
            "the dtype and the device of input, ", dtype_name(input.dtype()), " on ",
            input.device());
    }
    CHECK(!weight.defined() || (weight.sizes() == Shape{input.size(0)} &&
                                weight.dtype() == input.dtype()),
          "weight must have one element of dtype ", dtype_name(input.dtype()), " for each of ",
          input.size(0), " rows");
    return histogram_of(input, edges, weight, even ? Binning::even : Binning::search);
  },
})

}  // namespace rushlight
