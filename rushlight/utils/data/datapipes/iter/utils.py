"""The pipe at the beginning."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.callable import length_of

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The items of something that can be iterated over.

    Args:
        iterable: where they come from.
        deepcopy: whether each pass is over a copy, if it can be copied.
    """

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        items = self.iterable
        if self.deepcopy:
            with suppress(TypeError):  # of generators, which cannot be copied
                items = copy.deepcopy(items)
        return iter(items)

    def __len__(self) -> int:
        return length_of(self, self.iterable)
