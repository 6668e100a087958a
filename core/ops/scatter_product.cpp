// Owns products at scattered places, whose gradient is the product of all other factors.
#include "core/ops/index/gather_scatter.h"
#include "core/ops/lift.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

// The product of the factors of a cell but this one: `product` is that of all, `rest` that of those
// that are not 0, `zero_sum` the sum of the `zeros` that are. The quotient of a product that is 0
// has a derivative of its own, as the one zero beside another one has.
Tensor product_of_others(const Tensor& factor, const Tensor& zeros, const Tensor& zero_sum,
                         const Tensor& product, const Tensor& rest) {
  Tensor is_zero = factor == 0;
  Tensor beside_one = select(zeros == 2, (zero_sum - factor) * rest, 0.0);
  return select(is_zero, select(zeros == 1, rest, beside_one),
                product / select(is_zero, 1.0, factor));
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
    Tensor counts = copy_to_write(cast(input == 0, DType::int64), {index, src});
    Tensor zeros =
        call<"scatter_add_", Tensor>(counts, dim, index, cast(src == 0, DType::int64));
    Tensor zero_sum = call<"scatter_add", Tensor>(select(input == 0, input, 0.0), dim, index,
                                                  select(src == 0, src, 0.0));
    Tensor rest = call<"_scatter_product", Tensor>(select(input == 0, 1.0, input), dim, index,
                                                   select(src == 0, 1.0, src));
    Tensor product = call<"_scatter_product", Tensor>(input, dim, index, src);
    Tensor of_src = product_of_others(src, gather(zeros, dim, index), gather(zero_sum, dim, index),
                                      gather(product, dim, index), gather(rest, dim, index));
    return std::tuple(g * conj(product_of_others(input, zeros, zero_sum, product, rest)),
                      gather(g, dim, index) * conj(of_src));
  })),
})

}  // namespace rushlight
