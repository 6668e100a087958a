"""Steps that change the order of items."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Self

import rushlight as rl
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.callable import length_of
from rushlight.utils.data.sampler import SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler makes of a pipe.

    Args:
        datapipe: the pipe, which has a length.
        sampler: a class of samplers.
        sampler_args, sampler_kwargs: what it is made with, behind the pipe.
    """

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: tuple[Any, ...] = (),
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not hasattr(datapipe, "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler = sampler(*sampler_args, **{"data_source": datapipe, **(sampler_kwargs or {})})

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """The items in a random order, each drawn from a buffer of those that come next.

    Args:
        datapipe: the pipe that is read.
        buffer_size: how many items the buffer holds; all of them make the order uniform.
        unbatch_level: how many levels of lists are taken apart before.
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe.unbatch(unbatch_level=unbatch_level) if unbatch_level else datapipe
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Turns the shuffle on or off; returns the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """Sets the seed of the next pass; returns the pipe."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Seeds the pass that begins, from the default generator unless set_seed was called."""
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = int(rl.empty((), dtype=rl.int64).random_())
        self._rng.seed(self._seed)
        self._seed = None

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list[Any] = []
        for item in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(item)
                continue
            place = self._rng.randint(0, len(buffer) - 1)
            drawn, buffer[place] = buffer[place], item
            yield drawn
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)
