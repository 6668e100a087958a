"""Datasets: where samples come from.

Owns the two kinds, one that is indexed and one that is iterated over, and what combines or cuts
them. The order of samples is the samplers' business, batches are the loader's.
"""

from __future__ import annotations

import bisect
import itertools
import math
import types
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import rushlight as rl
from rushlight import Generator as Generator
from rushlight import Tensor as Tensor
from rushlight import default_generator as default_generator
from rushlight import randperm as randperm


class Dataset:
    """Base class of datasets whose samples are taken by index.

    A subclass defines __getitem__ and usually __len__. It may define __getitems__, which takes a
    list of indices and returns the list of their samples, where that is faster.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> Squares()[3]
        9
    """

    # Lets programs write Dataset[Sample] in annotations and as a base class.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __add__(self, other: Dataset) -> Dataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base class of datasets whose samples come one after the other, as from a stream.

    A subclass defines __iter__.

    Example:
        >>> class Countdown(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> next(iter(torch.utils.data.DataLoader(Countdown(), batch_size=2)))
        tensor([3, 2])
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")

    def __add__(self, other: Dataset) -> Dataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Samples are tuples of rows: one of each tensor.

    Args:
        tensors: tensors of equal size in the first dimension.

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.arange(3), torch.arange(3) * 10)
        >>> data[1]
        (tensor(1), tensor(10))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [tensor.size(0) for tensor in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(
                f"TensorDataset: Size mismatch between tensors: their first sizes are {sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Samples are tuples, or dicts, of one sample of each dataset.

    Args:
        args: datasets of equal length; samples become tuples.
        kwargs: instead of args, named datasets; samples become dicts.

    Example:
        >>> data = torch.utils.data.StackDataset(image=[10, 20], label=["a", "b"])
        >>> data[1]
        {'image': 20, 'label': 'b'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "StackDataset: takes positional or named datasets, but both were given"
            )
        if not args and not kwargs:
            raise ValueError("StackDataset: At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: Size mismatch between datasets: {lengths}")
        self._length = lengths[0]

    def _parts(self) -> list[Any]:
        datasets = self.datasets
        return list(datasets.values() if isinstance(datasets, dict) else datasets)

    def _stack(self, parts: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._stack([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [get_samples(dataset, indices) for dataset in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(
                    "StackDataset: Nested dataset's output size mismatch. "
                    f"Expected {len(indices)}, got {len(column)}"
                )
        return [self._stack(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset):
    """Several datasets, one after the other.

    Args:
        datasets: datasets that have a length.

    Example:
        >>> data = torch.utils.data.ConcatDataset([[1, 2], [3]])
        >>> len(data), data[2], data[-3]
        (3, 3, 1)
    """

    datasets: list[Any]

    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError(
                "ConcatDataset: ConcatDataset does not support IterableDataset. Use ChainDataset."
            )
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The number of samples up to the end of each of some datasets.

        Example:
            >>> torch.utils.data.ConcatDataset.cumsum([[1, 2], [3]])
            [2, 3]
        """
        return list(itertools.accumulate(len(part) for part in sequence))

    @property
    def cummulative_sizes(self) -> list[int]:
        """cumulative_sizes, in the spelling of old programs; warns."""
        warnings.warn(
            "cummulative_sizes attribute is renamed to cumulative_sizes",
            FutureWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        size = len(self)
        if index < -size:
            raise ValueError(
                "ConcatDataset: absolute value of index should not exceed dataset length, "
                f"but got {index} with length {size}"
            )
        if index >= size:
            raise IndexError(f"ConcatDataset: index {index} is out of range for length {size}")
        index %= size
        part = bisect.bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][index - start]


class ChainDataset(IterableDataset):
    """Several iterable datasets, one after the other.

    Args:
        datasets: iterable of IterableDataset.
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def _parts(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(
                    "ChainDataset: ChainDataset only supports IterableDataset, "
                    f"not {type(dataset).__name__}"
                )
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._parts())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._parts())


class Subset(Dataset):
    """The samples of a dataset at given indices.

    A subclass that defines __getitem__ must define __getitems__ too.

    Args:
        dataset: the whole dataset.
        indices: which of its samples, in this order.

    Example:
        >>> data = torch.utils.data.Subset(["a", "b", "c"], [2, 0])
        >>> data[0], len(data)
        ('c', 2)
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__, which loaders call. "
                "Define __getitems__(self, indices) as [self[i] for i in indices] or faster."
            )
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return get_samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def is_pipe(dataset: Any) -> bool:
    """Whether a dataset is an IterDataPipe; these are imported where they are used."""
    return hasattr(type(dataset), "_start_epoch")


def get_samples(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """Returns the samples at the indices, all at once where the dataset can do that."""
    if getattr(dataset, "__getitems__", None):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


def get_collated(dataset: Any, indices: Sequence[Any]) -> list[Tensor] | None:
    """Returns default_collate of the samples by indexing whole tensors, or None where it cannot.

    It can for tensors and for subsets of them, of exactly these classes: in a subclass the samples
    may be anything.
    """
    if not len(indices) or any(type(index) is not int for index in indices):
        return None
    if type(dataset) is Subset:
        return get_collated(dataset.dataset, [dataset.indices[i] for i in indices])
    if type(dataset) is TensorDataset:
        index = rl.tensor(indices)
        return [tensor[index] for tensor in dataset.tensors]
    return None


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset]:
    """Cuts a dataset into random parts that do not overlap.

    Args:
        dataset: dataset that has a length.
        lengths: lengths of the parts, which add up to that of the dataset; or shares, which add up
            to 1. What rounding the shares down leaves over goes to the first parts, one each.
        generator: source of the shuffle; None is the default generator.
    Returns:
        A Subset for each length.

    Example:
        >>> parts = torch.utils.data.random_split(range(10), [0.5, 0.3, 0.2])
        >>> [len(part) for part in parts]
        [5, 3, 2]
    """
    size = len(dataset)
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        counts = _counts(lengths, size)
    else:
        counts = [int(length) for length in lengths]
    if sum(counts) != size:
        raise ValueError(
            "random_split: Sum of input lengths does not equal the length of the input dataset: "
            f"{total} and {size}"
        )
    order = rl.randperm(size, generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [
        Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends, strict=True)
    ]


def _counts(shares: Sequence[float], size: int) -> list[int]:
    for i, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"random_split: Fraction at index {i} is not between 0 and 1: {share}")
    counts = [math.floor(size * share) for share in shares]
    for i in range(size - sum(counts)):
        counts[i % len(counts)] += 1
    for i, count in enumerate(counts):
        if count == 0:
            warnings.warn(
                f"random_split: Length of split at index {i} is 0. This might result in an empty "
                "dataset.",
                stacklevel=3,
            )
    return counts
