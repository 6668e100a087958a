"""Attention over sequences of different lengths that lie behind one another, without padding.

Each sequence runs by itself through scaled_dot_product_attention.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.functional import scaled_dot_product_attention

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What attention returns besides its result.

    Attributes:
        lse: whether the logarithm of the sum of each query's exponentiated scores.
    """

    lse: bool = False


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the attention of each sequence's queries to the keys of the same sequence.

    Args:
        query: (total of queries, heads, head_dim).
        key, value: (total of keys, heads, head_dim); with block_table (pages, page size, heads,
            head_dim).
        cu_seq_q, cu_seq_k: where the sequences begin, and at last where the last one ends.
        max_q, max_k: the greatest lengths; accepted, and not needed.
        return_aux: AuxRequest(lse=True) asks for log-sum-exps, too: (total of queries, heads).
        scale: factor of the scores; 1 / sqrt(head_dim) if None.
        window_size: how many keys before and behind its own place a query sees; -1 for all. The
            last query of a sequence is at the place of its last key. (-1, 0) is causal.
        enable_gqa: whether several heads of query may share one of key and value.
        seqused_k: how many keys of each sequence count, from the first one.
        block_table: (sequences, pages), the pages that hold the keys of a sequence in their order.
        num_splits: accepted: results do not depend on what else is in the batch.

    Raises:
        ValueError: if a tensor has another number of dims, or the sequences do not agree.

    Example:
        >>> from rushlight.nn.attention.varlen import varlen_attn
        >>> x = torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
        >>> begins = torch.tensor([0, 1, 3])
        >>> varlen_attn(x, x, x, begins, begins, 2, 2, window_size=(-1, 0)).flatten().tolist()[:2]
        [1.0, 2.0]
    """
    wants_lse = return_aux is not None and return_aux.lse
    results, sums = [], []
    for q, k, v in _sequences(query, key, value, cu_seq_q, cu_seq_k, seqused_k, block_table):
        mask = _window(q.size(1), k.size(1), window_size, query.device)
        results.append(
            scaled_dot_product_attention(
                q, k, v, attn_mask=mask, scale=scale, enable_gqa=enable_gqa
            ).transpose(0, 1)  # (L, heads, head_dim)
        )
        if wants_lse:
            scores = q @ k.repeat_interleave(q.size(0) // k.size(0), 0).mT
            scores = scores * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
            scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
            sums.append(scores.logsumexp(-1).mT)  # (L, heads)
    result = rl.cat(results) if results else query.new_empty(query.shape)
    if not wants_lse:
        return result
    return result, rl.cat(sums) if sums else query.new_empty(query.shape[:2])


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Writes what varlen_attn returns to out, and returns it.

    Args:
        out: (total of queries, heads, head_dim).
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, return_aux, scale, window_size,
            enable_gqa, seqused_k, block_table, num_splits: those of varlen_attn.
    """
    made = varlen_attn(
        query,
        key,
        value,
        cu_seq_q,
        cu_seq_k,
        max_q,
        max_k,
        return_aux=return_aux,
        scale=scale,
        window_size=window_size,
        enable_gqa=enable_gqa,
        seqused_k=seqused_k,
        block_table=block_table,
    )
    if isinstance(made, tuple):
        return out.copy_(made[0]), made[1]
    return out.copy_(made)


def _sequences(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    used: Tensor | None,
    pages: Tensor | None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yields query, key and value of each sequence: (heads, L, head_dim)."""
    _check_dims("query", query, 3)
    for name, tensor in (("key", key), ("value", value)):
        _check_dims(name, tensor, 3 if pages is None else 4)
    begins = cu_seq_q.tolist()
    if pages is not None and used is None:
        raise ValueError("varlen_attn: block_table needs seqused_k, the number of keys.")
    if pages is None and cu_seq_k is None:
        raise ValueError("varlen_attn: cu_seq_k is None. Only with block_table it may be.")
    keys = range(len(begins)) if cu_seq_k is None else cu_seq_k.tolist()
    lengths = [None] * (len(begins) - 1) if used is None else used.tolist()
    if not len(begins) == len(keys) == len(lengths) + 1:
        raise ValueError(
            f"varlen_attn: cu_seq_q is of {len(begins) - 1} sequences, cu_seq_k of "
            f"{len(keys) - 1} and seqused_k of {len(lengths)}. They must be equal."
        )
    if begins[0] != 0 or begins[-1] != query.size(0):
        raise ValueError(
            f"varlen_attn: cu_seq_q goes from {begins[0]} to {begins[-1]}, but query has "
            f"{query.size(0)} places. It begins with 0 and ends with their number."
        )
    for i, length in enumerate(lengths):
        if pages is None:
            k, v = key[keys[i] : keys[i + 1]], value[keys[i] : keys[i + 1]]
        else:
            assert length is not None
            count = -(-length // key.size(1))
            k, v = (pool[pages[i, :count].long()].flatten(0, 1) for pool in (key, value))
        yield (
            query[begins[i] : begins[i + 1]].transpose(0, 1),
            k[:length].transpose(0, 1),
            v[:length].transpose(0, 1),
        )


def _check_dims(name: str, tensor: Tensor, dims: int) -> None:
    if tensor.dim() != dims:
        raise ValueError(
            f"varlen_attn: {name} has shape {tuple(tensor.shape)}. It must have {dims} dims."
        )


def _window(queries: int, keys: int, size: tuple[int, int], device: rl.device) -> Tensor | None:
    """Which keys each query sees; None for all."""
    before, behind = size
    if before < 0 and behind < 0:
        return None
    own = rl.arange(keys - queries, keys, device=device).unsqueeze(1)
    distance = rl.arange(keys, device=device) - own  # (queries, keys)
    mask = rl.ones_like(distance, dtype=rl.bool) if behind < 0 else distance <= behind
    return mask if before < 0 else mask & (distance >= -before)
