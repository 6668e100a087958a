"""Makes one batch of what the sampler chose, in whichever process that happens."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.dataset import get_collated, get_samples, is_pipe


class Fetcher:
    """Takes samples from a dataset and makes batches of them.

    Args:
        dataset: the dataset.
        is_stream: whether its samples come one after the other, not by index.
        is_batched: whether it is asked for lists of samples.
        drop_last: whether a stream's last batch is left out if it is smaller.
        collate: makes a batch of a list of samples, or what is returned of a single one.
        seed: what the order of a data pipe follows from, the same in all processes.
        ranks: how many processes have such a loader, and the number of this one.
    """

    def __init__(
        self,
        dataset: Any,
        is_stream: bool,
        is_batched: bool,
        drop_last: bool,
        collate: Callable[[Any], Any],
        seed: int = 0,
        ranks: tuple[int, int] = (1, 0),
    ) -> None:
        self.dataset = dataset
        self.is_stream = is_stream
        self._is_batched = is_batched
        self._drop_last = drop_last
        self._collate = collate
        self.dataset_iter: Iterator[Any] | None = None
        self.ended = False  # whether a stream gave less than it was asked for
        self._seed = seed  # of the next epoch
        self._ranks = ranks
        self._workers = 1, 0

    def be_worker(self, num_workers: int, worker: int) -> None:
        """Says that several workers of the loader read the dataset, and which one this is."""
        self._workers = num_workers, worker

    def restart(self) -> None:
        """Begins an epoch: a stream is read from its start, which the first fetch asks for."""
        self.dataset_iter, self.ended = None, False

    def start(self) -> None:
        """Asks for the start of a stream now."""
        if not self.is_stream:
            return
        if is_pipe(self.dataset):
            (world, rank), (workers, worker) = self._ranks, self._workers
            self.dataset._start_epoch(self._seed, world * workers, worker * world + rank)
            self._seed += 1
        self.dataset_iter, self.ended = iter(self.dataset), False

    def fetch(self, index: Any) -> Any:
        """Returns the batch for an index, or for the list of them.

        Raises:
            StopIteration: at the end of a stream.
        """
        if self.is_stream:
            return self._collate(self._read(index))
        if not self._is_batched:
            return self._collate(self.dataset[index])
        if self._collate is default_collate:
            batch = get_collated(self.dataset, index)
            if batch is not None:
                return batch
        return self._collate(get_samples(self.dataset, index))

    def _read(self, index: Any) -> Any:
        if self.dataset_iter is None:
            self.start()
        assert self.dataset_iter is not None
        if self.ended:
            raise StopIteration
        if not self._is_batched:
            return next(self.dataset_iter)
        # By next alone: to ask such a stream for an iterator again may start it anew.
        samples = list(map(next, itertools.repeat(self.dataset_iter, len(index))))
        self.ended = len(samples) < len(index)
        if not samples or (self._drop_last and len(samples) < len(index)):
            raise StopIteration
        return samples


_BaseDatasetFetcher = Fetcher  # what loaders of libraries call it
