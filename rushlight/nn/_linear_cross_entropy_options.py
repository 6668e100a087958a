"""How linear_cross_entropy splits the batch.

Owns the options and their checks; the function reads them in _linear_cross_entropy.py.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import dtype as DType

__all__ = ["LinearCrossEntropyOptions"]


class LinearCrossEntropyOptions:
    """How linear_cross_entropy goes through the batch part by part, so that logits are not kept.

    Args:
        allow_retain_graph: whether backward may run more than once, which takes memory for one
            more gradient. Always so for reduction "none".
        batch_chunk_size: rows at a time; all if None. Give this or chunking_method.
        chunking_method: "aspect_ratio" takes as many rows as give no more logits than the input
            has elements, rounded up to a power of 2; "aspect_ratio:N" an N-th of them; None
            leaves it to batch_chunk_size; "auto" chooses.
        acc_policy: "auto" computes in float32 where the input is of a half type; "accurate",
            "balanced" and "compact" are the same here: logits and sums of gradients have
            acc_dtype.
        acc_dtype: dtype of logits and sums; None for that of the input or acc_policy's.

    Raises:
        ValueError: for settings that do not exist.

    Example:
        >>> options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        >>> x, w = torch.randn(8, 3), torch.randn(100, 3)
        >>> y = torch.randint(100, (8,))
        >>> parts = torch.nn.functional.linear_cross_entropy(x, w, y, options=options)
        >>> whole = torch.nn.functional.linear_cross_entropy(x, w, y)
        >>> torch.allclose(parts, whole)
        True
    """

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: DType | None = None,
    ) -> None:
        if acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {acc_policy!r}")
        if chunking_method not in (None, "auto"):
            name, colon, factor = str(chunking_method).partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(f"invalid chunking_method: {chunking_method!r}")
        size = batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if acc_dtype not in (None, rl.float16, rl.bfloat16, rl.float32, rl.float64):
            raise ValueError(
                f"acc_dtype must be None or a floating-point dtype, got {acc_dtype!r}."
            )
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __repr__(self) -> str:
        return (
            f"LinearCrossEntropyOptions({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"
        )
