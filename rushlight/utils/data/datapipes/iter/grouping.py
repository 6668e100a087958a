"""Steps that make lists of items, or items of lists."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._batches import Batches
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from rushlight.utils.data.datapipes.iter.callable import length_of

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(Batches, IterDataPipe):
    __doc__ = Batches.__doc__

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        return self.count_of(length_of(self, self.datapipe))


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of lists.

    Args:
        datapipe: the pipe that is read.
        unbatch_level: how many levels of lists are taken apart, -1 for all.
    """

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def _items(self, item: Any, level: int) -> Iterator[Any]:
        is_list = isinstance(item, list)
        if level == 0 or (level < 0 and not is_list):
            yield item
        elif is_list:
            for each in item:
                yield from self._items(each, level - 1 if level > 0 else level)
        else:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            yield from self._items(item, self.unbatch_level)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of items with the same key, in the order in which the lists are full.

    Args:
        datapipe: the pipe that is read.
        group_key_fn: gives the key of an item.
        keep_key: whether (key, list) is returned, and not the list.
        buffer_size: how many items may wait for their lists; then the longest is returned.
        group_size: how many items a list has at most.
        guaranteed_group_size: how many it has at least where the buffer is full.
        drop_remaining: whether lists are left out that are shorter than that.
    """

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is None:
            guaranteed_group_size = group_size
        elif group_size is None or not 0 < guaranteed_group_size <= group_size:
            raise ValueError("guaranteed_group_size must be > 0 and <= group_size, which it needs")
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining

    def _group(self, key: Any, items: list[Any]) -> Any:
        return (key, DataChunk(items)) if self.keep_key else DataChunk(items)

    def _is_long_enough(self, items: list[Any]) -> bool:
        return self.guaranteed_group_size is None or len(items) >= self.guaranteed_group_size

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        waiting = 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            groups[key].append(item)
            waiting += 1
            if len(groups[key]) == self.group_size:
                waiting -= len(groups[key])
                yield self._group(key, groups.pop(key))
            if waiting == self.max_buffer_size:
                longest = max(groups, key=lambda k: len(groups[k]))
                items = groups.pop(longest)
                waiting -= len(items)
                if self._is_long_enough(items):
                    yield self._group(longest, items)
                elif not self.drop_remaining:
                    raise RuntimeError(
                        f"Failed to group items: the buffer of {self.max_buffer_size} is full and "
                        f"the longest group has {len(items)}. Make buffer_size larger."
                    )
                else:
                    warnings.warn(
                        f"{len(items)} items of key {longest!r} were left out: the buffer of "
                        f"{self.max_buffer_size} was full.",
                        stacklevel=2,
                    )
        for key, items in groups.items():
            if self._is_long_enough(items) or not self.drop_remaining:
                yield self._group(key, items)
