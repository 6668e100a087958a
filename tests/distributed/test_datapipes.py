"""Data pipes in loaders of several ranks."""

from __future__ import annotations

from distributed.rank_pool import RankPool

import rushlight as torch
from rushlight import distributed as dist
from rushlight.utils.data import DataLoader
from rushlight.utils.data.datapipes.iter import IterableWrapper


def read_part() -> list[int]:
    torch.manual_seed(dist.get_rank())
    pipe = IterableWrapper(range(8)).shuffle().sharding_filter()
    return [int(x) for x in DataLoader(pipe, batch_size=None)]


def test_ranks_share_a_pipe(two_ranks: RankPool) -> None:
    first, second = two_ranks.run(read_part)
    assert sorted(first + second) == list(range(8)) and len(first) == 4
