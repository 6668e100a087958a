// Owns the formula of dropout's gradient.
#include "core/ops/op.h"

namespace rushlight {

POINTWISE(masked_scale, (T g, B mask, S scale), select(mask, g * scale, S(0)))

OP(_masked_scale, "(Tensor g, Tensor mask, float scale) -> Tensor", {
  .home    = "core",
  .doc     = R"(g * scale where mask is True, else 0.)",
  .forward = formula<masked_scale>,
  .saves   = saves<"mask">,
  .grads   = grads(d<"g">(formula<masked_scale>), no_grad<"mask">),
})

}  // namespace rushlight
