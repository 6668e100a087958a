"""Causal masks that attention knows by name, so that none lies in memory where that is possible."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the diagonal goes through."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for scaled_dot_product_attention, by its sizes.

    Query i sees keys 0 to i, or to i + seq_len_kv - seq_len_q when the last query sees all keys.

    Args:
        variant: which of the two.
        seq_len_q: number of queries L.
        seq_len_kv: number of keys S.

    Raises:
        AssertionError: if variant is not a CausalVariant.

    Example:
        >>> torch.nn.attention.bias.causal_lower_right(1, 2)
        tensor([[True, True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(
                f"CausalBias: variant must be a CausalVariant, got {type(variant).__name__}."
            )
        bias = rl.empty(0).as_subclass(cls)
        bias.variant = variant
        bias.seq_len_q = seq_len_q
        bias.seq_len_kv = seq_len_kv
        if variant == CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                f"CausalBias: the first {seq_len_q - seq_len_kv} queries see no key, because "
                f"seq_len_q={seq_len_q} > seq_len_kv={seq_len_kv}.",
                stacklevel=2,
            )
        return bias

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None: ...

    def _materialize(self, device: rl.device | str | None = None) -> Tensor:
        """The mask itself: (seq_len_q, seq_len_kv), True for what is seen."""
        is_lower = self.variant == CausalVariant.LOWER_RIGHT
        diagonal = self.seq_len_kv - self.seq_len_q if is_lower else 0
        ones = rl.ones(self.seq_len_q, self.seq_len_kv, dtype=rl.bool, device=device)
        return ones.tril(diagonal)

    @staticmethod
    def _attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with is_causal=True.")
        is_plain = (
            attn_mask.variant == CausalVariant.UPPER_LEFT
            or attn_mask.seq_len_q == attn_mask.seq_len_kv
        )
        mask = None if is_plain else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, is_plain, scale=scale, enable_gqa=enable_gqa
        )

    _hears_attributes = False

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            return cls._attend(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Returns the mask by which query i sees keys 0 to i.

    Args:
        size: numbers of queries and of keys.

    Example:
        >>> torch.nn.attention.bias.causal_upper_left(1, 2)
        tensor([[ True, False]])
    """
    queries, keys = size
    return CausalBias(CausalVariant.UPPER_LEFT, queries, keys)


def causal_lower_right(*size: int) -> CausalBias:
    """Returns the mask by which the last query sees all keys, and each one before it one less.

    Args:
        size: numbers of queries and of keys.

    Example:
        >>> torch.nn.attention.bias.causal_lower_right(1, 2)
        tensor([[True, True]])
    """
    queries, keys = size
    return CausalBias(CausalVariant.LOWER_RIGHT, queries, keys)
