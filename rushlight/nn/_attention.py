"""Attention over several heads as a function, and the masks that it and the layers share.

nn.functional installs it; it holds no state. The attention of each head is the core's op
scaled_dot_product_attention.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable
from rushlight.nn._ops import *  # noqa: F403
from rushlight.nn._ops import dropout, linear, scaled_dot_product_attention

__all__ = ["multi_head_attention_forward"]


def _none_or_dtype(input: Tensor | None) -> rl.dtype | None:
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: rl.dtype | None,
    other_name: str,
    target_type: rl.dtype,
    check_other: bool = True,
) -> Tensor | None:
    """The mask as numbers to add to scores: -inf where a bool mask is True."""
    if mask is None:
        return None
    if mask.dtype != rl.bool and not mask.is_floating_point():
        raise AssertionError(
            f"only bool and floating types of {mask_name} are supported, got {mask.dtype}."
        )
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=3,
        )
    if mask.dtype != rl.bool:
        return mask
    return rl.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(f"multi_head_attention_forward: {message}")


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether there is a batch; raises AssertionError if the ranks do not go together."""
    rank = query.dim()
    _check(
        rank in (2, 3),
        "query should be unbatched 2D or batched 3D tensor but received "
        f"{rank}-D query tensor of shape {tuple(query.shape)}.",
    )
    _check(
        key.dim() == rank and value.dim() == rank,
        f"expected key and value to be {rank}-D as query is, but found {key.dim()}-D and "
        f"{value.dim()}-D tensors.",
    )
    _check(
        key_padding_mask is None or key_padding_mask.dim() == rank - 1,
        f"expected key_padding_mask to be None or {rank - 1}-D for {rank}-D query, but found "
        f"{0 if key_padding_mask is None else key_padding_mask.dim()}-D tensor instead.",
    )
    if attn_mask is None:
        return rank == 3
    _check(
        attn_mask.dim() in (2, 3),
        f"expected attn_mask to be None, 2-D or 3-D, but found {attn_mask.dim()}-D tensor instead.",
    )
    if rank == 2 and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        _check(
            tuple(attn_mask.shape) == expected,
            f"expected attn_mask shape to be {expected} but got {tuple(attn_mask.shape)}.",
        )
    return rank == 3


def _check_mask_sizes(mask: Tensor, heads: int, targets: int, sources: int) -> None:
    expected = (targets, sources) if mask.dim() == 2 else (heads, targets, sources)
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"multi_head_attention_forward: the shape of the {mask.dim()}D attn_mask is "
            f"{tuple(mask.shape)}, but should be {expected}."
        )


def _check_widths(
    query: Tensor, key: Tensor, value: Tensor, expected: int, num_heads: int, may_differ: bool
) -> None:
    width = query.shape[-1]
    _check(width == expected, f"was expecting embedding dimension of {expected}, but got {width}.")
    _check(width % num_heads == 0, f"embed_dim {width} not divisible by num_heads {num_heads}.")
    compared = 2 if may_differ else 3
    _check(
        key.shape[:compared] == value.shape[:compared],
        f"key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)}.",
    )


def changed_inputs(
    change: Callable[[Tensor], Tensor], query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What was the same tensor stays the same, so that it is projected once."""
    new_query = change(query)
    new_key = new_query if key is query else change(key)
    return new_query, new_key, new_key if value is key else change(value)


def _separate_projections(
    inputs: tuple[Tensor, ...], weights: tuple[Any, ...], bias: Tensor | None
) -> list[Tensor]:
    """The projections by weights of their own."""
    if any(weight is None for weight in weights):
        raise AssertionError(
            "multi_head_attention_forward: use_separate_proj_weight is True, but one of "
            "q_proj_weight, k_proj_weight and v_proj_weight is None."
        )
    biases: Any = (None,) * 3 if bias is None else bias.chunk(3)
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for copies of PyTorch's code, which call it."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The projections by thirds of one weight; as one product where inputs are the same."""
    if weight is None:
        raise AssertionError(
            "multi_head_attention_forward: use_separate_proj_weight is False, but in_proj_weight "
            "is None."
        )
    width = query.shape[-1]

    def project(input: Tensor, first: int, count: int) -> tuple[Tensor, ...]:
        part = slice(first * width, (first + count) * width)
        return linear(input, weight[part], None if bias is None else bias[part]).chunk(count, -1)

    if query is key and key is value:
        q, k, v = linear(query, weight, bias).chunk(3, -1)
        return q, k, v
    (q,) = project(query, 0, 1)
    if key is value:
        k, v = project(key, 1, 2)
        return q, k, v
    return q, project(key, 1, 1)[0], project(value, 2, 1)[0]


def _split_heads(input: Tensor, num_heads: int) -> Tensor:
    """(length, batch, width) as (batch, heads, length, width / heads)."""
    length, batch, width = input.shape
    return input.reshape(length, batch, num_heads, width // num_heads).permute(1, 2, 0, 3)


def _static(name: str, given: Tensor, batch: int, num_heads: int, head_dim: int) -> Tensor:
    _check(
        given.shape[0] == batch * num_heads and given.shape[2] == head_dim,
        f"expecting {name} of shape ({batch * num_heads}, length, {head_dim}), but got "
        f"{tuple(given.shape)}.",
    )
    return given.unflatten(0, (batch, num_heads))


def _with_bias(projected: Tensor, bias: Tensor | None, static: Tensor | None, name: str) -> Tensor:
    """Keys or values (length, batch, width) with one more, the same for the whole batch."""
    if bias is None:
        return projected
    _check(static is None, f"bias cannot be added to static {name}.")
    return rl.cat([projected, bias.expand(1, *projected.shape[1:])])


def _with_zeros(input: Tensor, dim: int) -> Tensor:
    """One more index along a dimension, with zeros."""
    sizes = list(input.shape)
    sizes[dim] = 1
    return rl.cat([input, input.new_zeros(sizes)], dim)


def _merged_masks(
    attn_mask: Tensor | None, padding: Tensor | None, batch: int, num_heads: int, sources: int
) -> Tensor | None:
    """Both masks as one that broadcasts to (batch, heads, targets, sources)."""
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.unflatten(0, (batch, num_heads))
    if padding is None:
        return attn_mask
    _check(
        tuple(padding.shape) == (batch, sources),
        f"expected key_padding_mask of shape {(batch, sources)}, but got {tuple(padding.shape)}.",
    )
    padding = padding.reshape(batch, 1, 1, sources)
    return padding if attn_mask is None else attn_mask + padding


def attend_with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Tensor, Tensor]:
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return weights @ v, weights


@overridable
def multi_head_attention_forward(
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
    """Returns the attention of several heads, and its weights (Vaswani et al. 2017, section 3.2.2).

    Args:
        query: (L, N, E), or (L, E) without a batch.
        key: (S, N, E), with a last dimension of its own if use_separate_proj_weight.
        value: (S, N, E), likewise.
        embed_dim_to_check: E.
        num_heads: number of heads, which divides E.
        in_proj_weight: (3 * E, E), the projections of query, key and value.
        in_proj_bias: (3 * E).
        bias_k: (1, 1, E), one more key for all.
        bias_v: (1, 1, E), its value.
        add_zero_attn: whether to add a key and a value of zeros.
        dropout_p: probability that a weight is dropped.
        out_proj_weight: (E, E).
        out_proj_bias: (E).
        training: whether dropout applies.
        key_padding_mask: (N, S) or (S), True (or -inf) for keys that nothing sees.
        need_weights: whether to return the weights, which costs their memory.
        attn_mask: (L, S) or (N * num_heads, L, S), True for what is not seen, or numbers that are
            added to the scores.
        use_separate_proj_weight: whether the next three replace in_proj_weight.
        q_proj_weight: (E, E).
        k_proj_weight: (E, width of key).
        v_proj_weight: (E, width of value).
        static_k: (N * num_heads, S, E / num_heads), in place of the projected key.
        static_v: likewise for value.
        average_attn_weights: whether to return the mean of the weights over heads.
        is_causal: a hint that attn_mask is the causal one.

    Returns:
        (L, N, E), and None or weights of shape (N, L, S) or (N, num_heads, L, S).

    Raises:
        AssertionError: if ranks or widths do not go together.
        RuntimeError: if attn_mask has another shape, or is missing with is_causal.

    Example:
        >>> x, eye = torch.ones(3, 1, 2), torch.eye(2)
        >>> out, weights = torch.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 2, 1, eye.repeat(3, 1), None, None, None, False, 0.0, eye, None)
        >>> tuple(out.shape), tuple(weights.shape)
        ((3, 1, 2), (1, 3, 3))
    """
    has_batch = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not has_batch:
        query, key, value = changed_inputs(lambda x: x.unsqueeze(1), query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    targets, batch, width = query.shape
    sources = key.shape[0]

    padding = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "multi_head_attention_forward: Need attn_mask if specifying the is_causal hint. "
            "Make it with nn.Transformer.generate_square_subsequent_mask."
        )
    if is_causal and padding is None and not need_weights:
        attn_mask = None  # the hint says it all
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = False

    _check_widths(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        of_each = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _separate_projections((query, key, value), of_each, in_proj_bias)
    else:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        _check_mask_sizes(attn_mask, batch * num_heads, targets, sources)
    _check((bias_k is None) == (bias_v is None), "bias_k and bias_v go together, but one is None.")
    k = _with_bias(k, bias_k, static_k, "key")
    v = _with_bias(v, bias_v, static_v, "value")
    head_dim = width // num_heads
    q = _split_heads(q, num_heads)
    k, v = (
        _split_heads(projected, num_heads)
        if given is None
        else _static(name, given, batch, num_heads, head_dim)
        for name, projected, given in (("static_k", k, static_k), ("static_v", v, static_v))
    )
    if add_zero_attn:
        k, v = _with_zeros(k, 2), _with_zeros(v, 2)
    for _ in range((bias_k is not None) + add_zero_attn):
        attn_mask = None if attn_mask is None else _with_zeros(attn_mask, -1)
        padding = None if padding is None else _with_zeros(padding, -1)
    mask = _merged_masks(attn_mask, padding, batch, num_heads, k.shape[2])

    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        out, weights = attend_with_weights(q, k, v, mask, dropout_p)
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    out = out.permute(2, 0, 1, 3).flatten(2)  # (L, N, E)
    out = linear(out, out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not has_batch:
        out = out.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return out, weights
