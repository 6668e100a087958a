"""What the processes of a job check that call functions in each other."""

from __future__ import annotations

import gc
import pickle
import threading
import time
from typing import Any

import numpy as np
from distributed.checks import raised

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed import rpc
from rushlight.distributed.rpc import _rref
from rushlight.futures import Future, wait_all


class Misfit(Exception):
    """Cannot be made of a text alone."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)


def divide(x: Any, y: Any = 1) -> Any:
    return x / y


def same(x: Any) -> Any:
    return x


def misfit() -> None:
    raise Misfit(1, 2)


def local_error() -> None:
    class LocalError(ValueError):
        pass

    raise LocalError("nobody else knows this class")


def leave_python() -> None:
    raise SystemExit(3)


def not_picklable() -> Any:
    return threading.Lock()


def who() -> str:
    return rpc.get_worker_info().name


def through(names: list[str]) -> list[str]:
    """Calls the next process from this one, and so on."""
    rest = rpc.rpc_sync(names[0], through, (names[1:],)) if names else []
    return [who(), *rest]


def slow(event: str) -> str:
    time.sleep(0.5)
    return event


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.count = start

    def add(self, amount: int = 1) -> int:
        self.count += amount
        return self.count

    def fail(self) -> None:
        raise KeyError("fail")

    @rpc.functions.async_execution
    def later(self) -> Future:
        return rpc.rpc_async("worker0", divide, (self.count, 2))


def read(rref: Any) -> Any:
    return rref.to_here().count, rref.is_owner(), rref.owner_name()


kept: list[Any] = []


def keep(rref: Any) -> None:
    kept.append(rref)


def let_go() -> None:
    kept.clear()
    gc.collect()


def hand_back() -> Any:
    return kept[0]


def values() -> int:
    return len(_rref._values)


@rpc.functions.async_execution
def half_of(other: str, x: float) -> Future:
    return rpc.rpc_async(other, divide, (x, 2)).then(lambda done: done.value())


@rpc.functions.async_execution
def no_future() -> Any:
    return 3


def calls(rank: int) -> None:
    size = dist.get_world_size()
    me, other = f"worker{rank}", f"worker{(rank + 1) % size}"
    assert rpc.get_worker_info() == rpc.WorkerInfo(me, rank)
    info = rpc.get_worker_info(other)
    assert str(info) == f"WorkerInfo(id={info.id}, name={other})"
    assert pickle.loads(pickle.dumps(info)) == info
    for to in (other, info, info.id, me):  # itself, too
        assert rpc.rpc_sync(to, divide, (6,), {"y": 2}) == 3
    x = torch.randn(700, 500)
    back = rpc.rpc_sync(other, torch.add, (x, 1))
    assert torch.equal(back, x + 1)
    mine = rpc.rpc_sync(me, torch.Tensor.view, (x, -1))
    assert mine.data_ptr() != x.data_ptr()  # a copy, wherever it goes
    for value in (
        x.t(),
        x.to(torch.bfloat16),
        torch.view_as_complex(x.view(350, 500, 2)).conj(),
        torch.empty(0, 3),
        torch.tensor(True),
        torch.nn.Parameter(x[0]),
        torch.eye(3).to_sparse(),
        x[0].clone().requires_grad_(),
    ):
        got = rpc.rpc_sync(other, same, (value,))
        torch.testing.assert_close(got, value)
        assert type(got) is type(value) and got.requires_grad == value.requires_grad
    assert rpc.rpc_sync(other, same, (np.arange(5.0),)).tolist() == [0, 1, 2, 3, 4]
    futures = [rpc.rpc_async(other, divide, (i, 2)) for i in range(100)]
    assert wait_all(futures) == [i / 2 for i in range(100)]
    doubled = rpc.rpc_async(other, who).then(lambda done: rpc.rpc_sync(other, who) + done.value())
    assert doubled.wait() == other + other  # a callback may call, too
    names = [f"worker{(rank + i) % size}" for i in range(1, 2 * size)]
    assert rpc.rpc_sync(me, through, (names,)) == [me, *names]
    assert rpc.rpc_sync(other, half_of, (me, 3)) == 1.5


def errors(rank: int) -> None:
    other = f"worker{(rank + 1) % dist.get_world_size()}"
    text = raised(ZeroDivisionError, rpc.rpc_sync, other, divide, (1, 0))
    assert f"name={other}" in text and "in divide" in text and "return x / y" in text
    assert "Misfit(1, 2)" in raised(RuntimeError, rpc.rpc_sync, other, misfit)
    assert "nobody else knows" in raised(RuntimeError, rpc.rpc_sync, other, local_error)
    assert "SystemExit(3)" in raised(RuntimeError, rpc.rpc_sync, other, leave_python)
    assert "lock" in raised(TypeError, rpc.rpc_sync, other, not_picklable)
    assert "add_done_callback" in raised(AttributeError, rpc.rpc_sync, other, no_future)
    misfits = (AttributeError, pickle.PicklingError)  # the second since Python 3.14
    assert "lambda" in raised(misfits, rpc.rpc_sync, other, lambda: 1)
    assert "There are worker0, worker1" in raised(RuntimeError, rpc.rpc_sync, "nobody", who)
    raised(ValueError, rpc.rpc_sync, 1.5, who)
    assert "callable" in raised(TypeError, rpc.rpc_async, other, 3)
    assert "callable" in raised(TypeError, rpc.remote, other, 3)
    late = raised(RuntimeError, rpc.rpc_sync, other, slow, ("late",), timeout=0.05)
    assert "RPC ran for more than set timeout" in late and other in late
    assert rpc.rpc_sync(other, slow, ("in time",), timeout=0) == "in time"
    failing = rpc.remote(other, divide, (1, 0))
    assert "in divide" in raised(ZeroDivisionError, failing.to_here)
    assert "already initialized" in raised(RuntimeError, rpc.init_rpc, "again")


def references(rank: int) -> None:
    size = dist.get_world_size()
    me, other, third = (f"worker{(rank + i) % size}" for i in range(3))
    counter = rpc.remote(other, Counter, (3,))
    assert counter.owner() == rpc.get_worker_info(other) and counter.owner_name() == other
    assert not counter.is_owner() and "UserRRef" in repr(counter)
    assert counter.to_here().count == 3 and counter.confirmed_by_owner()
    assert "Call to_here() for a copy" in raised(RuntimeError, counter.local_value)
    assert "using RPC" in raised(RuntimeError, pickle.dumps, counter)
    assert counter.rpc_sync().add(2) == 5
    assert counter.rpc_async().add().wait() == 6
    assert counter.remote().add(amount=4).to_here() == 10
    assert counter.rpc_sync().later() == 5
    assert counter.remote().later().to_here() == 5
    assert "in fail" in raised(KeyError, counter.rpc_sync().fail)
    raised(AttributeError, counter.rpc_sync().nothing)
    assert rpc.rpc_sync(third, read, (counter,)) == (10, third == other, other)
    assert rpc.rpc_sync(other, read, (counter,)) == (10, True, other)
    own = rpc.RRef[Counter](Counter(7))
    assert own.is_owner() and own.local_value() is own.to_here() and "OwnerRRef" in repr(own)
    assert rpc.rpc_sync(other, read, (own,)) == (7, False, me)
    assert own.rpc_sync().add() == 8 == own.local_value().count
    assert rpc.remote(me, divide, (1, 2)).to_here() == 0.5


def lifetimes(rank: int) -> None:
    """A value lives while some process refers to it, and not longer."""
    dist.barrier()
    gc.collect()
    wait_until(lambda: values() == 0)
    dist.barrier()
    if rank == 0:
        for _ in range(20):  # copies go round, in every order of beginnings and ends
            counter = rpc.remote("worker1", Counter)
            rpc.rpc_sync("worker0", keep, (counter,))
            rpc.rpc_sync("worker2", keep, (counter,))
            rpc.rpc_sync("worker1", keep, (counter,))
            del counter
            rpc.rpc_sync("worker0", let_go)
            back = rpc.rpc_sync("worker2", hand_back)
            rpc.rpc_sync("worker1", let_go)
            rpc.rpc_sync("worker2", let_go)
            assert back.rpc_sync().add() == 1
            del back
            wait_until(lambda: rpc.rpc_sync("worker1", values) == 0)
    dist.barrier()


def wait_until(holds: Any) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


ALL = [calls, errors, references, lifetimes]
