// Owns cross products.
#include "core/ops/op.h"

namespace rushlight {

POINTWISE(difference_of_products, (N a, N b, N c, N d), a * b - c * d)

OP(linalg_cross, "cross(Tensor input, Tensor other, *, int dim=-1) -> Tensor", {
  .home    = "linalg",
  .doc     = R"(The cross products of vectors of three numbers along dim; other dims broadcast.

Example:
    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.]))",
  .dtypes  = numeric,
  .autocast = autocast::on_cuda(autocast::widest),
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, int64_t dim) {
    return call<"linalg_cross", Tensor>(batch.full("input"), batch.full("other"),
                                        Batch::dim(dim, batch.rank("input")));
  },
  .forward = [](const Tensor& input, const Tensor& other, int64_t dim) {
    CHECK(input.dim() == other.dim(), "inputs must have the same number of dimensions, but have ",
          input.dim(), " and ", other.dim(), ".");
    int64_t d = wrap_dim(dim, input.dim());
    CHECK(input.dim() > 0 && input.size(d) == 3 && other.size(d) == 3, "inputs dimension ", dim,
          " must have length 3. Got shapes ", input.sizes(), " and ", other.sizes());
    const Tensor* const both[] = {&input, &other};
    Tensor result = empty(broadcast_shapes(input.sizes(), other.sizes()), result_dtype(both),
                          common_device(both));
    for (int64_t i = 0; i < 3; ++i) {
      int64_t next = (i + 1) % 3, last = (i + 2) % 3;
      Tensor part = select(result, d, i);
      pointwise_into<difference_of_products>(&part, select(input, d, next), select(other, d, last),
                                             select(input, d, last), select(other, d, next));
    }
    return result;
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">([](const Tensor& g, const Tensor&, const Tensor& other, int64_t dim) {
        return call<"linalg_cross", Tensor>(conj(other), g, dim);
      }),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor&, int64_t dim) {
        return call<"linalg_cross", Tensor>(g, conj(input), dim);
      })),
})

OP(cross, "(Tensor input, Tensor other, int? dim=None) -> Tensor", {
  .doc     = R"(The cross products of vectors along dim: see linalg.cross.

Without dim it is the first dim of size 3.)",
  .dtypes  = numeric,
  .autocast = autocast::on_cuda(autocast::widest),
  .forward = [](const Tensor& input, const Tensor& other, std::optional<int64_t> dim) {
    for (int64_t d = 0; !dim && d < input.dim(); ++d)
      if (input.size(d) == 3) dim = d;
    CHECK(dim, "no dimension of size 3 in input of shape ", input.sizes(), ".");
    return call<"linalg_cross", Tensor>(input, other, *dim);
  },
})

}  // namespace rushlight
