"""Samplers: in which order a loader takes samples.

Owns orders of indices and their grouping into batches; never touches a sample.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import rushlight as rl
from rushlight import Generator, Tensor


class Sampler:
    """Base class of samplers: iterables of indices, or of lists of indices.

    A subclass defines __iter__, and __len__ where it knows it.

    Example:
        >>> class Backwards(torch.utils.data.Sampler):
        ...     def __init__(self, size):
        ...         self.size = size
        ...     def __iter__(self):
        ...         return iter(range(self.size - 1, -1, -1))
        >>> list(Backwards(3))
        [2, 1, 0]
    """

    # Lets programs write Sampler[int] in annotations and as a base class.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, data_source: Sized | None = None) -> None:
        """Takes what older subclasses pass, and needs nothing."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


class SequentialSampler(Sampler):
    """Indices in order.

    Args:
        data_source: what has the length.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Indices in a new random order each time.

    Args:
        data_source: what has the length.
        replacement: draw each index anew, so that some repeat and some are missing.
        num_samples: how many; None is the length of the data source. Without replacement, more
            than that goes through the data again in a new order.
        generator: source of the order; None is the default generator.

    Example:
        >>> sorted(torch.utils.data.RandomSampler("abc"))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                "RandomSampler: replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        _check_positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        # The data may grow between epochs.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        count = self.num_samples
        if self.replacement:
            yield from rl.randint(size, (count,), generator=self.generator).tolist()
            return
        for start in range(0, count, size):
            order = rl.randperm(size, generator=self.generator)
            yield from order[: count - start].tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in a new random order each time.

    Args:
        indices: the indices.
        generator: source of the order; None is the default generator.

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([2, 4, 6]))
        [2, 4, 6]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in rl.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Random indices with given probabilities.

    Args:
        weights: weight of each index; they need not add up to 1.
        num_samples: how many indices to draw.
        replacement: let an index be drawn more than once.
        generator: source of the draws; None is the default generator.

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 0.0], 4))
        [1, 1, 1, 1]
    """

    weights: Tensor

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_positive("WeightedRandomSampler", "num_samples", num_samples)
        _check_bool("WeightedRandomSampler", "replacement", replacement)
        self.weights = rl.as_tensor(weights, dtype=rl.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "WeightedRandomSampler: weights should be a 1d sequence but given weights have "
                f"shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = rl.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of indices that another sampler gives.

    Args:
        sampler: sampler, or any iterable of indices.
        batch_size: length of a list.
        drop_last: leave out the last list if it is shorter.

    Example:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler | Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_positive("BatchSampler", "batch_size", batch_size)
        _check_bool("BatchSampler", "drop_last", drop_last)
        self.sampler: Any = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full if self.drop_last or not rest else full + 1


def _check_positive(sampler: str, name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(
            f"{sampler}: {name} should be a positive integer value, but got {name}={value}"
        )


def _check_bool(sampler: str, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{sampler}: {name} should be a boolean value, but got {name}={value}")
