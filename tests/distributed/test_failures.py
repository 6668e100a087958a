"""What goes wrong between ranks is told soon, on every rank, and hangs nobody."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from distributed.checks import raised
from distributed.worlds import TRANSPORTS, run_world

import rushlight as torch
import rushlight.distributed as dist
import rushlight.multiprocessing as mp

both = pytest.mark.parametrize("transport", TRANSPORTS)


def die(rank: int) -> None:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    message = raised(dist.DistNetworkError, dist.all_reduce, torch.ones(3))
    assert "rank 1 has ended" in message
    assert time.monotonic() - start < 5
    raised(dist.DistError, dist.all_reduce, torch.ones(3))


@both
def test_a_killed_rank_ends_the_waiting_of_the_others(transport: str) -> None:
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with signal SIGKILL"):
        run_world(3, die, transport=transport)


def die_before_sending(rank: int) -> None:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    raised(dist.DistNetworkError, dist.recv, torch.ones(3), 1)


@both
def test_a_killed_sender_ends_the_waiting_for_its_message(transport: str) -> None:
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        run_world(2, die_before_sending, transport=transport)


def reduce_twice() -> None:
    for _ in range(2):
        dist.all_reduce(torch.ones(2))


def die_while_sending(rank: int) -> None:
    """The receiver takes less than all before the sender ends."""
    large = torch.zeros(30_000_000)
    if rank == 0:
        work = dist.isend(large, 1)
        assert work is not None
        dist.barrier()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()
    time.sleep(0.5)
    raised(dist.DistNetworkError, dist.recv, large, 0)


@both
def test_a_sender_killed_within_a_message_is_told(transport: str) -> None:
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        run_world(2, die_while_sending, transport=transport)


def be_late(rank: int) -> None:
    if rank == 1:
        time.sleep(1)
        message = raised(dist.DistError, reduce_twice)  # the other's first part may have come
        assert "rank 0 gave up" in message, message
    else:
        message = raised(dist.DistBackendError, reduce_twice)
        assert "timed out after 0.5 s" in message, message


@both
def test_a_late_rank_is_named_and_told(transport: str) -> None:
    run_world(2, be_late, transport=transport, timeout=0.5)


def differ(rank: int, keeps_going: bool) -> None:
    cases: list[tuple[Any, str]] = [
        (lambda: dist.all_reduce(torch.ones(2 + rank)), "2 elements of torch.float32"),
        (lambda: dist.all_reduce(torch.ones(2, dtype=(torch.int8, torch.int16)[rank])), "int16"),
        (
            lambda: dist.all_reduce(torch.ones(2), (dist.ReduceOp.SUM, dist.ReduceOp.MAX)[rank]),
            "ReduceOp.MAX",
        ),
        (lambda: dist.broadcast(torch.ones(2), rank), "root 1"),
        (
            lambda: dist.all_reduce(torch.ones(2)) if rank else dist.broadcast(torch.ones(2), 0),
            "rank 0 calls broadcast",
        ),
        (
            lambda: dist.all_to_all([torch.ones(3)] * 2, [torch.ones(3 + rank)] * 2),
            "rank 1 gives rank 0 4 elements, but that expects 3",
        ),
    ]
    for call, part in cases if keeps_going else cases[:1]:
        message = raised(dist.DistBackendError, call)
        assert part in message, message
    if keeps_going:
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [2, 2]


def test_calls_that_differ_raise_on_all_ranks_and_the_group_goes_on() -> None:
    run_world(2, differ, True)


def test_calls_that_differ_raise_over_the_network_too() -> None:
    run_world(2, differ, False, transport="tcp")


def leave_work(rank: int) -> None:
    if rank == 0:
        dist.all_reduce(torch.ones(2), async_op=True)
        raise SystemExit(0)
    time.sleep(1)
    raised(dist.DistError, dist.barrier)


@both
def test_a_rank_may_end_with_work_begun(transport: str) -> None:
    started, _store = run_world(2, leave_work, transport=transport, join=False)
    started.processes[0].join()
    assert started.processes[0].exitcode == 0 and started.processes[1].is_alive()
    while not started.join():
        pass


def interrupt(rank: int) -> None:
    dist.barrier()
    if rank == 1:
        time.sleep(0.6)
        raised(dist.DistError, reduce_twice)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    raised(KeyboardInterrupt, dist.all_reduce, torch.ones(2))
    assert time.monotonic() - start < 3


@both
def test_waiting_can_be_interrupted(transport: str) -> None:
    run_world(2, interrupt, transport=transport)


def fork_a_child(rank: int) -> None:
    """A child that lives on must not hide the end of its parent."""
    dist.all_reduce(torch.ones(2))
    if rank == 1:
        if os.fork() == 0:
            time.sleep(1.5)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    raised(dist.DistNetworkError, dist.all_reduce, torch.ones(2))
    assert time.monotonic() - start < 1.2


@both
def test_a_forked_child_does_not_stand_in_for_its_parent(transport: str) -> None:
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        run_world(2, fork_a_child, transport=transport)


def fork_a_child_that_exits(rank: int) -> None:
    dist.all_reduce(torch.ones(2))
    if rank == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)
        child = os.fork()
        if child == 0:
            atexit._run_exitfuncs()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert work is not None
        work.wait()
    else:
        time.sleep(0.5)
        dist.all_reduce(torch.ones(2))
    dist.barrier()


@both
def test_a_forked_child_that_exits_leaves_the_group_alone(transport: str) -> None:
    run_world(2, fork_a_child_that_exits, transport=transport)


def miss_a_barrier(rank: int) -> None:
    short = timedelta(seconds=0.3)
    if rank == 0:
        message = raised(dist.DistBackendError, dist.monitored_barrier, timeout=short)
        assert message == "Rank 1 failed to pass monitoredBarrier in 300 ms"
        message = raised(
            dist.DistBackendError, dist.monitored_barrier, timeout=short, wait_all_ranks=True
        )
        assert message == "Ranks 1, 2 failed to pass monitoredBarrier in 300 ms"
    dist.barrier()


def test_monitored_barrier_names_who_is_missing() -> None:
    run_world(3, miss_a_barrier)


@pytest.fixture
def world_of_one() -> Any:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("world_of_one")
def test_arguments_are_checked() -> None:
    x = torch.ones(2)
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(TypeError, match=r"parameter `tensor` of type torch.Tensor"):
        dist.all_reduce([1.0])
    with pytest.raises(TypeError, match=r"List\[torch.Tensor\]"):
        dist.all_gather(x, x)
    with pytest.raises(TypeError, match="ReduceOp"):
        dist.all_reduce(x, "sum")
    with pytest.raises(TypeError, match="meta"):
        dist.all_reduce(torch.empty(2, device="meta"))
    with pytest.raises(TypeError, match="sparse"):
        dist.broadcast(torch.eye(2).to_sparse(), 0)
    with pytest.raises(RuntimeError, match="rank 1 does not exist"):
        dist.broadcast(x, 1)
    with pytest.raises(ValueError, match="Must specify"):
        dist.broadcast(x)
    with pytest.raises(ValueError, match="Can't specify both"):
        dist.broadcast(x, 0, group_src=0)
    with pytest.raises(ValueError, match="one for each of the 1 ranks"):
        dist.all_gather([x, x], x)
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_gather([x.int()], x)
    with pytest.raises(ValueError, match="as many elements"):
        dist.all_gather([torch.ones(3)], x)
    with pytest.raises(ValueError, match="1 times as many"):
        dist.all_gather_into_tensor(torch.ones(3), x)
    with pytest.raises(ValueError, match="must be specified on destination"):
        dist.gather(x)
    with pytest.raises(ValueError, match="must be specified on source"):
        dist.scatter(x)
    with pytest.raises(ValueError, match="whose sum is 2"):
        dist.all_to_all_single(x, x, [1], [2])
    with pytest.raises(ValueError, match=r"ReduceOp.MAX on complex"):
        dist.all_reduce(x.to(torch.complex64), dist.ReduceOp.MAX)
    with pytest.raises(RuntimeError, match="non-integral"):
        dist.all_reduce(x, dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="AVG"):
        dist.all_reduce(x.int(), dist.ReduceOp.AVG)
    with pytest.raises(ValueError, match="P2POp"):
        dist.batch_isend_irecv([])
    with pytest.raises(ValueError, match="isend"):
        dist.P2POp(dist.send, x, 0)
    with pytest.raises(TypeError, match="timedelta"):
        dist.barrier(timeout=3)
    outside: Any = dist.GroupMember.NON_GROUP_MEMBER
    with pytest.warns(UserWarning, match="does not belong to the given group"):
        dist.all_reduce(x, group=outside)
    leaf = torch.ones(2, requires_grad=True)
    dist.all_reduce(leaf)
    assert leaf.is_leaf


def test_starting_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="world size parameter missing"):
        dist.init_process_group("gloo", "tcp://127.0.0.1:1?rank=0")
    with pytest.raises(RuntimeError, match="No rendezvous handler for mail://"):
        dist.init_process_group("gloo", "mail://someone", rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="'nccl' is not available"):
        dist.init_process_group("nccl")
    with pytest.raises(ValueError, match="unknown backend 'glue'"):
        dist.init_process_group("glue")
    with pytest.raises(AssertionError, match="world_size must be positive"):
        dist.init_process_group("gloo", store=dist.HashStore())
    with pytest.raises(AssertionError, match="rank must be"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=2, world_size=2)
    with pytest.raises(AssertionError, match="both init_method and store"):
        dist.init_process_group("gloo", "env://", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(dist.DistStoreError, match="host/1"):
        dist.init_process_group(
            "gloo", store=dist.HashStore(), rank=0, world_size=2, timeout=timedelta(seconds=0.2)
        )
    with pytest.raises(dist.DistNetworkError, match="could not be reached"):
        dist.init_process_group(
            "gloo", "tcp://127.0.0.1:9", rank=1, world_size=2, timeout=timedelta(seconds=0.2)
        )
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.all_reduce(torch.ones(2))
    assert not dist.is_initialized() and dist.is_available()


def test_there_must_be_a_group_to_leave() -> None:
    with pytest.raises(AssertionError, match="there is no group"):
        dist.destroy_process_group()


def test_debug_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() == dist.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(ValueError, match="must be one of OFF, INFO, DETAIL"):
        dist.set_debug_level_from_env()
    dist.set_debug_level(dist.DebugLevel.OFF)
    assert dist.get_debug_level() == dist.DebugLevel.OFF


def test_a_job_may_start_again(tmp_path: Any) -> None:
    for _ in range(2):
        url = f"file://{tmp_path}/meeting"
        dist.init_process_group("cpu:gloo,cuda:nccl", url, rank=0, world_size=1)
        assert dist.get_backend() == "gloo" and dist.get_pg_count() == 1
        assert dist.get_backend_config() == "cpu:gloo,cuda:nccl"
        dist.barrier()
        dist.destroy_process_group()
