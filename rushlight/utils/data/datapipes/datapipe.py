"""The base classes of data pipes, and the list of one batch.

Invariant: a stream has one iterator at a time; starting another ends the first with an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from rushlight.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe"]


class _Chained:
    """Pipes whose steps are methods of each other."""

    functions: ClassVar[dict[str, Any]]

    def __getattr__(self, name: str) -> Any:
        if name in self.functions:
            return functools.partial(self.functions[name], self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function of a pipe a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a class, whose first argument is a pipe, a method of all pipes."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.register_function(function_name, cls_to_register)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]

    def __repr__(self) -> str:
        return type(self).__qualname__


class IterDataPipe(_Chained, IterableDataset):
    """Base class of pipes whose samples come one after the other.

    A subclass defines __iter__, and reset() where it has something to do before each pass.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).map(lambda x: x * 10).batch(2))
        [[0, 10], [20, 30], [40]]
    """

    functions: ClassVar[dict[str, Any]] = {}
    _valid_iterator_id: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            type.__setattr__(cls, "__iter__", _one_at_a_time(cls.__dict__["__iter__"]))

    def __iter__(self) -> Iterator[Any]:
        return self  # pyright: ignore[reportReturnType]

    def reset(self) -> None:
        """Prepares the pipe for a pass over it."""

    def _start_epoch(self, seed: int, count: int, place: int) -> None:
        """What a loader calls before it reads, in each of `count` processes with the same seed."""
        from rushlight.utils.data.graph_settings import apply_sharding, seed_pipes

        seed_pipes(self, seed)
        apply_sharding(self, count, place)

    def _begin_iterator(self) -> int:
        """Returns what _valid_iterator_id is as long as the iterator that begins may go on."""
        self._valid_iterator_id = 0 if (last := self._valid_iterator_id) is None else last + 1
        self.reset()
        return self._valid_iterator_id

    def _may_go_on(self, iterator_id: int) -> bool:
        return self._valid_iterator_id == iterator_id


def _one_at_a_time(begin: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    @functools.wraps(begin)
    def items(self: IterDataPipe) -> Iterator[Any]:
        iterator_id = self._begin_iterator()
        iterator = begin(self)
        while True:
            if not self._may_go_on(iterator_id):
                raise RuntimeError(
                    "This iterator has been invalidated because another iterator has been created "
                    f"from the same IterDataPipe: {self!r}\nUse .fork() to read it twice at once."
                )
            try:
                item = next(iterator)
            except StopIteration:
                return
            yield item

    return items


class MapDataPipe(_Chained, Dataset):
    """Base class of pipes whose samples are taken by key.

    A subclass defines __getitem__ and usually __len__.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper([1, 2, 3]).map(lambda x: x * 10)
        >>> pipe[2], len(pipe)
        (30, 3)
    """

    functions: ClassVar[dict[str, Any]] = {}


class DataChunk(list):
    """The items of one batch: a list."""

    def as_str(self, indent: str = "") -> str:
        """Returns the items in brackets."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """Returns an iterator over the items."""
        return iter(self)


# Loaders of libraries put pipes into these.


class _IterDataPipeSerializationWrapper(IterDataPipe):
    """A pipe that gives what another gives."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __iter__(self) -> Iterator[Any]:
        return iter(self._datapipe)

    def __len__(self) -> int:
        return len(self._datapipe)


class _MapDataPipeSerializationWrapper(MapDataPipe):
    """A pipe that gives what another gives."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]

    def __len__(self) -> int:
        return len(self._datapipe)
