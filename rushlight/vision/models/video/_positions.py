"""Positions of MViT v2: what attention adds for the distances between two places."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F

Sizes = tuple[int, int, int]  # time, height, width


def _distances(table: Tensor, queries: int, keys: int) -> Tensor:
    """(queries, keys, C): along one axis, the row of the table for each pair of places.

    The side with fewer places counts in larger steps; a table of another size is interpolated.
    """
    rows = 2 * max(queries, keys) - 1
    if table.shape[0] != rows:
        table = F.interpolate(table.permute(1, 0)[None], size=rows, mode="linear")[0].permute(1, 0)
    query_step, key_step = max(keys / queries, 1.0), max(queries / keys, 1.0)
    query = rl.arange(queries, device=table.device)[:, None] * query_step
    key = (rl.arange(keys, device=table.device)[None, :] + (1.0 - keys)) * key_step
    return table[(query - key).long()]


def relative_positions(q: Tensor, q_thw: Sizes, k_thw: Sizes, tables: list[Tensor]) -> Tensor:
    """(N, heads, 1 + queries, 1 + keys): products of queries with the distances to the keys.

    The sum over time, height and width (Li et al. 2021, equation 4); 0 for the class token.
    """
    N, heads, _, C = q.shape
    q = q[:, :, 1:].reshape(N, heads, *q_thw, C)
    time, height, width = (
        _distances(table, queries, keys)
        for table, queries, keys in zip(tables, q_thw, k_thw, strict=True)
    )
    by_time = rl.einsum("nathwc,tkc->nathwk", q, time)[..., :, None, None]
    by_height = rl.einsum("nathwc,hkc->nathwk", q, height)[..., None, :, None]
    by_width = rl.einsum("nathwc,wkc->nathwk", q, width)[..., None, None, :]
    total = by_height + by_width + by_time
    return F.pad(total.flatten(5).flatten(2, 4), [1, 0, 1, 0])
