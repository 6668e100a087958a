// Owns how the losses of elements become one number, and the words that say so.
#include "core/ops/loss/loss.h"
#include "core/ops/op.h"

namespace rushlight {

LossReduction parse_reduction(std::string_view reduction) {
  if (reduction == "mean") return LossReduction::mean;
  if (reduction == "sum") return LossReduction::sum;
  CHECK(reduction == "none", ErrorKind::kValue, reduction,
        " is not a valid value for reduction. It is 'none', 'mean' or 'sum'.");
  return LossReduction::none;
}

std::string_view reduction_of(std::string_view reduction, Legacy size_average, Legacy reduce) {
  if (!size_average && !reduce) [[likely]]
    return reduction;
  std::string_view meant = !reduce.value_or(true)        ? "none"
                           : size_average.value_or(true) ? "mean"
                                                         : "sum";
  if (warn_user)
    warn_user("size_average and reduce args will be deprecated, please use reduction='" +
              std::string(meant) + "' instead.");
  return meant;
}

void warn_of_broadcast(const Tensor& input, const Tensor& target) {
  if (target.sizes() == input.sizes() || !warn_user) [[likely]]
    return;
  std::ostringstream text;
  text << "Using a target size " << target.sizes() << " that is different to the input size "
       << input.sizes()
       << ". This will likely lead to incorrect results due to broadcasting. Please ensure they "
          "have the same size.";
  warn_user(text.str());
}

Tensor reduce_loss(const Tensor& losses, std::string_view reduction) {
  LossReduction how = parse_reduction(reduction);
  if (how == LossReduction::none) return losses;
  return how == LossReduction::mean ? mean(losses) : sum(losses);
}

Tensor weighted_losses(const Tensor& losses, const Tensor& weight, const Tensor& input) {
  if (!weight.defined()) return losses;
  CHECK(weight.sizes() == input.sizes(), ErrorKind::kValue,
        "Weights and input must have the same size, got ", weight.sizes(), " and ", input.sizes());
  return losses * weight;
}

Tensor reduce_weighted_loss(const Tensor& losses, const Tensor& weight, const Tensor& input,
                            std::string_view reduction) {
  Tensor weighted = weighted_losses(losses, weight, input);
  if (!weight.defined() || parse_reduction(reduction) != LossReduction::mean)
    return reduce_loss(weighted, reduction);
  return sum(weighted) / sum(weight);
}

OP(legacy_reduction, "_legacy_reduction(bool? size_average, bool? reduce) -> int", {
  .home    = "private",
  .doc     = "The number of the reduction that former arguments stand for, with the warning.",
  .forward = [](Legacy size_average, Legacy reduce) {
    return int64_t(parse_reduction(reduction_of("mean", size_average, reduce)));
  },
})

}  // namespace rushlight
