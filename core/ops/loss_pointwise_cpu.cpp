// Defines how the losses of elements become one number.
#include "core/ops/loss.h"
#include "core/ops/ops.h"

namespace rushlight {

Tensor reduce_loss(const Tensor& losses, std::string_view reduction) {
  LossReduction how = parse_reduction(reduction);
  if (how == LossReduction::none) return losses;
  return how == LossReduction::mean ? mean(losses) : sum(losses);
}

Tensor reduce_weighted_loss(const Tensor& losses, const Tensor& weight, const Tensor& input,
                            std::string_view reduction) {
  if (!weight.defined()) return reduce_loss(losses, reduction);
  CHECK(weight.sizes() == input.sizes(), ErrorKind::kValue,
        "Weights and input must have the same size, got ", weight.sizes(), " and ", input.sizes());
  Tensor weighted = losses * weight;
  if (parse_reduction(reduction) != LossReduction::mean) return reduce_loss(weighted, reduction);
  return sum(weighted) / sum(weight);
}

}  // namespace rushlight
