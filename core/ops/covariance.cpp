// Owns covariances and correlations of variables, which are the rows of a matrix.
#include "core/ops/op.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

void check_rows(const Tensor& input) {
  CHECK(input.dim() <= 2, "expected input to have two or fewer dimensions but got an input with ",
        input.dim(), " dimensions");
}

// One weight for each observation.
void check_weights(const Tensor& weights, const char* name, int64_t observations) {
  CHECK(weights.dim() <= 1, "expected ", name, " to have one or fewer dimensions but got ", name,
        " with ", weights.dim(), " dimensions");
  CHECK(weights.numel() == observations, "expected ", name, " to have the same numel as there are ",
        "observations in the input but got ", weights.numel(), " != ", observations);
  if (weights.device().is_cpu() && has_values(weights))
    CHECK(all_true(weights >= 0), name, " cannot be negative");
}

Tensor along_columns(const Tensor& t) { return sum(t, Shape{1}, true); }

// The product of both kinds of weights, or of none an undefined tensor.
Tensor joint_weights(const Tensor& fweights, const Tensor& aweights, int64_t observations) {
  if (fweights.defined()) {
    CHECK(is_integral(fweights.dtype()), "expected fweights to have integral dtype but got ",
          "fweights with ", dtype_name(fweights.dtype()), " dtype");
    check_weights(fweights, "fweights", observations);
  }
  if (!aweights.defined()) return fweights;
  CHECK(is_floating(aweights.dtype()), "expected aweights to have floating point dtype but got ",
        "aweights with ", dtype_name(aweights.dtype()), " dtype");
  check_weights(aweights, "aweights", observations);
  return fweights.defined() ? fweights * aweights : aweights;
}

// The sum of products of deviations is divided by this; 0 where it would be negative.
Tensor degrees_of_freedom(const Tensor& weights, const Tensor& aweights, const Tensor& total,
                          int64_t correction) {
  Tensor lost = aweights.defined() ? sum(weights * aweights) / total * Scalar(correction)
                                   : wrapped_number(Scalar(correction));
  return max(total - lost, 0.0);
}

}  // namespace

OP(cov, "(Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
        "Tensor", {
  .doc     = R"(The covariance matrix of variables, which are the rows of input.

The sums are divided by the number of observations minus correction. fweights says how often each
observation (a column) counts, aweights how important it is. Of one variable it is the variance.

Example:
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]]))",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, int64_t correction, const Tensor& fweights,
                const Tensor& aweights) {
    check_rows(input);
    Tensor rows = input.dim() < 2 ? reshape(input, Shape{1, -1}) : input;  // (variables, N)
    int64_t observations = rows.size(1);
    Tensor weights = joint_weights(fweights, aweights, observations);
    if (!weights.defined()) {
      Tensor centered = rows - mean(is_differentiable(rows.dtype())
                                       ? rows : cast(rows, default_dtype()), Shape{1}, true);
      double freedom = std::max(double(observations) - double(correction), 0.0);
      if (freedom <= 0 && warn_user)
        warn_user("cov(): degrees of freedom is <= 0. Correction should be less than the number of "
                  "observations.");
      return call<"squeeze", Tensor>(mm(centered, conj(transpose(centered, 0, 1))) / freedom);
    }
    Tensor total = sum(weights);
    if (total.device().is_cpu() && has_values(total))
      CHECK(all_true(total != 0), "weights sum to zero, can't be normalized");
    Tensor centered = rows - along_columns(rows * weights) / total;
    Tensor products = mm(centered, conj(transpose(centered * weights, 0, 1)));
    Tensor freedom = degrees_of_freedom(weights, aweights, total, correction);
    return call<"squeeze", Tensor>(products / freedom);
  },
})

OP(corrcoef, "(Tensor input) -> Tensor", {
  .doc     = R"(The correlation coefficients of variables, which are the rows of input.

cov(input)[i][j] / sqrt(cov(input)[i][i] * cov(input)[j][j]), between -1 and 1.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input) {
    check_rows(input);
    Tensor c = call<"cov", Tensor>(input, int64_t(1), Tensor(), Tensor());
    if (c.dim() == 0) return c / c;
    Tensor variance = call<"diagonal", Tensor>(c, int64_t(0), int64_t(0), int64_t(1));
    Tensor deviation = sqrt(call<"real", Tensor>(variance));
    Tensor r = c / unsqueeze(deviation, 1) / deviation;
    if (!is_complex(r.dtype())) return clamp(r, -1, 1);
    return call<"complex", Tensor>(clamp(call<"real", Tensor>(r), -1, 1),
                                   clamp(call<"imag", Tensor>(r), -1, 1));
  },
})

}  // namespace rushlight
