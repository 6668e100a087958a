// Owns the formula of Euclidean distances from products.
#include "core/ops/op.h"

namespace rushlight {

POINTWISE(root_of_gap_value, (T product, T square1, T square2),
          sqrt(max(square1 + square2 - product * S(2), product * S(0))))

OP(_root_of_gap, "(Tensor product, Tensor square1, Tensor square2) -> Tensor", {
  .home    = "core",
  .doc     = R"(|x - y| from x.y, |x|^2 and |y|^2; 0 where rounding would make it imaginary.)",
  .dtypes  = floating,
  .forward = formula<root_of_gap_value>,
})

}  // namespace rushlight
