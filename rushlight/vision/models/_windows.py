"""Attention within windows: what the Swin transformers for images and for videos share.

Places have any number of axes, 2 in images and 3 in videos. A window holds L of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F


def relative_position_index(window_size: Sequence[int]) -> Tensor:
    """Returns (L, L): for two places of a window, the number of their distance along all axes."""
    axes = rl.meshgrid(*[rl.arange(size) for size in window_size], indexing="ij")
    index = rl.zeros((), dtype=rl.int64)
    for size, axis in zip(window_size, axes, strict=True):
        place = axis.flatten()
        distance = place[:, None] - place[None, :] + size - 1  # from 0 to 2 * size - 2
        index = index * (2 * size - 1) + distance
    return index


def shifted_window_attention(
    input: Tensor,
    qkv_weight: Tensor,
    proj_weight: Tensor,
    relative_position_bias: Tensor,
    window_size: Sequence[int],
    num_heads: int,
    shift_size: Sequence[int],
    attention_dropout: float = 0.0,
    dropout: float = 0.0,
    qkv_bias: Tensor | None = None,
    proj_bias: Tensor | None = None,
    logit_scale: Tensor | None = None,
    training: bool = True,
) -> Tensor:
    """Returns multi-head attention within windows that are shifted over the places.

    Args:
        input: (N, *places, C).
        qkv_weight: (3 C, C), for queries, keys and values.
        proj_weight: (C, C), of the linear layer after the attention.
        relative_position_bias: (1, heads, L, L), added to the products; L places in a window.
        window_size: size of a window along each axis.
        num_heads: number of heads.
        shift_size: how far the windows are shifted along each axis.
        attention_dropout: probability to zero a weight of the attention.
        dropout: probability to zero an element of the result.
        qkv_bias: (3 C,).
        proj_bias: (C,).
        logit_scale: (heads, 1, 1); given, the products are cosines times its exponential.
        training: whether there is dropout.

    Returns:
        (N, *places, C).
    """
    places, C = list(input.shape[1:-1]), input.shape[-1]
    missing = [-size % window for size, window in zip(places, window_size, strict=True)]
    x = F.pad(input, [0, 0, *(part for size in reversed(missing) for part in (0, size))])
    padded = list(x.shape[1:-1])
    shift = [
        0 if window >= size else offset
        for window, size, offset in zip(window_size, padded, shift_size, strict=True)
    ]
    axes = list(range(1, len(padded) + 1))
    if any(shift):
        x = rl.roll(x, [-offset for offset in shift], axes)
    x = _split(x, window_size)  # (N, windows, L, C)

    if logit_scale is not None and qkv_bias is not None:
        qkv_bias = rl.cat([qkv_bias[:C], rl.zeros_like(qkv_bias[:C]), qkv_bias[2 * C :]])
    qkv = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, num_heads, C // num_heads))
    q, k, v = qkv.permute(3, 0, 1, 4, 2, 5).unbind()  # each (N, windows, heads, L, C / heads)
    scale = None
    if logit_scale is not None:
        q = F.normalize(q, dim=-1) * logit_scale.clamp(max=math.log(100.0)).exp()
        k = F.normalize(k, dim=-1)
        scale = 1.0
    bias = relative_position_bias
    if any(shift):
        bias = bias + _separation(padded, window_size, shift, x)  # (windows, heads, L, L)
    x = F.scaled_dot_product_attention(
        q, k, v, attn_mask=bias, dropout_p=attention_dropout if training else 0.0, scale=scale
    )
    x = F.linear(x.transpose(2, 3).flatten(3), proj_weight, proj_bias)
    x = F.dropout(x, p=dropout, training=training)

    x = _join(x, padded, window_size)
    if any(shift):
        x = rl.roll(x, shift, axes)
    for axis, size in zip(axes, places, strict=True):
        x = x.narrow(axis, 0, size)
    return x.contiguous()


def _split(x: Tensor, window: Sequence[int]) -> Tensor:
    """(N, *places, C) to (N, windows, L, C)."""
    n = len(window)
    for axis in reversed(range(n)):
        x = x.unflatten(axis + 1, (-1, window[axis]))
    order = [0, *range(1, 2 * n, 2), *range(2, 2 * n + 1, 2), 2 * n + 1]
    return x.permute(order).flatten(n + 1, 2 * n).flatten(1, n)


def _join(x: Tensor, places: Sequence[int], window: Sequence[int]) -> Tensor:
    """(N, windows, L, C) to (N, *places, C)."""
    n = len(window)
    counts = [size // step for size, step in zip(places, window, strict=True)]
    x = x.unflatten(2, tuple(window)).unflatten(1, counts)  # (N, *counts, *window, C)
    order = [axis for i in range(1, n + 1) for axis in (i, i + n)]
    return x.permute([0, *order, 2 * n + 1]).reshape(x.shape[0], *places, x.shape[-1])


def _separation(
    places: Sequence[int], window: Sequence[int], shift: Sequence[int], like: Tensor
) -> Tensor:
    """(windows, 1, L, L): -100 between places of one window that the shift brought together.

    A shifted window at the edge holds places from both ends of the axis.
    """
    region = rl.zeros((), dtype=rl.int64, device=like.device)
    for axis, (size, offset) in enumerate(zip(places, shift, strict=True)):
        is_moved = (rl.arange(size, device=like.device) >= size - offset).long()
        tail = len(places) - 1 - axis
        region = region * 2 + is_moved.view(-1, *[1] * tail)
    grouped = _split(region[None, ..., None], window)[0, :, :, 0]  # (windows, L)
    differs = grouped[:, None, :, None] != grouped[:, None, None, :]
    return differs.to(like.dtype) * -100.0
