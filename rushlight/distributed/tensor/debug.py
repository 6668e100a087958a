"""Seeing what DTensors communicate."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Self

from rushlight import ops
from rushlight.distributed.tensor._redistribute import counters

__all__ = ["CommDebugMode"]


class CommDebugMode:
    """A with block that counts the collectives of DTensors, forward and backward.

    Where PyTorch reduces and scatters, or exchanges dims, it counts that, however it is done here.
    """

    def __init__(self) -> None:
        self._counter: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._counter.clear()
        counters.append(self._counter)
        return self

    def __exit__(self, *_: object) -> None:
        counters[:] = [counter for counter in counters if counter is not self._counter]

    def get_total_counts(self) -> int:
        """Returns the number of collectives."""
        return self._counter.total()

    def get_comm_counts(self) -> dict[Any, int]:
        """Returns the numbers by the operator, such as torch.ops.c10d_functional.all_reduce."""
        counts = {getattr(ops.c10d_functional, name): n for name, n in self._counter.items()}
        return defaultdict(int, counts)

    @property
    def comm_counts(self) -> dict[Any, int]:
        """What get_comm_counts returns."""
        return self.get_comm_counts()
