"""A function of the items of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["foreach_map"]


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> Any:
    """Returns what a function makes of the items of lists, as a list.

    Args:
        op: takes an item of each list, and the other operands as they are.
        *operands: lists and tuples of the same length, and tensors and numbers.
        **kwargs: what is the same for all items.

    Raises:
        RuntimeError: if lists are of different lengths.

    Example:
        >>> from rushlight._higher_order_ops import foreach_map
        >>> foreach_map(torch.add, [torch.ones(1), torch.zeros(1)], 2, alpha=3)
        [tensor([7.]), tensor([6.])]
    """
    lengths = {len(operand) for operand in operands if isinstance(operand, (list, tuple))}
    if not lengths:
        return op(*operands, **kwargs)
    if len(lengths) > 1:
        raise RuntimeError(f"foreach_map: lists must be equally long, got {sorted(lengths)}.")
    (length,) = lengths
    columns = (x if isinstance(x, (list, tuple)) else [x] * length for x in operands)
    return [op(*row, **kwargs) for row in zip(*columns, strict=True)]
