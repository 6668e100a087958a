// Owns dropout in its forms. The fused kernel is in random_draw.cpp.
#include <sstream>

#include "core/autograd/needs.h"
#include "core/ops/op.h"
#include "core/ops/random/random_draw.h"

namespace rushlight {
namespace {

void check_probability(double p) {
  CHECK(p >= 0 && p <= 1, ErrorKind::kValue,
        "dropout probability has to be between 0 and 1, but got ", p);
}

Tensor dropped(const Tensor& input, double p, bool training) {
  check_probability(p);
  if (!training || p == 0 || input.numel() == 0) return input;
  if (p == 1) return mul(input, wrapped_number(0.0));
  return std::get<0>(
      call<"native_dropout", std::tuple<Tensor, Tensor>>(input, p, std::optional<bool>(true)));
}

// One number for each channel: shape (N, C, 1, 1, ...).
Tensor channel_noise(const Tensor& input, double keep) {
  CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input, got shape ",
        input.sizes());
  Shape sizes = input.sizes();
  for (size_t d = 2; d < sizes.size(); ++d) sizes[d] = 1;
  return bernoulli(empty(sizes, input.dtype(), input.device()), keep);
}

Tensor channels_dropped(const Tensor& input, double p, bool training) {
  check_probability(p);
  if (!training || p == 0 || input.numel() == 0) return input;
  if (p == 1) return mul(input, wrapped_number(0.0));
  return mul(input, channel_noise(input, 1 - p) / wrapped_number(1 - p));
}

// Dropout of channels once took inputs of any rank; `spatial` dims follow those of channels.
void warn_of_rank(const Tensor& input, int64_t spatial) {
  bool fits = input.dim() == spatial + 1 || input.dim() == spatial + 2;
  bool is_row = spatial == 2 && input.dim() == 3;
  if ((fits && !is_row) || !warn_user) return;
  std::ostringstream text;
  text << "dropout" << spatial << "d: Received a " << input.dim();
  if (is_row)
    text << "D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired: "
            "it is read as (N, C, L). Use dropout1d for that, and unsqueeze(0) for one image.";
  else
    text << "-D input to dropout" << spatial << "d, which is deprecated. It is for inputs with "
         << spatial << " spatial dims, one of channels and maybe one of samples. Use dropout.";
  warn_user(text.str());
}

// Drops to the value that selu gives far below zero, and rescales so that mean 0 and variance 1
// stay.
// Klambauer et al., "Self-normalizing neural networks", 2017, section "New dropout technique".
Tensor alpha_dropped(const Tensor& input, double p, bool training, bool by_channel) {
  constexpr double kLow = -1.7580993408473766;  // -scale * alpha of selu
  check_probability(p);
  if (!training || p == 0 || input.numel() == 0) return input;
  if (p == 1) return mul(input, wrapped_number(0.0));
  double a = 1 / std::sqrt((1 - p) * (1 + p * kLow * kLow)), b = -a * kLow * p;
  Tensor noise = by_channel ? channel_noise(input, 1 - p) : bernoulli(detach(input), 1 - p);
  Tensor kept = mul(input, noise * wrapped_number(a));
  return kept + ((wrapped_number(1.0) - noise) * wrapped_number(a * kLow) + wrapped_number(b));
}

// `out` itself, or written over input.
Tensor delivered(const Tensor& input, const Tensor& out, bool inplace) {
  return inplace && !out.is(input) ? copy_(input, out) : out;
}

}  // namespace

OP(native_dropout, "(Tensor input, float p, bool? train) -> (Tensor result, Tensor mask)", {
  .doc     = R"(dropout and the mask of what it kept, which is all unless in training.)",
  .dtypes  = floating,
  .variants = function,
  .draws   = true,
  .batch   = by_elements,
  .forward = [](const Tensor& input, double p, std::optional<bool> train) {
    CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
    if (!train.value_or(true)) p = 0;
    if (p == 1)
      return std::tuple<Tensor, Tensor>(zeros_like(input),
                                        zeros(input.sizes(), DType::bool_, input.device()));
    auto [out, mask] = draw_dropout(input, p, nullptr);
    return std::tuple<Tensor, Tensor>(out, mask);
  },
  .saves   = saves<"mask">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& mask, double p,
                                 std::optional<bool> train) {
    return call<"_masked_scale", Tensor>(g[0], mask, kept_scale(train.value_or(true) ? p : 0));
  })),
})

OP(dropout, "(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(In training, each element zero with probability p and else divided by 1 - p.)",
  .forward = [](const Tensor& input, double p, bool training, bool inplace) {
    return delivered(input, dropped(input, p, training), inplace);
  },
})

OP(dropout1d, "(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Drops whole channels of (N, C, L) or (C, L).)",
  .forward = [](const Tensor& input, double p, bool training, bool inplace) {
    CHECK(input.dim() == 2 || input.dim() == 3, "Expected 2D or 3D input, but received a ",
          input.dim(), "D input.");
    Tensor batch = input.dim() == 2 ? unsqueeze(input, 0) : input;
    Tensor out = channels_dropped(batch, p, training);
    if (out.is(batch)) return input;
    return delivered(input, input.dim() == 2 ? squeeze(out, 0) : out, inplace);
  },
})

OP(dropout2d, "(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Drops whole channels of (N, C, H, W).)",
  .forward = [](const Tensor& input, double p, bool training, bool inplace) {
    warn_of_rank(input, 2);
    return delivered(input, channels_dropped(input, p, training), inplace);
  },
})

OP(dropout3d, "(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Drops whole channels of (N, C, D, H, W) or (C, D, H, W).)",
  .forward = [](const Tensor& input, double p, bool training, bool inplace) {
    warn_of_rank(input, 3);
    Tensor batch = input.dim() == 4 ? unsqueeze(input, 0) : input;
    Tensor out = channels_dropped(batch, p, training);
    if (out.is(batch)) return input;
    return delivered(input, input.dim() == 4 ? squeeze(out, 0) : out, inplace);
  },
})

OP(alpha_dropout, "(Tensor input, float p=0.5, bool training=False, "
                  "bool inplace=False) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(Dropout for networks with selu: keeps mean 0 and variance 1.)",
  .forward = [](const Tensor& input, double p, bool training, bool inplace) {
    return delivered(input, alpha_dropped(input, p, training, false), inplace);
  },
})

OP(feature_alpha_dropout, "(Tensor input, float p=0.5, bool training=False, "
                          "bool inplace=False) -> Tensor", {
  .home    = "nn.functional torch",
  .doc     = R"(alpha_dropout of whole channels.)",
  .forward = [](const Tensor& input, double p, bool training, bool inplace) {
    return delivered(input, alpha_dropped(input, p, training, true), inplace);
  },
})

// ---- forms that only torch has ------------------------------------------------------------------

OP(dropout_, "(Tensor! input, float p, bool train) -> Tensor", {
  .doc     = R"(torch.dropout in place.)",
  .variants = function,
  .forward = [](const Tensor& input, double p, bool train) {
    return delivered(input, dropped(input, p, train), true);
  },
})

OP(feature_dropout, "(Tensor input, float p, bool train) -> Tensor", {
  .doc     = R"(dropout of all elements that share the first two indices.)",
  .variants = function,
  .forward = [](const Tensor& input, double p, bool train) {
    return channels_dropped(input, p, train);
  },
})

OP(feature_dropout_, "(Tensor! input, float p, bool train) -> Tensor", {
  .doc     = R"(torch.feature_dropout in place.)",
  .variants = function,
  .forward = [](const Tensor& input, double p, bool train) {
    return delivered(input, channels_dropped(input, p, train), true);
  },
})

OP(alpha_dropout_, "(Tensor! input, float p, bool train) -> Tensor", {
  .doc     = R"(torch.alpha_dropout in place.)",
  .variants = function,
  .forward = [](const Tensor& input, double p, bool train) {
    return delivered(input, alpha_dropped(input, p, train, false), true);
  },
})

OP(feature_alpha_dropout_, "(Tensor! input, float p, bool train) -> Tensor", {
  .doc     = R"(torch.feature_alpha_dropout in place.)",
  .variants = function,
  .forward = [](const Tensor& input, double p, bool train) {
    return delivered(input, alpha_dropped(input, p, train, true), true);
  },
})

}  // namespace rushlight
