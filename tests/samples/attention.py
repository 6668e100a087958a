"""Samples of scaled_dot_product_attention."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, booleans, normal, samples


def attention_ref(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attn_mask: np.ndarray | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> np.ndarray:
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    factor = 1 / math.sqrt(max(1, query.shape[-1])) if scale is None else scale
    scores = query @ np.swapaxes(key, -2, -1) * factor
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if attn_mask is not None:
        is_bool = attn_mask.dtype == bool
        scores = np.where(attn_mask, scores, -np.inf) if is_bool else scores + attn_mask
    largest = scores.max(-1, keepdims=True, initial=-1e300)
    powers = np.exp(scores - largest)
    totals = powers.sum(-1, keepdims=True)
    return powers / np.where(totals == 0, 1, totals) @ value * (dropout_p < 1)


@samples("nn.functional.scaled_dot_product_attention", ref=attention_ref)
def scaled_dot_product_attention() -> Iterator[Any]:
    def triple(L: int, S: int, E: int, V: int, *batch: int) -> tuple[np.ndarray, ...]:
        return normal(*batch, L, E), normal(*batch, S, E), normal(*batch, S, V)

    yield triple(3, 3, 4, 4, 1, 2)
    yield triple(3, 5, 2, 3)
    yield Sample(*triple(4, 4, 3, 3, 2), is_causal=True)
    yield Sample(*triple(3, 5, 3, 2), is_causal=True, scale=0.7)
    yield Sample(*triple(5, 3, 3, 2), is_causal=True, scale=-0.5)
    yield (*triple(3, 5, 3, 2, 2), booleans(3, 5) | np.eye(3, 5, dtype=bool))
    yield (*triple(3, 4, 3, 2, 2, 1), np.array([True, False, True, True]))
    yield (*triple(2, 3, 2, 2), np.array([[True, False, True], [False, False, False]]))
    yield (*triple(3, 4, 2, 2, 2, 2), normal(2, 1, 3, 4))
    yield (*triple(3, 4, 2, 2, 2), normal(3, 1))
    yield (*triple(3, 4, 2, 2), normal(2, 3, 4))
    yield Sample(*triple(3, 3, 2, 2), normal(3, 3), is_causal=True)
    yield Sample(*triple(2, 2, 2, 2), dropout_p=1.0)
    # Dims of a batch broadcast, heads share keys and values.
    yield normal(2, 1, 2, 3), normal(3, 4, 3), normal(2, 3, 4, 2)
    yield Sample(normal(4, 2, 3), normal(2, 3, 3), normal(2, 3, 2), enable_gqa=True)
    yield Sample(
        normal(1, 6, 2, 3), normal(1, 3, 2, 3), normal(1, 2, 2, 2), normal(6, 2, 2), enable_gqa=True
    )
    # More than one tile of keys and of queries, and a part of one.
    yield Sample(*triple(2, 70, 2, 2), is_causal=False)
    yield Sample(*triple(67, 66, 1, 2), is_causal=True)
    # Without elements.
    yield triple(0, 3, 2, 2, 2)
    yield triple(3, 0, 2, 2, 2)
    yield triple(3, 2, 0, 2)
    yield triple(3, 2, 2, 0)
    yield triple(2, 2, 2, 2, 0, 3)
