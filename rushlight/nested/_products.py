"""Products with nested tensors: linear, matmul, and attention, in which each part attends to its
own.

A plain factor multiplies all rows at once; two nested ones are multiplied part by part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nested._dispatch import renested, same_parts
from rushlight.nested._tensor import Nested, NestedTensor
from rushlight.nn._attention import attend_with_weights

__all__ = ["attention", "linear", "matmul", "multi_head_attention"]


def linear(func: Any, args: Any, kwargs: Any) -> Any:
    """Returns torch.nn.functional.linear of a nested input."""
    input = args[0]
    if not isinstance(input, Nested) or any(isinstance(a, Nested) for a in args[1:]):
        raise NotImplementedError("linear: only the input may be a nested tensor.")
    if not isinstance(input, NestedTensor):
        return renested([func(part, *args[1:], **kwargs) for part in input._parts()], input)
    if input._ragged_idx == input.dim() - 1:
        raise RuntimeError(
            f"linear: the last dim of {tuple(input.shape)} is ragged. Transpose it to the front."
        )
    return input._like(func(input._plain, *args[1:], **kwargs))


def matmul(func: Any, args: Any, kwargs: Any) -> Any:
    """Returns torch.matmul, or bmm, of two tensors of which one or both are nested."""
    a, b = *args, *kwargs.values()
    for x, y in ((a, b), (b, a)):
        if isinstance(x, NestedTensor) and not isinstance(y, Nested) and y.dim() <= 2:
            # The dims of y meet the last dims of x, or the last but one.
            met = 1 if x is a else min(2, y.dim())
            if x.dim() - x._ragged_idx != met:
                place = x._ragged_idx - (1 if y.dim() == 1 and x is b else 0)
                made = rl.matmul(a._plain, b) if x is a else rl.matmul(a, b._plain)
                return _like_at(x, made, place)
    like: Nested = a if isinstance(a, Nested) else b
    pairs = list(zip(_by_part(a, like), _by_part(b, like), strict=True))
    where = _ragged_place(a, b)
    products = [rl.matmul(p, q) for p, q in pairs]
    if where == 0:
        return rl.stack(products)
    return renested(products, like, like.dim() - where if isinstance(like, NestedTensor) else None)


def _like_at(x: NestedTensor, values: Tensor, position: int) -> NestedTensor:
    made = x._like(values)
    made._ragged_idx = position
    return made


def _by_part(x: Tensor, like: Nested) -> Sequence[Tensor]:
    if isinstance(x, Nested):
        if len(x) != len(like):
            raise RuntimeError(f"matmul: got nested tensors of {len(like)} and {len(x)} parts.")
        return x._parts()
    if x.dim() <= 2:
        return [x] * len(like)
    if x.shape[0] == len(like):
        return x.unbind(0)
    raise RuntimeError(
        f"matmul(): not supported between a nested tensor of {len(like)} parts and a tensor of "
        f"shape {tuple(x.shape)}. The first dim must be the batch."
    )


def _ragged_place(a: Tensor, b: Tensor) -> int:
    """Which dim of the product is ragged, counted from the last one; 0 if it is summed over."""
    places = [x.dim() - x._ragged_idx if isinstance(x, NestedTensor) else 0 for x in (a, b)]
    if not any(places):  # layout strided, where any dim may be
        return 1
    left, right = places
    if left and right and not same_parts(a, b):  # pyright: ignore[reportArgumentType]
        left = right = -1
    if left == 1 and right in (0, 2):
        if right == 2:
            return 0
    elif right == 0 and left > 1:
        return left
    elif left == 0 and right in (1, *range(3, b.dim())):
        return right
    elif left == right > 2:
        return left
    raise RuntimeError(
        f"matmul(): not supported between inputs of shapes {tuple(a.shape)} and {tuple(b.shape)}: "
        "the product would have no ragged dim, or two. Multiply the parts of unbind()."
    )


def attention(func: Any, args: Any, kwargs: Any) -> Any:
    """Returns scaled_dot_product_attention in which the queries of a part see keys of their own."""
    named = [kwargs[name] for name in ("query", "key", "value") if name in kwargs]
    given: list[Any] = [*args[:3], *named]
    rest = args[3:]
    options = {k: v for k, v in kwargs.items() if k not in ("query", "key", "value")}
    query, key, value = given
    if not all(isinstance(x, Nested) and x.layout is query.layout for x in given):
        raise ValueError(
            "scaled_dot_product_attention: query, key and value must all be nested tensors of one "
            "layout. Make the others with as_nested_tensor."
        )
    if rest[:1] not in ((), (None,)) or options.get("attn_mask") is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: Masks are not expected with nested tensors, whose parts "
            "do not see one another. Use is_causal, or pad and mask."
        )
    if not len(query) == len(key) == len(value):
        raise RuntimeError("scaled_dot_product_attention: the batches have different sizes.")
    trios = zip(query._parts(), key._parts(), value._parts(), strict=True)
    return renested([func(*trio, *rest, **options) for trio in trios], query)


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Returns multi_head_attention_forward of nested tensors of shape (N, ragged, E).

    The weights are a plain tensor, with zeros for the places that parts do not have.

    Raises:
        AssertionError: for masks, and the keys that are the same for all.
    """
    refused = (key_padding_mask, bias_k, bias_v, static_k, static_v)
    if add_zero_attn or any(x is not None for x in refused):
        raise AssertionError(
            "MultiheadAttention: with nested tensors, takes no key_padding_mask, add_bias_kv or "
            "add_zero_attn. Use to_padded_tensor() for these."
        )
    if attn_mask is not None and not is_causal:
        raise AssertionError(
            "MultiheadAttention: with nested tensors, attn_mask must be the causal one, with "
            "is_causal=True. Use to_padded_tensor() for others."
        )
    if use_separate_proj_weight:
        weights: Any = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        assert in_proj_weight is not None
        weights = in_proj_weight.chunk(3)
    biases: Any = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    linear_of = rl.nn.functional.linear
    q, k, v = (
        linear_of(x, weight, bias).unflatten(-1, (num_heads, -1)).transpose(1, 2)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )  # (N, heads, ragged, E / heads)
    dropout_p = dropout_p if training else 0.0
    attention_weights = None
    if need_weights:
        heads, attention_weights = _attention_with_weights(q, k, v, dropout_p, is_causal)
        if average_attn_weights:
            attention_weights = attention_weights.mean(1)
    else:
        heads = rl.nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=dropout_p, is_causal=is_causal
        )
    out = linear_of(heads.transpose(1, 2).flatten(-2), out_proj_weight, out_proj_bias)
    return out, attention_weights


def _attention_with_weights(
    q: Any, k: Any, v: Any, dropout_p: float, is_causal: bool
) -> tuple[Tensor, Tensor]:
    """Returns attention of shape (N, heads, ragged, width), and the padded weights."""
    pairs: list[tuple[Tensor, Tensor]] = []
    for query, key, value in zip(q._parts(), k._parts(), v._parts(), strict=True):
        mask = None
        if is_causal:
            mask = query.new_full((query.shape[1], key.shape[1]), -math.inf).triu(1)
        pairs.append(attend_with_weights(query, key, value, mask, dropout_p))
    targets, sources = (max((w.shape[d] for _, w in pairs), default=0) for d in (1, 2))
    padded = [
        rl.nn.functional.pad(w, (0, sources - w.shape[2], 0, targets - w.shape[1]))
        for _, w in pairs
    ]
    return renested([out for out, _ in pairs], q), rl.stack(padded)
