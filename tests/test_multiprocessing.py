"""Tensors in other processes, and processes that run one function."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.multiprocessing as mp
from rushlight.multiprocessing.channel import Channel


def add_one(queue: Any, answers: Any) -> None:
    """Writes into what comes, and sends a tensor of its own."""
    for tensor in iter(queue.get, None):
        tensor += 1
        answers.put((tensor.sum().item(), torch.full((2,), 3.0)))
    time.sleep(0.1)  # the receiver fetches the memory from this process


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_queues_pass_the_memory(method: str) -> None:
    context = mp.get_context(method)
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=add_one, args=(queue, answers))
    process.start()
    whole = torch.zeros(4, 3)
    for part in (whole, whole[1:3].t(), torch.nn.Parameter(torch.ones(2), requires_grad=False)):
        before = part.sum().item()
        queue.put(part)
        total, made = answers.get(timeout=30)
        assert total == before + part.numel() == part.sum().item()
        assert made.tolist() == [3, 3] and made.is_shared()
    assert whole.tolist() == [[1] * 3, [2] * 3, [2] * 3, [1] * 3]
    queue.put(None)
    process.join()
    assert process.exitcode == 0


def pass_through(thing: Any) -> Any:
    one, other = Channel.pair()
    one.send(thing)
    return other.recv()


def test_what_a_tensor_is_arrives() -> None:
    large = torch.arange(100000, dtype=torch.float64)
    for tensor in (
        large,
        large.reshape(10, -1).t(),
        large[::2],
        large.to(torch.bfloat16),
        torch.complex(large, large),
        torch.tensor(2.5),
        torch.empty(0, 3),
        torch.ones(2, 3).to_sparse(),
        torch.empty(5, device="meta"),
        large.clone().requires_grad_(),
        torch.nn.Parameter(large),
    ):
        found = pass_through(tensor)
        assert type(found) is type(tensor) and found.dtype is tensor.dtype
        assert found.shape == tensor.shape and found.requires_grad == tensor.requires_grad
        assert found.device == tensor.device and found.is_leaf
        if tensor.layout is torch.strided and tensor.stride() != (2,):  # only if it is dense
            assert found.stride() == tensor.stride()
        if tensor.device.type == "cpu":
            assert torch.equal(found.to_dense(), tensor.to_dense())
    named = torch.ones(2)
    named.name_of_it = "x"
    assert pass_through(named).name_of_it == "x"
    storage = torch.arange(4, dtype=torch.int32).untyped_storage()
    found = pass_through([storage, torch.FloatStorage([1, 2])])
    storage[0] = 7
    assert found[0].tolist()[:5] == [7, 0, 0, 0, 1] and found[1].tolist() == [1, 2]


def test_a_small_part_of_a_large_tensor_is_sent_alone() -> None:
    large = torch.arange(100000)
    for part in (large[10:13], large[5::3][:4], large.view(-1, 10)[7:9, 1:3].t(), large[:0]):
        found = pass_through(part)
        assert torch.equal(found, part) and found.untyped_storage().nbytes() == 8 * part.numel()


def test_memory_is_given_back() -> None:
    open_files = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        pass_through([torch.ones(50000) for _ in range(20)])
    assert len(os.listdir("/proc/self/fd")) <= open_files


def test_a_message_of_more_files_than_may_be_open_is_refused() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    one, other = Channel.pair()
    tensors = [torch.zeros(1).share_memory_() for _ in range(60)]
    one.send(tensors)  # which keep their numbers, so that others are needed
    taken = {int(number) for number in os.listdir("/proc/self/fd")}
    fifth_free = [number for number in range(len(taken) + 5) if number not in taken][4]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (fifth_free + 1, limits[1]))
        with pytest.raises(OSError, match=r"too many open files.*set_sharing_strategy"):
            other.recv()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_what_has_a_history_is_refused() -> None:
    x = torch.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=r"non-leaf tensor.*Send tensor.detach\(\)"):
        pass_through(x)
    one, other = Channel.pair()
    with pytest.raises(Exception, match="local object"):
        one.send([torch.ones(100000), lambda: None])
    one.send(torch.arange(100000))  # nothing was sent before
    assert other.recv()[7] == 7
    one.close()
    with pytest.raises(EOFError):
        other.recv()
    with pytest.raises(OSError, match="Broken pipe"):
        other.send(1)


def train(i: int, model: torch.nn.Module, losses: torch.Tensor) -> None:
    torch.manual_seed(i)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(200):
        x = torch.randn(16, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[i] = loss.detach()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_train_one_model(method: str) -> None:
    """Hogwild: each process writes into the same parameters."""
    model = torch.nn.Linear(4, 1)
    model.share_memory()
    losses = torch.ones(2).share_memory_()
    mp.start_processes(train, (model, losses), nprocs=2, start_method=method)
    assert losses.max() < 1e-3
    assert torch.allclose(model.weight, torch.ones(1, 4), atol=0.05)


def fail(i: int, how: str) -> None:
    if i == 0:
        time.sleep(60)
    elif how == "raise":
        raise ValueError("number one")
    elif how == "exit":
        os._exit(7)
    elif how == "signal":
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_failing_process_ends_the_others() -> None:
    def run(how: str) -> None:
        mp.start_processes(fail, (how,), nprocs=2, start_method="fork")

    started = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException, match="Process 1 terminated(.|\n)*number one"):
        run("raise")
    with pytest.raises(mp.ProcessExitedException, match="with exit code 7") as error:
        run("exit")
    assert (error.value.error_index, error.value.exit_code) == (1, 7)
    with pytest.raises(mp.ProcessExitedException, match="with signal SIGKILL") as error:
        run("signal")
    assert error.value.signal_name == "SIGKILL" and error.value.exit_code == -9
    assert isinstance(pass_through(error.value), mp.ProcessException)
    assert time.monotonic() - started < 30


def fail_or_finish(i: int, finished: torch.Tensor, pipe: tuple[int, int], seconds: float) -> None:
    reading, writing = pipe
    if i == 1:
        raise ValueError("number one")
    os.close(writing)
    os.read(reading, 1)  # returns when the other has ended
    time.sleep(seconds)
    finished += 1


@pytest.mark.parametrize("grace_period", [None, 20])
def test_the_others_may_get_time_to_end(grace_period: float | None, caplog: Any) -> None:
    finished = torch.zeros(1).share_memory_()
    pipe = os.pipe()
    seconds = 60 if grace_period is None else 0.5
    context = mp.start_processes(
        fail_or_finish, (finished, pipe, seconds), nprocs=2, join=False, start_method="fork"
    )
    for end in pipe:
        os.close(end)
    assert context is not None
    with pytest.raises(mp.ProcessRaisedException, match="number one"):
        context.join(grace_period=grace_period)
    assert finished.item() == (grace_period is not None)
    assert ("via signal SIGTERM" in caplog.text) == (grace_period is None)


def write(i: int, into: torch.Tensor) -> None:
    into[i] = i + 1


def test_processes_can_be_waited_for() -> None:
    into = torch.zeros(3).share_memory_()
    context = mp.spawn(write, (into,), nprocs=2, join=False)
    assert context is not None and len(context.pids()) == 2
    while not context.join(timeout=5):
        pass
    assert into.tolist() == [1, 2, 0]
    with pytest.warns(FutureWarning, match="Use start_processes"):
        mp.spawn(write, (into,), nprocs=0, start_method="fork")


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_everything_of_the_standard_module_is_here() -> None:
    for name in multiprocessing.__all__:
        assert getattr(mp, name) == getattr(multiprocessing, name)
    with mp.get_context("fork").Pool(2) as pool:
        found = pool.map(double, [torch.ones(2), torch.zeros(1)])
    assert [x.tolist() for x in found] == [[2, 2], [0]]


def test_strategies() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
        mp.set_sharing_strategy("file_system")
        assert mp.get_sharing_strategy() == "file_system"
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limits[1], limits[1])
    finally:
        mp.set_sharing_strategy("file_descriptor")
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with pytest.raises(ValueError, match="unknown strategy 'x'"):
        mp.set_sharing_strategy("x")


def test_shared_memory_stays_shared_in_processes_of_pythons_own_module(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing\n"
        "import rushlight as torch\n"
        "def write(x):\n"
        "    x.fill_(7)\n"
        "if __name__ == '__main__':\n"
        "    x = torch.zeros(2).share_memory_()\n"
        "    process = multiprocessing.get_context('spawn').Process(target=write, args=(x,))\n"
        "    process.start()\n"
        "    process.join()\n"
        "    print(x.tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[7.0, 7.0]\n"
