"""A sampler that gives each of several processes its own part of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

import rushlight as rl
from rushlight.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every num_replicas-th index of an order that is the same in all processes.

    All parts have the same length. Call set_epoch before each epoch, or the order stays the same.

    Args:
        dataset: what has the length.
        num_replicas: the number of processes; that of the job by default.
        rank: the number of this one, 0, 1, ...; its rank in the job by default.
        shuffle: whether the order is random, else that of the dataset.
        seed: of the order; the same in all processes.
        drop_last: leave out indices at the end to make the parts equal; else the first ones are
            repeated.

    Raises:
        ValueError: unless 0 <= rank < num_replicas, and for the defaults without a job.

    Example:
        >>> sampler = torch.utils.data.DistributedSampler(range(5), 2, 1, shuffle=False)
        >>> list(sampler)
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from rushlight.distributed import get_rank, get_world_size

            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedSampler: Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = list(range(size))
        if self.shuffle:
            generator = rl.Generator().manual_seed(self.seed + self.epoch)
            order = rl.randperm(size, generator=generator).tolist()
        if size:
            order = (order * math.ceil(self.total_size / size))[: self.total_size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets which epoch comes, and so its order if it is random."""
        self.epoch = epoch
