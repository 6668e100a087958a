// Owns products at scattered places, whose gradient is the product of all other factors.
#include "core/ops/index/gather_scatter.h"
#include "core/ops/lift.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

// Zeros, infinities and NaN, by which no product can be divided.
Tensor is_singular(const Tensor& factor) { return (factor == 0) | !isfinite(factor); }

// The product of the factors of a cell but this one: `product` is that of all, `rest` that of those
// that it can be divided by, `sum` the sum of the `count` singular ones. A singular factor has a
// derivative of its own beside one other.
Tensor product_of_others(const Tensor& factor, const Tensor& count, const Tensor& sum,
                         const Tensor& product, const Tensor& rest) {
  Tensor singular = is_singular(factor);
  Tensor beside_others = select(count == 2, (sum - factor) * rest, product);
  return select(singular, select(count == 1, rest, beside_others),
                product / select(singular, 1.0, factor));
}

}  // namespace

OP(_scatter_product, "(Tensor input, int dim, Tensor index, Tensor src) -> Tensor", {
  .home    = "core",
  .doc     = R"(input multiplied by src at places along dim. index has the sizes of src.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    Tensor result = clone(input);
    scatter_along(result, dim, index, src, Scatter::multiply);
    return result;
  },
  .saves   = saves<"input", "index", "src">,
  .grads   = grads(no_grad<"index">,
                   d<"input", "src">([](const Tensor& g, const Tensor& input, const Tensor& index,
                                        const Tensor& src, int64_t dim, const GradMask<2>&) {
    Tensor own = is_singular(input), theirs = is_singular(src);
    Tensor count = call<"scatter_add_", Tensor>(
        copy_to_write(cast(own, DType::int64), {index, src}), dim, index,
        cast(theirs, DType::int64));
    Tensor sum = call<"scatter_add", Tensor>(select(own, input, 0.0), dim, index,
                                             select(theirs, src, 0.0));
    Tensor rest = call<"_scatter_product", Tensor>(select(own, 1.0, input), dim, index,
                                                   select(theirs, 1.0, src));
    Tensor product = call<"_scatter_product", Tensor>(input, dim, index, src);
    Tensor of_src = product_of_others(src, gather(count, dim, index), gather(sum, dim, index),
                                      gather(product, dim, index), gather(rest, dim, index));
    return std::tuple(g * conj(product_of_others(input, count, sum, product, rest)),
                      gather(g, dim, index) * conj(of_src));
  })),
})

}  // namespace rushlight
