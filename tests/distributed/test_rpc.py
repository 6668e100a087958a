"""Calls of functions in other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from distributed import rpc_checks as checks
from distributed.checks import raised
from distributed.worlds import run_world

from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.distributed import rpc
from rushlight.distributed.rpc._agent import Agent


def join(rank: int, folder: Path, size: int, **options: Any) -> None:
    settings = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{folder}-rpc", **options)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=settings)


def check_all(rank: int, folder: Path) -> None:
    for check in checks.ALL:
        join(rank, folder / check.__name__, 3)
        check(rank)
        rpc.shutdown()
        assert not rpc._is_current_rpc_agent_set()
    assert "has not been initialized" in raised(RuntimeError, rpc.rpc_sync, "worker0", checks.who)


def test_three_processes_call_each_other(tmp_path: Path) -> None:
    run_world(3, check_all, tmp_path)


class StoreOfOneWhoLeaves:
    """Another process writes its key and is gone, all just after a look at the key."""

    def __init__(self, lost: dict[int, str]) -> None:
        self.lost, self.looks = lost, 0

    def check(self, keys: list[str]) -> bool:
        self.looks += 1
        self.lost[1] = "worker1 has ended"
        return self.looks > 1

    def get(self, key: str) -> bytes:
        return b"3"


def test_what_a_process_wrote_before_it_left_is_read() -> None:
    agent: Any = Agent.__new__(Agent)
    agent._lost = {}
    agent._store = StoreOfOneWhoLeaves(agent._lost)
    assert agent._read_key("round/0/1", 1, time.monotonic() + 9) == b"3"


def leave_work_behind(rank: int, folder: Path) -> None:
    """shutdown waits for calls that nobody waits for, and for those that they make."""
    join(rank, folder, 2)
    if rank == 0:
        rpc.rpc_async("worker1", call_back, (3,))
    rpc.shutdown()
    assert checks.kept == ["worker0"] * (4 if rank == 0 else 0)


def call_back(times: int) -> None:
    rpc.rpc_async("worker0", note, ("worker0", times))


def note(name: str, times: int) -> None:
    time.sleep(0.05)
    checks.kept.append(name)
    if times:
        rpc.rpc_async("worker1", call_back, (times - 1,))


def test_shutdown_waits_for_all_calls(tmp_path: Path) -> None:
    run_world(2, leave_work_behind, tmp_path)


def die(rank: int, folder: Path) -> None:
    join(rank, folder, 3)
    dist.barrier()
    if rank == 1:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    text = raised(dist.DistNetworkError, rpc.rpc_sync, "worker1", time.sleep, (20,))
    assert "worker1 has ended" in text
    raised(dist.DistNetworkError, rpc.rpc_sync, "worker1", checks.who)
    raised(dist.DistNetworkError, rpc.remote("worker1", checks.who).to_here)
    assert rpc.rpc_sync(f"worker{2 - rank}", checks.who) == f"worker{2 - rank}"
    dist.barrier(dist.new_group([0, 2], use_local_synchronization=True))
    assert "worker1 has ended" in raised(dist.DistNetworkError, rpc.shutdown)
    assert time.monotonic() - start < 10


def test_a_killed_process_ends_the_calls_of_the_others(tmp_path: Path) -> None:
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with signal SIGKILL"):
        run_world(3, die, tmp_path)


def take_the_same_name(rank: int, folder: Path) -> None:
    settings = rpc.TensorPipeRpcBackendOptions(
        init_method=f"file://{folder}/rpc", _transports=["uv"]
    )
    text = raised(
        RuntimeError, rpc.init_rpc, "twin", rank=rank, world_size=2, rpc_backend_options=settings
    )
    assert "ranks 0 and 1 both are 'twin'" in text


def test_processes_have_different_names(tmp_path: Path) -> None:
    run_world(2, take_the_same_name, tmp_path)


def test_devices_are_noted() -> None:
    options = rpc.TensorPipeRpcBackendOptions()
    options.set_device_map("worker1", {0: 1})
    options.set_device_map("worker2", {0: 0})
    options.set_devices([0])
    assert isinstance(options, rpc.RpcBackendOptions) and options.rpc_timeout == 60
    assert options.device_maps == {"worker1": {0: 1}, "worker2": {0: 0}} and options.devices == [0]


def test_arguments_of_init_rpc_are_checked() -> None:
    assert rpc.is_available() and not rpc._is_current_rpc_agent_set()
    with pytest.raises(TypeError, match="must be a member of BackendType"):
        rpc.init_rpc("name", "tensorpipe")
    with pytest.raises(TypeError, match="not TensorPipeRpcBackendOptions"):
        rpc.init_rpc("name", rpc_backend_options=rpc.RpcBackendOptions(5.0, "file://meeting"))
    with pytest.raises(TypeError, match="It is a text"):
        rpc.init_rpc("")
    with pytest.raises(RuntimeError, match="Call torch.distributed.rpc.init_rpc first"):
        rpc.shutdown()
