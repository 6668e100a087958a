"""What the batching steps of both kinds of data have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.utils.data.datapipes.datapipe import DataChunk


class Batches:
    """Lists of items that follow each other.

    Args:
        datapipe: the pipe that is read.
        batch_size: how many items a list has.
        drop_last: whether the last list is left out if it has fewer.
        wrapper_class: what is made of each list.
    """

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def count_of(self, items: int) -> int:
        """How many lists there are of so many items."""
        return items // self.batch_size if self.drop_last else -(-items // self.batch_size)
