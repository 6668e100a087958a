"""What a process knows of itself as a worker of a loader."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

__all__ = ["WorkerInfo", "get_worker_info"]


class WorkerInfo(NamedTuple):
    """Which worker of a loader a process is.

    Args:
        id: its number, 0, 1, ...
        num_workers: how many there are.
        seed: of this worker's random numbers.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """Returns which worker of a DataLoader this process is, None elsewhere.

    An IterableDataset asks, so that each worker gives other samples.

    Example:
        >>> class Numbers(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = torch.utils.data.get_worker_info()
        ...         return iter(range(info.id, 6, info.num_workers) if info else range(6))
        >>> options = {"num_workers": 2, "multiprocessing_context": "fork"}
        >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Numbers(), 2, **options)]
        [[0, 2], [1, 3], [4], [5]]
    """
    worker = sys.modules.get("rushlight.utils.data._utils.worker")  # which workers have imported
    return worker and worker._worker_info
