"""Steps that join several pipes, or make several of one."""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.callable import length_of

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


class _Joined(IterDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError(f"Expected at least one DataPipe, but got nothing: {self!r}")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError(f"Expected all inputs to be `IterDataPipe`: {self!r}")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Joined):
    """The items of one pipe after those of another.

    Args:
        datapipes: the pipes.
    """

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(_Joined):
    """Tuples of one item of each pipe, until one of them ends.

    Args:
        datapipes: the pipes.
    """

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Joined):
    """One item of each pipe in turn, until one of them ends.

    Args:
        datapipes: the pipes.
    """

    def __iter__(self) -> Iterator[Any]:
        for items in zip(*self.datapipes, strict=False):
            yield from items

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes) * len(self.datapipes)


class _Source:
    """What several pipes read at once, each at its own speed: the items that are still to come.

    Args:
        datapipe: the pipe that is read.
        name: who reads it, for messages.
        buffer_size: how many items may wait, -1 for any number.
        targets: for an item, the numbers of the readers that it is for.
    """

    def __init__(
        self,
        datapipe: Any,
        name: str,
        num_instances: int,
        buffer_size: int,
        targets: Callable[[Any], Any],
    ) -> None:
        if num_instances < 1:
            raise ValueError(
                f"Expected `num_instances` larger than 0, but {num_instances} is found"
            )
        if buffer_size == 0:
            raise ValueError("Expected a `buffer_size` that is not 0, which holds nothing.")
        if buffer_size < 0:
            warnings.warn(
                "Unlimited buffer size is set, please be aware of OOM risks", stacklevel=4
            )
        self.datapipe = datapipe
        self.name = name
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self.targets = targets
        self.round = -1
        self.start()

    def start(self) -> None:
        """Begins a pass for all readers, which ends the one before."""
        self.round += 1
        self._waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self._items: Iterator[Any] | None = None

    def read(self, instance: int) -> Iterator[Any]:
        """The items of this pass for one reader."""
        waiting = self._waiting
        while True:
            while not waiting[instance]:
                if self._items is None:
                    self._items = iter(self.datapipe)
                try:
                    item = next(self._items)
                except StopIteration:
                    return
                for target in self.targets(item):
                    waiting[target].append(item)
                most = max(map(len, waiting))
                if most > self.buffer_size >= 0:
                    raise BufferError(
                        f"{self.name} buffer overflow,buffer size {self.buffer_size} is "
                        "insufficient."
                    )
            yield waiting[instance].popleft()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_items": None, "_waiting": [deque() for _ in self._waiting]}


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that read a source."""

    def __init__(self, source: _Source, instance: int, copy: Callable[[Any], Any] | None) -> None:
        self.main_datapipe = source.datapipe
        self._source = source
        self._instance = instance
        self._copy = copy

    def _begin_iterator(self) -> int:
        if self._valid_iterator_id == self._source.round:  # this pass was read already
            self._source.start()
        self._valid_iterator_id = self._source.round
        return self._source.round

    def _may_go_on(self, iterator_id: int) -> bool:
        return self._source.round == iterator_id

    def __iter__(self) -> Iterator[Any]:
        items = self._source.read(self._instance)
        return map(self._copy, items) if self._copy else items

    def __len__(self) -> int:
        return length_of(self, self.main_datapipe)


_COPIES = {None: None, "shallow": copying.copy, "deep": copying.deepcopy}


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several pipes, each with all items.

    Args:
        datapipe: the pipe that is read.
        num_instances: how many there are.
        buffer_size: how far they may be apart; -1 for any number of items.
        copy: whether each gets "shallow" or "deep" copies of the items.
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        buffer_size: int = 1000,
        copy: str | None = None,
    ) -> Any:
        if copy not in _COPIES:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        if num_instances == 1 and copy is None:
            return datapipe
        everyone = range(num_instances)
        source = _Source(datapipe, cls.__name__, num_instances, buffer_size, _Always(everyone))
        return [_ChildDataPipe(source, i, _COPIES[copy]) for i in everyone]


class _Always:
    """Returns the same for all items; unlike a lambda it is pickled."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __call__(self, item: Any) -> Any:
        return self.result


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes, each with some of the items.

    Args:
        datapipe: the pipe that is read.
        num_instances: how many there are.
        classifier_fn: gives the number of the pipe that an item is for, or None.
        drop_none: whether items for which it gives None are left out.
        buffer_size: how many items may wait in each; -1 for any number.
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        targets = _Classified(classifier_fn, num_instances, drop_none)
        source = _Source(datapipe, cls.__name__, num_instances, buffer_size, targets)
        return [_ChildDataPipe(source, i, None) for i in range(num_instances)]


class _Classified:
    def __init__(self, classifier_fn: Any, num_instances: int, drop_none: bool) -> None:
        self.classifier_fn = classifier_fn
        self.num_instances = num_instances
        self.drop_none = drop_none

    def __call__(self, item: Any) -> tuple[int, ...]:
        chosen = self.classifier_fn(item)
        if chosen is None and self.drop_none:
            return ()
        if chosen is None or not 0 <= chosen < self.num_instances:
            raise ValueError(
                "Output of the classification fn should be between 0 and "
                f"{self.num_instances - 1}. {chosen} is returned."
            )
        return (chosen,)
