"""A sampler that leaves out the beginning of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import rushlight as rl
from rushlight.utils.data import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler[Any]):
    """Gives each process its part of what comes after an index of a dataset, in random order.

    Args:
        dataset: what is sampled from.
        num_replicas, rank: of processes; those of the job by default.
        start_index: the first index that is sampled.

    Raises:
        ValueError: if start_index is not in the dataset.

    Example:
        >>> from rushlight.distributed.elastic.utils.data import ElasticDistributedSampler
        >>> sampler = ElasticDistributedSampler(range(10), num_replicas=2, rank=0, start_index=4)
        >>> len(sampler)
        3
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        start_index: int = 0,
    ) -> None:
        super().__init__(dataset, num_replicas, rank)
        if not 0 <= start_index < len(dataset):
            raise ValueError(
                f"Start index {start_index} should be less than dataset size {len(dataset)}"
            )
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        generator = rl.Generator().manual_seed(self.epoch)
        size = len(self.dataset) - self.start_index
        left: list[int] = (rl.randperm(size, generator=generator) + self.start_index).tolist()
        left += (left * math.ceil(self.total_size / len(left)))[: self.total_size - len(left)]
        return iter(left[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
