"""The loader: goes over a dataset in batches.

Owns the choice of sampler and collation and the walk over one epoch, in this process. That over
batches which other processes make is in parallel.py. The iterators have PyTorch's names and read
of a loader what PyTorch's read: libraries look for them, and make them of loaders of their own.
Invariant: each iter() starts an epoch of its own; a batch that raises does not end the epoch.
"""

from __future__ import annotations

import itertools
import os
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import rushlight as rl
from rushlight import _C, Generator
from rushlight._named_ranges import shown_as
from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.fetch import Fetcher
from rushlight.utils.data._utils.pin_memory import pin_memory
from rushlight.utils.data.dataset import Dataset as Dataset
from rushlight.utils.data.dataset import IterableDataset, is_pipe
from rushlight.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from rushlight.utils.data.worker_info import get_worker_info as get_worker_info

if TYPE_CHECKING:
    from rushlight.utils.data.parallel import _MultiProcessingDataLoaderIter

_collate_fn_t: TypeAlias = "Callable[[list[Any]], Any]"
_worker_init_fn_t: TypeAlias = "Callable[[int], None]"

_PREFETCH_FACTOR = 2  # batches that each worker makes ahead, unless told


class DataLoader:
    """Goes over a dataset in batches, in order or shuffled.

    Args:
        dataset: anything with __getitem__ and __len__, or an IterableDataset.
        batch_size: samples in a batch; None gives single samples.
        shuffle: take a new random order in each epoch.
        sampler: gives the indices instead of shuffle.
        batch_sampler: gives lists of indices instead of batch_size, shuffle, sampler, drop_last.
        num_workers: processes that make batches ahead; with 0 batches are made in this one, when
            they are asked for.
        collate_fn: makes a batch of a list of samples; None is default_collate, or
            default_convert where batch_size is None.
        pin_memory: put batches into pinned memory, from where copies to a GPU do not wait;
            changes nothing on a machine without a GPU.
        drop_last: leave out the last batch if it is smaller.
        timeout: seconds to wait for a worker at most; 0 waits on.
        worker_init_fn: called in each worker with its number, before the first batch.
        multiprocessing_context: how workers start: a context of the multiprocessing module or the
            name of one, "fork", "spawn" or "forkserver". Unless given it is Python's own choice,
            "fork" before Python 3.14, then "forkserver", for which the dataset must be picklable.
        generator: source of the shuffle; None is the default generator.
        prefetch_factor: batches that each worker makes ahead, 2 unless given.
        persistent_workers: keep the workers for the next epoch.
        pin_memory_device: accepted; as pin_memory.
        in_order: whether batches come in the order of the sampler, not as workers finish them.

    Raises:
        ValueError: options that exclude each other.
        RuntimeError: while it is gone over, if a worker dies or takes longer than timeout. What a
            dataset raises in a worker is raised here, with its traceback as the text.

    Warns:
        UserWarning: if there are more workers than cores that this process may use.

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.arange(5), torch.arange(5) % 2)
        >>> for numbers, odd in torch.utils.data.DataLoader(data, batch_size=3):
        ...     print(numbers, odd)
        tensor([0, 1, 2]) tensor([0, 1, 0])
        tensor([3, 4]) tensor([1, 0])
    """

    # Lets programs write DataLoader[Sample] in annotations.
    __class_getitem__ = classmethod(types.GenericAlias)

    _FIXED = (
        "batch_size",
        "batch_sampler",
        "sampler",
        "drop_last",
        "dataset",
        "persistent_workers",
    )
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable[Any] | None = None,
        batch_sampler: Sampler | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
        if is_pipe(dataset):  # which shuffles itself
            from rushlight.utils.data.graph_settings import apply_shuffle_settings

            dataset = apply_shuffle_settings(dataset, shuffle)
            shuffle = None
        is_stream = isinstance(dataset, IterableDataset)
        if is_stream:
            _check_no_order(shuffle=shuffle, sampler=sampler, batch_sampler=batch_sampler)
        _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            sampler = _sampler_of(dataset, shuffle, generator)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate

        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        if isinstance(multiprocessing_context, str):
            from rushlight import multiprocessing

            multiprocessing_context = multiprocessing.get_context(multiprocessing_context)
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = _PREFETCH_FACTOR
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if is_stream else _DatasetKind.Map
        self._IterableDataset_len_called: int | None = None  # what the last call of it gave
        self._iterator: _MultiProcessingDataLoaderIter | None = None
        self.__initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in self._FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized. "
                "Make a new loader."
            )
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

    def _get_iterator(self) -> _BaseDataLoaderIter:
        """An epoch of its own; libraries that keep one for all epochs call this."""
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        from rushlight.utils.data.parallel import _MultiProcessingDataLoaderIter

        last = self._iterator
        processes = last.processes if last is not None and last.processes.close.alive else None
        epoch = _MultiProcessingDataLoaderIter(self, processes)
        if self.persistent_workers:
            self._iterator = epoch
        return epoch

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        samples = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return samples
        return len(BatchSampler(range(samples), self.batch_size, self.drop_last))

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than cores that this process may use."""
        _warn_of_many(self.num_workers)


class _DatasetKind:
    """How a loader takes samples from its dataset: by index, or one after the other."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int,
        dataset: Any,
        auto_collation: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> Fetcher:
        """What makes batches of a dataset, for loaders of libraries; a stream begins at once."""
        is_stream = kind == _DatasetKind.Iterable
        fetcher = Fetcher(dataset, is_stream, auto_collation, drop_last, collate_fn)
        if is_stream:
            fetcher.dataset_iter = iter(dataset)
        return fetcher


class _InfiniteConstantSampler(Sampler):
    """Goes on for ever, for datasets that are not indexed and end when they like."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class _BaseDataLoaderIter:
    """One pass over a loader's dataset: what does not depend on where batches are made."""

    def __init__(self, loader: DataLoader) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._collate_fn = loader.collate_fn
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._persistent_workers = loader.persistent_workers
        self._index_sampler = loader._index_sampler
        self._start_sampler(loader)
        # Drawn in any case: the order that a sampler draws next does not depend on the workers.
        self._base_seed = int(rl.empty((), dtype=rl.int64).random_(generator=loader.generator))
        self._world_size, self._rank = _ranks()
        self._shared_seed = _share(self._base_seed) if is_pipe(self._dataset) else None
        self._pin_memory = loader.pin_memory and _C._cuda_is_available()
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=5,  # the line that asks the loader for an iterator
            )
        self._pin_memory_device = "cuda" if self._pin_memory else None

    def _make_fetcher(self) -> Fetcher:
        return Fetcher(
            self._dataset,
            self._dataset_kind == _DatasetKind.Iterable,
            self._auto_collation,
            self._drop_last,
            self._collate_fn,
            self._shared_seed or 0,
            (self._world_size, self._rank),
        )

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        """Starts an epoch."""
        self._start_sampler(loader)

    def _start_sampler(self, loader: DataLoader) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Self:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    @shown_as("enumerate(DataLoader)#{}.__next__")
    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        length = self._IterableDataset_len_called
        if length is not None and self._num_yielded > length:
            warnings.warn(
                f"DataLoader: Length of IterableDataset {self._dataset} was reported to be "
                f"{length} (when accessing len(dataloader)), but {self._num_yielded} samples have "
                "been fetched. With workers, each of them must yield a part of its own.",
                stacklevel=2,
            )
        return batch


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One pass over a loader's dataset, whose batches are made here."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._fetcher = self._make_fetcher()
        self._fetcher.start()

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        self._fetcher.start()
        super()._reset(loader, first_iter)

    def _next_data(self) -> Any:
        batch = self._fetcher.fetch(self._next_index())
        return pin_memory(batch) if self._pin_memory else batch


def __getattr__(name: str) -> Any:
    if name == "_MultiProcessingDataLoaderIter":  # imported where workers are asked for
        from rushlight.utils.data import parallel

        return parallel._MultiProcessingDataLoaderIter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _ranks() -> tuple[int, int]:
    """How many processes train together, and the number of this one."""
    dist = rl.distributed
    if not (dist.is_available() and dist.is_initialized()):
        return 1, 0
    return dist.get_world_size(), dist.get_rank()


def _share(seed: int) -> int:
    """The seed of the first rank, from which data pipes draw the same numbers on all ranks."""
    if _ranks() == (1, 0):
        return seed
    shared = rl.tensor(seed)
    rl.distributed.broadcast(shared, src=0)
    return int(shared)


def _sharding_worker_init_fn(
    worker_init_fn: Callable[[int], Any] | None, world_size: int, rank_id: int, worker_id: int
) -> None:
    """Gives a worker of a library's loader its part of a data pipe, and calls worker_init_fn."""
    from rushlight.utils.data.graph_settings import apply_sharding

    info = get_worker_info()
    assert info is not None
    parts, part = info.num_workers * world_size, worker_id * world_size + rank_id
    apply_sharding(info.dataset, parts, part)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
    multiprocessing_context: Any,
) -> None:
    if num_workers < 0:
        raise ValueError(
            f"DataLoader: num_workers option should be non-negative, but is {num_workers}; "
            "use num_workers=0 to disable multiprocessing"
        )
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout option should be non-negative, but is {timeout}")
    if num_workers > 0:
        _check_context(multiprocessing_context)
        _warn_of_many(num_workers)
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(
                f"DataLoader: prefetch_factor option should be positive, but is {prefetch_factor}"
            )
        return
    if prefetch_factor is not None:
        raise ValueError(
            "DataLoader: prefetch_factor option could only be specified in multiprocessing; "
            "leave it None with num_workers=0"
        )
    if persistent_workers:
        raise ValueError("DataLoader: persistent_workers option needs num_workers > 0")
    if multiprocessing_context is not None:
        raise ValueError(
            "DataLoader: multiprocessing_context can only be used with multi-process loading "
            "(num_workers > 0), but got num_workers=0"
        )


def _warn_of_many(num_workers: int) -> None:
    cores = len(os.sched_getaffinity(0))
    if num_workers > cores:
        warnings.warn(
            f"This DataLoader will create {num_workers} worker processes in total. Our suggested "
            f"max number of worker in current system is {cores}, which is smaller than what this "
            "DataLoader is going to create. More workers than cores only wait for each other and "
            "take memory; lower num_workers.",
            stacklevel=4,
        )


def _check_context(context: Any) -> None:
    import multiprocessing
    from multiprocessing.context import BaseContext

    methods = multiprocessing.get_all_start_methods()
    if isinstance(context, str) and context not in methods:
        raise ValueError(
            "DataLoader: multiprocessing_context option should specify a valid start method in "
            f"{methods}, but got {context!r}"
        )
    if not (context is None or isinstance(context, str | BaseContext)):
        raise TypeError(
            "DataLoader: multiprocessing_context option should be a valid context object or a "
            f"string specifying the start method, but got {context!r}"
        )


def _check_batching(
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("DataLoader: sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "DataLoader: batch_sampler option is mutually exclusive with batch_size, "
                "shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "DataLoader: batch_size=None option disables auto-batching and is mutually "
            "exclusive with drop_last"
        )


def _sampler_of(dataset: Any, shuffle: bool | None, generator: Generator | None) -> Sampler:
    if isinstance(dataset, IterableDataset):
        return _InfiniteConstantSampler()
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


def _check_no_order(**options: Any) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}. The dataset itself decides the order."
            )
