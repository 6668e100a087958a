"""What each rank of a group is told when something goes wrong on its GPU over NCCL."""

from __future__ import annotations

import os
import time
import warnings
from datetime import timedelta
from typing import Any

from cuda.nccl_checks import place, raised, same

import rushlight as torch
import rushlight.distributed
from rushlight.distributed import ReduceOp

dist: Any = rushlight.distributed  # functions return None to those outside a group


def mistakes() -> None:
    gpu = place()[2]
    x = torch.ones(3, device=gpu)
    assert "BAND with NCCL" in raised(ValueError, dist.all_reduce, x.int(), ReduceOp.BAND)
    assert "int16" in raised(TypeError, dist.all_reduce, x.to(torch.int16))
    raised(ValueError, dist.all_reduce, torch.ones(2, dtype=torch.bool, device=gpu), ReduceOp.AVG)
    raised(ValueError, dist.all_reduce, x.to(torch.complex64), ReduceOp.MAX)
    message = raised(ValueError, dist.all_gather, [x, torch.ones(3), x], x)
    assert f"on cpu, {gpu}" in message
    dist.all_reduce(x)  # nothing is broken
    same(x, torch.full((3,), 3.0))
    # All ranks on one GPU, which NCCL cannot do.
    one = dist.new_group()
    message = raised(
        dist.DistBackendError, dist.all_reduce, torch.ones(2, device="cuda:0"), group=one
    )
    assert "Duplicate GPU detected" in message and "ncclCommInitRank" in message


def child_of_fork() -> None:
    _, _, gpu = place()
    x = torch.ones(2, device=gpu)
    dist.all_reduce(x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            dist.all_reduce(x)
        except RuntimeError as error:
            code = 0 if "forked" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def differing() -> None:
    rank, _, gpu = place()
    group = dist.new_group()
    x = torch.ones(3 + (rank == 1), device=gpu)
    message = raised(dist.DistBackendError, dist.all_reduce, x, group=group)
    assert "all_reduce: NCCL error: invalid usage" in message and "elements" in message
    assert message == raised(dist.DistBackendError, dist.all_reduce, x, group=group)  # stays so


def late() -> None:
    """One rank does not come: to the first collective, then to another one."""
    rank, _, gpu = place()
    x = torch.ones(2, device=gpu)
    for is_first in (True, False):
        group = dist.new_group()
        if not is_first:
            dist.all_reduce(x, group=group)
        dist.monitored_barrier()
        group.set_timeout(timedelta(seconds=0.4))
        if rank != 1:
            message = raised(dist.DistBackendError, dist.all_reduce, x, group=group)
            expected = (
                "after 0.4 s waiting for ranks 1" if is_first else "all_reduce: timed out after"
            )
            assert expected in message, message
        dist.monitored_barrier()


def lacking() -> None:
    """One rank has no NCCL: it says so, and all raise."""
    rank, _, gpu = place()
    group = dist.new_group()
    core: Any = torch._C
    before = core._nccl_problem
    if rank == 1:
        core._nccl_problem = lambda: "it was removed."
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = torch.ones(2, device=gpu)
            message = raised(dist.DistError, dist.all_reduce, x, group=group)
        assert "rank 1 has no NCCL, but this one has: it was removed" in message, message
        assert [str(each.message)[:39] for each in caught] == (
            ["tensors on a GPU go through the memory "] if rank == 1 else []
        )
    finally:
        core._nccl_problem = before


class Never:
    """The end of work that never ends."""

    def query(self) -> bool:
        return False


def given_up_work_is_told() -> None:
    """Work that is late on the GPU is given up, and what waits for the GPU then raises, once."""
    rank, _, gpu = place()
    group = dist.new_group()
    x = torch.ones(2, device=gpu)
    work = dist.all_reduce(x, group=group, async_op=True)
    clique = group.cliques.whole(rank)
    dist.monitored_barrier()
    group.set_timeout(timedelta(seconds=0.2))
    clique._pending.append(("all_reduce", time.monotonic(), Never()))
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        torch.empty(3, device=gpu)
    while clique.error is None:
        time.sleep(0.01)
    del pool  # waits, too, but cannot raise
    assert "all_reduce: timed out after 0.2 s" in raised(RuntimeError, x.cpu)
    assert x.tolist() == [3.0, 3.0]
    assert not work.is_success() and isinstance(work.exception(), dist.DistBackendError)
    raised(dist.DistBackendError, work.wait)
    raised(dist.DistBackendError, dist.all_reduce, x, group=group)
    group = dist.new_group()
    dist.all_reduce(x, group=group)
    group.abort()
    assert "destroyed or aborted" in raised(dist.DistBackendError, dist.all_reduce, x, group=group)


def peer_ends() -> None:
    rank, _, gpu = place()
    x = torch.ones(2, device=gpu)
    group, unused = dist.new_group(), dist.new_group()
    dist.all_reduce(x)
    dist.all_reduce(x, group=group)
    if rank == 2:
        os._exit(0)
    clique = group.cliques.whole(rank)
    clique._pending.append(("all_reduce", time.monotonic(), Never()))
    message = raised(dist.DistError, dist.all_reduce, x)
    assert "exited: rank 2" in message or "rank 2 has ended" in message, message
    while clique.error is None:
        time.sleep(0.01)
    assert clique.error == "all_reduce: rank 2 has ended.", clique.error
    message = raised(dist.DistError, dist.all_reduce, x, group=unused)
    assert message == "rank 2 has ended.", message
