"""Every collective in worlds of several sizes, over both transports."""

from __future__ import annotations

import pytest
from distributed.checks import everything, raised
from distributed.worlds import TRANSPORTS, run_world

import rushlight as torch
import rushlight.distributed as dist


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_collective_gives_what_numpy_says(size: int, transport: str) -> None:
    run_world(size, everything if size > 1 else alone, transport=transport)


def alone(rank: int) -> None:
    x = torch.arange(3.0)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    out = [torch.empty(3)]
    dist.all_gather(out, x)
    assert out[0].tolist() == x.tolist() == [0, 1, 2]
    dist.barrier()
    raised(ValueError, dist.send, x, 0)
