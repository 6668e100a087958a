// Owns scaled_dot_product_attention: its checks, its form made of other ops, and the fused op. The
// fused kernels are in attention_cpu.cpp and attention.cu.
#include "core/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/ceil_div.h"
#include "core/device/philox.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/random/random_draw.h"
#include "core/ops/random/random_kernels.h"
#include "core/ops/same_device.h"

namespace rushlight {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

ShapeRef batch_of(const Tensor& t) { return ShapeRef(t.sizes()).first(size_t(t.dim()) - 2); }

// The leading dims of all that go into the scores and the output.
Shape common_batch(const Tensor& query, const Tensor& key, const Tensor& value,
                   const Tensor& mask) {
  Shape batch = broadcast_shapes(broadcast_shapes(batch_of(query), batch_of(key)), batch_of(value));
  return mask.defined() && mask.dim() > 2 ? broadcast_shapes(batch, batch_of(mask)) : batch;
}

// ---- as other ops -------------------------------------------------------------------------------

// softmax(query @ key.T * scale + mask), zero where a query sees nothing: (*, L, S).
Tensor weights_as_ops(const Tensor& query, const Tensor& key, const Tensor& mask, bool is_causal,
                      double scale) {
  Tensor scores = matmul(query * scale, transpose(key, -2, -1));
  if (is_causal) {
    Tensor ones = full(Shape{query.size(-2), key.size(-2)}, 1, DType::bool_, query.device());
    scores = select(call<"tril", Tensor>(ones, int64_t(0)), scores, kNever);
  }
  if (!mask.defined()) return softmax(scores, -1);
  scores = is_bool(mask.dtype()) ? select(mask, scores, kNever) : scores + mask;
  Tensor blind =
      call<"all", Tensor>(scores == Scalar(kNever), std::optional<ShapeRef>(Shape{-1}), true);
  return select(blind, 0.0, softmax(select(blind, 0.0, scores), -1));
}

// Words of the random stream that a row of scores takes: whole counters.
int64_t words_per_row(int64_t keys) { return (keys + 3) / 4 * 4; }

// What dropout multiplies the weights by: (*, L, S). `noise` is given ones and drops some of them.
template <class F>
Tensor noise_of(const Tensor& like, Shape sizes, F noise) {
  int64_t keys = sizes.back();
  sizes.back() = words_per_row(keys);
  return narrow(noise(full(sizes, 1, like.dtype(), like.device())), -1, 0, keys);
}

Tensor attend_by_ops(const Tensor& query, const Tensor& key, const Tensor& value,
                     const Tensor& mask, double dropout_p, bool is_causal, double scale) {
  Tensor weights = cast(weights_as_ops(query, key, mask, is_causal, scale), query.dtype());
  if (dropout_p > 0) {
    Shape sizes = common_batch(query, key, value, mask);
    sizes.push_back(query.size(-2));
    sizes.push_back(key.size(-2));
    weights = weights * noise_of(weights, sizes, [&](const Tensor& ones) {
                return std::get<0>(call<"native_dropout", std::tuple<Tensor, Tensor>>(
                    ones, dropout_p, std::optional<bool>(true)));
              });
  }
  return matmul(weights, value);
}

// What the noise of the fused kernel takes of the default generator's stream.
Generator::Draw noise_draw(const Shape& batch, const Tensor& query, const Tensor& key) {
  Shape sizes = batch;
  sizes.push_back(query.size(-2));
  sizes.push_back(words_per_row(key.size(-2)));
  return default_generator().take(philox_counters(uint64_t(checked_numel(sizes)), 1),
                                  query.device());
}

// The noise that the fused kernel has drawn.
Tensor drawn_noise(const Tensor& like, const Shape& sizes, double p, Generator::Draw draw) {
  return noise_of(like, sizes, [&](const Tensor& ones) {
    Tensor out = empty(ones.sizes(), ones.dtype(), ones.device());
    Tensor mask = empty(ones.sizes(), DType::bool_, ones.device());
    if (!ones.device().is_meta())
      (ones.device().is_cuda() ? dropout_cuda : dropout_cpu)(
          ones, out, mask, {dropout_threshold(p), kept_scale(p)}, draw);
    return out;
  });
}

// ---- the fused form -----------------------------------------------------------------------------

// Uninitialized, with rows without gaps and the other dims in memory as those of `like`: heads that
// lie within positions there do so here, and joining them is a view.
Tensor empty_in_order(const Shape& sizes, const Tensor& like) {
  Shape order;
  for (int64_t d = 0; d + 1 < int64_t(sizes.size()); ++d) order.push_back(d);
  if (like.dim() == int64_t(sizes.size()))
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return like.stride(a) > like.stride(b); });
  Shape strides = contiguous_strides(sizes);
  int64_t step = std::max<int64_t>(1, sizes.back());
  for (size_t d = order.size(); d-- > 0;) {
    strides[size_t(order[d])] = step;
    step *= std::max<int64_t>(1, sizes[size_t(order[d])]);
  }
  return empty_strided(sizes, strides, like.dtype(), like.device());
}

Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Attention attention_of(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& mask, bool is_causal, double scale, double dropout_p,
                       int64_t seed, int64_t offset, int64_t start) {
  DType compute = compute_dtype(query.dtype());
  bool as_is = !mask.defined() || is_bool(mask.dtype()) || mask.dtype() == compute;
  return {query,
          key,
          value,
          as_is ? mask : to_dtype(mask, compute),
          common_batch(query, key, value, mask),
          is_causal,
          scale,
          dropout_p,
          {uint64_t(seed), uint64_t(offset), reinterpret_cast<const uint64_t*>(start)}};
}

// Zeros for the gradient of a mask, see AttentionGrads. Shares for some threads, which is no matter
// of how many there are: the order of additions must not depend on that.
Tensor mask_sums(const Attention& a, DType dtype) {
  constexpr int64_t kWanted = 8;
  Shape sizes(a.mask.sizes());
  int64_t masks = std::max<int64_t>(1, checked_numel(batch_of(a.mask)));
  int64_t sharing = std::max<int64_t>(1, a.items() / masks);
  sizes.back() = a.keys();
  sizes.insert(0, std::min(sharing, ceil_div(kWanted, masks)));
  return zeros(sizes, dtype, a.mask.device());
}

bool needs_kernel(const Tensor& t) { return t.numel() > 0 && !t.device().is_meta(); }

// Whether the fused kernel is the way. On CUDA a block walks through all keys of its queries: few
// queries of many keys would leave most of the GPU idle, and their scores are not much.
bool suits_kernel(const Tensor& query, const Tensor& key, const Tensor& value) {
  constexpr int64_t kFewQueries = 16, kManyKeys = 256;
  if (!query.device().is_cuda()) return true;
  bool walks_alone = query.size(-2) < kFewQueries && key.size(-2) >= kManyKeys;
  return !walks_alone &&
         attention_fits_cuda(query.dtype(), std::max(query.size(-1), value.size(-1)));
}

using Fused = std::tuple<Tensor, Tensor>;
using FusedGrads = std::tuple<Tensor, Tensor, Tensor, Tensor>;

FusedGrads fused_grads(const Tensor& g, const Attention& a, const Tensor& output,
                       const Tensor& logsumexp, GradMask<4> wants) {
  int64_t L = a.queries(), S = a.keys(), E = a.query.size(-1), V = a.value.size(-1);
  AttentionGrads grads;
  // What the kernel does not reach is zero: all, if there are no queries or keys.
  bool runs = L > 0 && S > 0 && a.items() > 0;
  auto make = [&](bool wanted, const Tensor& like, int64_t rows, int64_t columns) {
    if (!wanted) return Tensor();
    Tensor grad = empty_in_order(with_matrix(a.batch, rows, columns), like);
    return runs ? grad : zeros_like(grad);
  };
  grads.query = make(wants[0], a.query, L, E);
  grads.key = make(wants[1], a.key, S, E);
  grads.value = make(wants[2], a.value, S, V);
  bool on_cuda = g.device().is_cuda();
  if (wants[3])
    grads.mask = on_cuda ? zeros(with_matrix(a.batch, L, S), logsumexp.dtype(), g.device())
                         : mask_sums(a, logsumexp.dtype());
  if (runs && !g.device().is_meta())
    (on_cuda ? attention_backward_cuda : attention_backward_cpu)(a, g, output, logsumexp, grads);
  if (wants[3] && !on_cuda)
    grads.mask = grads.mask.size(0) == 1 ? select(grads.mask, 0, 0) : sum(grads.mask, Shape{0});
  return {grads.query, grads.key, grads.value, grads.mask};
}

// The same as ops, so that it can be differentiated again.
FusedGrads grads_as_ops(const Tensor& g, const Attention& a, const Tensor& mask,
                        const Tensor& logsumexp) {
  Tensor weights = weights_as_ops(a.query, a.key, mask, a.is_causal, a.scale), dropped = weights;
  Tensor slopes = matmul(g, transpose(a.value, -2, -1));
  if (a.dropout_p > 0) {
    Shape sizes = logsumexp.sizes();
    sizes.push_back(a.keys());
    Tensor noise = drawn_noise(logsumexp, sizes, a.dropout_p, a.draw);
    dropped = weights * noise;
    slopes = slopes * noise;
  }
  slopes = weights * (slopes - sum(weights * slopes, Shape{-1}, true));
  return {matmul(slopes, a.key) * a.scale, matmul(transpose(slopes, -2, -1), a.query) * a.scale,
          matmul(transpose(dropped, -2, -1), g), slopes};
}

// ---- checks -------------------------------------------------------------------------------------

void check_operands(const Tensor& query, const Tensor& key, const Tensor& value) {
  CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
        "query, key and value must have at least 2 dims (*, length, features), got shapes ",
        query.sizes(), ", ", key.sizes(), " and ", value.sizes(), ".");
  CHECK(key.dtype() == query.dtype() && value.dtype() == query.dtype(),
        "query, key and value must have the same dtype, got ", dtype_name(query.dtype()), ", ",
        dtype_name(key.dtype()), " and ", dtype_name(value.dtype()), ".");
  check_same_device(query, key, "key", "query");
  check_same_device(query, value, "value", "query");
  CHECK(query.size(-1) == key.size(-1), "query ", query.sizes(), " and key ", key.sizes(),
        " must have the same number of features, got ", query.size(-1), " and ", key.size(-1), ".");
  CHECK(key.size(-2) == value.size(-2), "key ", key.sizes(), " and value ", value.sizes(),
        " must have the same length, got ", key.size(-2), " and ", value.size(-2), ".");
}

void check_mask(const Tensor& mask, const Tensor& query, const Tensor& key) {
  if (!mask.defined()) return;
  CHECK(is_bool(mask.dtype()) || mask.dtype() == query.dtype() || mask.dtype() == DType::float32,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got ",
        "attn_mask.dtype: ", dtype_name(mask.dtype()),
        " and query.dtype: ", dtype_name(query.dtype()), ".");
  CHECK(mask.device() == query.device(), "attn_mask is on ", mask.device(), ", but query on ",
        query.device(), ".");
  auto fits = [&](int64_t dim, int64_t size) {
    return mask.dim() < -dim || mask.size(dim) == size || mask.size(dim) == 1;
  };
  CHECK(fits(-2, query.size(-2)) && fits(-1, key.size(-2)), "attn_mask ", mask.sizes(),
        " does not broadcast to the scores of ", query.size(-2), " queries and ", key.size(-2),
        " keys.");
}

// Heads in groups that share one of key and value: (*, groups, heads / groups, rows, columns).
Tensor grouped(const Tensor& t, int64_t groups) {
  Shape sizes = t.sizes();
  size_t heads = sizes.size() - 3;
  Shape split(sizes.begin(), sizes.begin() + heads);
  bool one = sizes[heads] == 1;
  split.push_back(one ? 1 : groups);
  split.push_back(one ? 1 : sizes[heads] / groups);
  split.push_back(sizes[heads + 1]);
  split.push_back(sizes[heads + 2]);
  return view(t, split);
}

// Brings heads that share keys and values into a dim of their own, where those broadcast.
void group_heads(Tensor& query, Tensor& key, Tensor& value, Tensor& mask) {
  int64_t heads = query.size(-3), key_heads = key.size(-3), value_heads = value.size(-3);
  CHECK(key_heads > 0 && value_heads > 0 && heads % key_heads == 0 && heads % value_heads == 0,
        "Number of heads in key and value must divide the number of heads in query, got ",
        key_heads, ", ", value_heads, " and ", heads, ".");
  if (key_heads != value_heads) {
    for (Tensor* t : {&key, &value})
      *t = call<"repeat_interleave", Tensor>(*t, heads / t->size(-3), std::optional<int64_t>(-3),
                                             std::optional<int64_t>());
  }
  int64_t groups = key.size(-3);
  for (Tensor* t : {&query, &key, &value}) *t = grouped(*t, groups);
  if (mask.defined() && mask.dim() > 2) mask = grouped(mask, groups);
}

}  // namespace

OP(_attention,
   "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale, "
   "float dropout_p, int seed, int offset, int start) -> (Tensor output, Tensor logsumexp)", {
  .home    = "core",
  .doc     = R"(scaled_dot_product_attention in one kernel, and the logsumexp of its scores.

Leading dims broadcast. Dropout draws what a PhiloxDraw of seed, offset and start says.)",
  .dtypes  = floating,
  .batch   = [](const Batch& batch, const Tensor& query, const Tensor& key, const Tensor& value,
                const Tensor& mask, bool is_causal, double scale, double dropout_p, int64_t seed,
                int64_t offset, int64_t start) {
    int64_t rank = std::max({batch.rank("query"), batch.rank("key"), batch.rank("value"),
                             mask.defined() ? batch.rank("attn_mask") : 0});
    auto padded = [&](const char* name, const Tensor& t) {
      return batch.has(name) ? Batch::padded(t, rank) : t;
    };
    return call<"_attention", Fused>(padded("query", query), padded("key", key),
                                     padded("value", value), padded("attn_mask", mask), is_causal,
                                     scale, dropout_p, seed, offset, start);
  },
  .forward = [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                bool is_causal, double scale, double dropout_p, int64_t seed, int64_t offset,
                int64_t start) {
    Attention a =
        attention_of(query, key, value, mask, is_causal, scale, dropout_p, seed, offset, start);
    Shape sums = a.batch;
    sums.push_back(a.queries());
    Tensor logsumexp = empty(sums, compute_dtype(query.dtype()), query.device());
    Tensor output = empty_in_order(with_matrix(a.batch, a.queries(), value.size(-1)), query);
    if (needs_kernel(logsumexp))
      (query.device().is_cuda() ? attention_cuda : attention_cpu)(a, output, logsumexp);
    return Fused(output, logsumexp);
  },
  .saves   = saves<"query", "key", "value", "attn_mask", "output", "logsumexp">,
  .grads   = grads(d<"query", "key", "value", "attn_mask">(
      [](TensorList g, const Tensor& query, const Tensor& key, const Tensor& value,
         const Tensor& mask, const Tensor& output, const Tensor& logsumexp, bool is_causal,
         double scale, double dropout_p, int64_t seed, int64_t offset, int64_t start,
         GradMask<4> wants) {
        bool as_ops = gradients_as_ops();
        Attention a = attention_of(query, key, value, as_ops ? Tensor() : mask, is_causal, scale,
                                   dropout_p, seed, offset, start);
        a.batch = Shape(logsumexp.sizes().begin(), logsumexp.sizes().end() - 1);
        if (as_ops) return grads_as_ops(g[0], a, mask, logsumexp);
        return fused_grads(g[0], a, output, logsumexp, wants);
      })),
})

OP(scaled_dot_product_attention,
   "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
   "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Means of the values, weighted by how well their keys answer a query.

softmax(query @ key.T * scale + mask) @ value (Vaswani et al. 2017), where scale is 1 / sqrt(E)
unless given. The scores are never in memory all at once, nor in backward (Dao et al. 2022).

Args:
    query: (*, L, E).
    key: (*, S, E); leading dims broadcast.
    value: (*, S, Ev).
    attn_mask: bool, True where a query sees a key, or float, added to the scores; it broadcasts to
        (*, L, S). A query that sees no key gives zeros.
    dropout_p: the probability that a weight is dropped, also outside of training.
    is_causal: whether query i sees keys 0 to i only.
    scale: what scores are multiplied by.
    enable_gqa: whether dim -3 counts heads of which several queries share one of key and value.

Returns:
    (*, L, Ev).

Raises:
    RuntimeError: if shapes, dtypes or devices do not go together.

Example:
    >>> x = torch.tensor([[0.0], [100.0]])
    >>> torch.nn.functional.scaled_dot_product_attention(x, x, x).tolist()
    [[50.0], [100.0]])",
  .dtypes  = floating,
  .autocast = autocast::lower,
  .forward = [](const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                const Tensor& mask_in, double dropout_p, bool is_causal,
                std::optional<double> given_scale, bool enable_gqa) {
    Tensor query = query_in, key = key_in, value = value_in, mask = mask_in;
    check_operands(query, key, value);
    check_mask(mask, query, key);
    CHECK(dropout_p >= 0 && dropout_p <= 1,
          "dropout probability has to be between 0 and 1, but got ", dropout_p);
    // Without features all scores are 0, whatever the scale.
    double features = double(std::max<int64_t>(query.size(-1), 1));
    double scale = given_scale.value_or(1 / std::sqrt(features));
    if (mask.defined() && mask.dim() < 2)
      mask = expand(mask, Shape{query.size(-2), key.size(-2)});
    int64_t heads = enable_gqa ? query.size(-3) : 0;
    if (enable_gqa) group_heads(query, key, value, mask);
    Shape batch = common_batch(query, key, value, mask);
    bool drops = dropout_p > 0 && dropout_p < 1;
    double p = drops ? dropout_p : 0;
    Tensor output;
    if (!suits_kernel(query, key, value) || (drops && inside_batch_level())) {
      output = attend_by_ops(query, key, value, mask, p, is_causal, scale);
    } else {
      Generator::Draw draw{};
      if (drops) draw = noise_draw(batch, query, key);
      output = std::get<0>(call<"_attention", Fused>(query, key, value, mask, is_causal, scale, p,
                                                     int64_t(draw.seed), int64_t(draw.offset),
                                                     reinterpret_cast<int64_t>(draw.start)));
    }
    if (dropout_p == 1) output = output * 0;
    if (!enable_gqa) return output;
    Shape sizes(output.sizes().begin(), output.sizes().end() - 4);
    sizes.push_back(heads);
    sizes.push_back(output.size(-2));
    sizes.push_back(output.size(-1));
    return reshape(output, sizes);
  },
})

}  // namespace rushlight
