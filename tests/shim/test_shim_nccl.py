"""The pretended NCCL refuses what the real one forbids, also where that goes wrong silently."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import Structure, byref, c_char, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shim.fake_driver import Driver, fails

BAD_ARGUMENT, BAD_USAGE = 4, 5
FLOAT, SUM = 7, 0


class UniqueId(Structure):
    _fields_ = (("bytes", c_char * 128),)


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Driver()


@pytest.fixture
def comm(cuda: Driver, tmp_path: Path) -> Iterator[c_void_p]:
    """A communicator of this process alone."""
    name, made = UniqueId(), c_void_p()
    cuda("ncclGetUniqueId", byref(name))
    cuda("ncclCommInitRank", byref(made), 1, name, 0)
    yield made
    cuda("ncclCommDestroy", made)
    assert not list(tmp_path.iterdir())  # nothing stays behind


def all_reduce(comm: c_void_p, data: int, result: int, count: int = 2, **changed: Any) -> Any:
    given = {"type": FLOAT, "op": SUM} | changed
    return (
        "ncclAllReduce", c_void_p(data), c_void_p(result), c_size_t(count), given["type"],
        given["op"], comm, None,
    )  # fmt: skip


def message(name: str, comm: c_void_p, data: int, peer: int = 0) -> Any:
    return name, c_void_p(data), c_size_t(2), FLOAT, peer, comm, None


def test_it_reduces_in_place_and_apart(cuda: Driver, comm: c_void_p) -> None:
    data = cuda.to_device(np.array([1.0, 2.0], np.float32))
    result = cuda.allocate(8)
    cuda(*all_reduce(comm, data, result))
    cuda(*all_reduce(comm, data, data))
    assert cuda.to_host(result, 2, np.float32).tolist() == [1, 2]


def test_arguments_are_checked(cuda: Driver, comm: c_void_p) -> None:
    data = cuda.to_device(np.zeros(4, np.float32))
    wrong = [
        all_reduce(comm, data, data + 4),  # overlaps
        all_reduce(comm, data, data, 5),  # beyond the end
        all_reduce(comm, data + 2, data + 2, 1),  # misaligned
        all_reduce(comm, data, data, type=99),
        all_reduce(comm, data, data, op=5),
        all_reduce(c_void_p(data), data, data),
        message("ncclSend", comm, data, 1),
    ]
    for call in wrong:
        with fails(BAD_ARGUMENT):
            cuda(*call)


def test_a_group_does_its_calls_together(cuda: Driver, comm: c_void_p) -> None:
    data = cuda.to_device(np.array([1.0, 2.0], np.float32))
    result = cuda.to_device(np.zeros(2, np.float32))
    cuda("ncclGroupStart")
    cuda(*message("ncclRecv", comm, result))  # before it is sent
    cuda("ncclGroupStart")
    cuda(*message("ncclSend", comm, data))
    cuda("ncclGroupEnd")
    assert cuda.to_host(result, 2, np.float32).tolist() == [0, 0]
    cuda("ncclGroupEnd")
    assert cuda.to_host(result, 2, np.float32).tolist() == [1, 2]
    with fails(BAD_USAGE):
        cuda("ncclGroupEnd")
    cuda("ncclGroupStart")
    with fails(BAD_ARGUMENT):
        cuda(*all_reduce(comm, data, data, type=99))
    with fails(BAD_ARGUMENT):
        cuda("ncclGroupEnd")


def test_an_ended_communicator_is_refused(cuda: Driver) -> None:
    name, made, error = UniqueId(), c_void_p(), c_int()
    cuda("ncclGetUniqueId", byref(name))
    cuda("ncclCommInitRank", byref(made), 1, name, 0)
    cuda("ncclCommGetAsyncError", made, byref(error))
    cuda("ncclCommAbort", made)
    data = cuda.to_device(np.zeros(2, np.float32))
    calls: list[Any] = [all_reduce(made, data, data), ("ncclCommDestroy", made)]
    for call in calls:
        with fails(BAD_ARGUMENT):
            cuda(*call)
