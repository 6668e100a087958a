"""Several epochs as one iterator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Self, TypeVar

T = TypeVar("T")

__all__ = ["CyclingIterator"]


class CyclingIterator(Generic[T]):
    """Iterates over the items of n epochs.

    Args:
        n: how many epochs, the first ones included.
        generator_fn: called with the number of an epoch, returns an iterator over it.
        start_epoch: the first one.

    Example:
        >>> from rushlight.distributed.elastic.utils.data import CyclingIterator
        >>> list(CyclingIterator(2, lambda epoch: iter([epoch, 10 + epoch])))
        [0, 10, 1, 11]
    """

    def __init__(
        self, n: int, generator_fn: Callable[[int], Iterator[T]], start_epoch: int = 0
    ) -> None:
        self._n = n
        self._epoch = start_epoch
        self._generator_fn = generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
                self._epoch += 1
                self._iter = self._generator_fn(self._epoch)
