"""One module on several GPUs or in several processes, each of which has a part of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _later
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter

if TYPE_CHECKING:
    from rushlight.nn.parallel.distributed import DistributedDataParallel

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


__getattr__ = _later.imports(__name__, ("distributed",), {"distributed": "DistributedDataParallel"})
