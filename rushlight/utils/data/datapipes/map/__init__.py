"""The steps of data that is taken by key."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any, Self

import rushlight as rl
from rushlight.utils.data.datapipes._batches import Batches
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The items of a sequence or dict.

    Args:
        sequence: where they come from.
        deepcopy: whether it is copied.
    """

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """What a function returns for each item.

    Args:
        datapipe: the pipe that is read.
        fn: the function.
    """

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any]) -> None:
        self.datapipe = datapipe
        self.fn = fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


class ShufflerIterDataPipe(IterDataPipe):
    """The items in a random order, as a stream.

    Args:
        datapipe: the pipe that is read.
        indices: its keys; 0, 1, ... unless given.
    """

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._order = list(self.indices)

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Turns the shuffle on or off; returns the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """Sets the seed of the next pass; returns the pipe."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Draws the order of the pass that begins."""
        self._order = list(self.indices)
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = int(rl.empty((), dtype=rl.int64).random_())
        self._order = random.Random(self._seed).sample(self.indices, len(self.indices))
        self._seed = None

    def __iter__(self) -> Iterator[Any]:
        for index in self._order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)


def _check_pipes(datapipes: tuple[Any, ...]) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The items of one pipe after those of another.

    Args:
        datapipes: the pipes.
    """

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        place = index
        for pipe in self.datapipes:
            if place < len(pipe):
                return pipe[place]
            place -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of one item of each pipe.

    Args:
        datapipes: the pipes.
    """

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("batch")
class BatcherMapDataPipe(Batches, MapDataPipe):
    __doc__ = Batches.__doc__

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        places = itertools.islice(range(len(self.datapipe)), index * self.batch_size, None)
        chosen = itertools.islice(places, self.batch_size)
        return self.wrapper_class([self.datapipe[place] for place in chosen])

    def __len__(self) -> int:
        return self.count_of(len(self.datapipe))


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

Batcher = BatcherMapDataPipe
Concater = ConcaterMapDataPipe
Mapper = MapperMapDataPipe
SequenceWrapper = SequenceWrapperMapDataPipe
Shuffler = ShufflerIterDataPipe
Zipper = ZipperMapDataPipe
