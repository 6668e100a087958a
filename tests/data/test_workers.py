"""The loader with worker processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from rushlight.utils.data.distributed import DistributedSampler


class Images(Dataset):
    """Samples of a tensor that is shared, a number, a text, and the worker that made it."""

    def __init__(self, size: int = 20) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return torch.full((3, 80, 80), float(index)), index, str(index), info.id if info else -1


class Numbers(IterableDataset):
    def __iter__(self) -> Any:
        info = get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


class Draws(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None and info.dataset is self
        seed = torch.initial_seed() == info.seed
        return random.random(), float(np.random.rand()), torch.rand(()).item(), seed


class Odd(Images):
    """Number 5 is not what the others are."""

    def __init__(self, act: Any) -> None:
        super().__init__()
        self.act = act

    def __getitem__(self, index: int) -> Any:
        return self.act() if index == 5 else index


def act_raise() -> None:
    raise KeyError("number 5\nis odd")


def act_raise_local() -> None:
    class LocalError(Exception):
        pass

    raise LocalError("seen in the text")


def act_leave() -> None:
    os._exit(3)


def act_be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def act_return_lambda() -> Any:
    return lambda: None


def act_wait() -> None:
    time.sleep(30)


def same(sample: Any) -> Any:
    return sample


def its_worker(_: Any) -> torch.Tensor:
    return torch.tensor(os.getpid())


def long_text(_: Any) -> str:
    return "x" * 5_000_000


def change_random(worker: int) -> None:
    if worker == 1:
        raise ValueError("no")
    random.random = lambda: 7.0


class Uneven(Dataset):
    """Number 0 is not made before number 2 is asked for, which is when 1 has come."""

    def __init__(self) -> None:
        self.later = multiprocessing.Event()

    def __getitem__(self, index: int) -> int:
        if index == 2:
            self.later.set()
        return index if index != 0 or self.later.wait(60) else -1


class Rows(Dataset):
    """Each of them a tensor of its own."""

    def __init__(self, size: int) -> None:
        self.rows = [torch.full((2,), float(i)) for i in range(size)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_batches_are_those_of_one_process(method: str) -> None:
    def epochs(**options: Any) -> list[Any]:
        torch.manual_seed(3)
        loader = DataLoader(Images(), 3, shuffle=True, **options)
        batches = [batch for _ in range(2) for batch in loader]
        assert len(batches) == 2 * len(loader) == 14
        return batches

    expected = epochs()
    workers = set()
    for x, y in zip(expected, epochs(num_workers=2, multiprocessing_context=method), strict=True):
        assert torch.equal(x[0], y[0]) and x[1].tolist() == y[1].tolist() and x[2] == y[2]
        workers |= set(y[3].tolist())
    assert workers == {0, 1}


def test_an_error_says_what_must_be_picklable() -> None:
    loader = DataLoader(
        range(3), num_workers=1, collate_fn=lambda x: x, multiprocessing_context="spawn"
    )
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda") as raised:
        list(loader)
    assert 'multiprocessing_context="fork"' in "".join(raised.value.__notes__)


def test_a_dataset_of_many_tensors_goes_to_workers() -> None:
    for method in ("fork", "spawn"):
        loader = DataLoader(Rows(300), 50, num_workers=1, multiprocessing_context=method)
        assert sum(batch.sum().item() for batch in loader) == 300 * 299
    loader = DataLoader(Rows(300), 50, num_workers=1, multiprocessing_context="forkserver")
    with pytest.raises(ValueError, match="too many fds") as raised:
        list(loader)
    assert "stack them" in "".join(raised.value.__notes__)


def test_memory_is_used_again_when_nobody_holds_it() -> None:
    loader = DataLoader(Images(60), 2, num_workers=1, persistent_workers=True)
    addresses, kept, forked = set(), [], []
    for number, (x, index, *_) in enumerate(loader):
        addresses.add(x.data_ptr())
        if number % 5 == 0:
            kept.append((x[0, 0], index))
        if number == 7:  # the child sees x for ever
            forked.append(multiprocessing.get_context("fork").Process(target=see, args=(x, 14.0)))
            forked[0].start()
        del x
    assert 2 <= len(addresses) - len(kept) < 10
    for x, index in kept:
        assert (x == index[0]).all()
    forked[0].join()
    assert forked[0].exitcode == 0


def test_batches_that_are_kept_do_not_use_up_the_open_files() -> None:
    program = (
        "import resource, rushlight as torch\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "loader = torch.utils.data.DataLoader(range(400), None, num_workers=2,\n"
        "    collate_fn=lambda i: torch.full((20000,), float(i)),\n"
        "    multiprocessing_context='fork')\n"
        "assert [x[7].item() for x in list(loader)] == list(range(400))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_workers_wait_for_a_thread_that_imports_numpy() -> None:
    program = (
        "import importlib, sys, threading\n"
        "from rushlight.utils.data import DataLoader\n"
        "loader = DataLoader(range(3), None, num_workers=1, multiprocessing_context='fork')\n"
        "assert list(loader) == [0, 1, 2] and 'numpy' not in sys.modules\n"
        "threading.Thread(target=importlib.import_module, args=('numpy',)).start()\n"
        "while 'numpy' not in sys.modules: pass\n"
        "assert list(loader) == [0, 1, 2]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def see(x: torch.Tensor, first: float) -> None:
    time.sleep(0.5)
    assert (x[0] == first).all() and (x[1] == first + 1).all()


def test_single_samples_views_and_parameters_arrive() -> None:
    data = torch.arange(80000.0).reshape(4, 20000)
    views = list(DataLoader(data, None, num_workers=1, multiprocessing_context="fork"))
    assert all(torch.equal(x, y) for x, y in zip(views, data, strict=True))
    assert not data.is_shared()
    rows = list(DataLoader(data, batch_size=None, num_workers=2, collate_fn=torch.nn.Parameter))
    assert [type(row) for row in rows] == [torch.nn.Parameter] * 4


def test_workers_share_a_stream() -> None:
    found = [batch.tolist() for batch in DataLoader(Numbers(), 3, num_workers=2)]
    assert found == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    loader = DataLoader(Numbers(), 3, drop_last=True, num_workers=3, persistent_workers=True)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_more_workers_than_cores_are_warned_of() -> None:
    cores = len(os.sched_getaffinity(0))
    with pytest.warns(UserWarning, match=f"will create {cores + 1} worker processes in total"):
        DataLoader(range(3), num_workers=cores + 1)  # pyright: ignore[reportArgumentType]


def test_workers_draw_numbers_of_their_own() -> None:
    def draws() -> list[tuple[float, ...]]:
        return [tuple(map(float, row)) for row in DataLoader(Draws(), None, num_workers=2)]

    torch.manual_seed(0)
    first, second = draws(), draws()
    torch.manual_seed(0)
    assert draws() == first
    numbers = [row[k] for row in first + second for k in range(3)]
    assert len(set(numbers)) == len(numbers)
    assert all(row[3] for row in first)


def test_an_exception_is_raised_here_and_the_epoch_goes_on() -> None:
    batches = iter(DataLoader(Odd(act_raise), 2, num_workers=2))
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 0") as error:
        next(batches)
    assert "in act_raise\n" in str(error.value)
    assert next(batches).tolist() == [6, 7]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (act_raise_local, r"Caught LocalError in DataLoader worker(.|\n)*seen in the text"),
        (act_leave, r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly.*with code 3"),
        (act_be_killed, r"exited unexpectedly.*with code -9"),
        (act_return_lambda, "Caught .* in DataLoader worker process 0"),
        (act_wait, "DataLoader timed out after 0.5 seconds"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_told(
    act: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rushlight.utils.data.parallel._SECONDS_TO_END", 0.5)
    timeout = 0.5 if act is act_wait else 0
    loader = DataLoader(Odd(act), None, num_workers=1, timeout=timeout, collate_fn=same)
    errors = (RuntimeError, AttributeError, TypeError, pickle.PicklingError)
    with pytest.raises(errors, match=text):
        list(loader)


def test_worker_init_fn_runs_before_the_first_batch() -> None:
    batches = iter(DataLoader(Draws(), None, num_workers=2, worker_init_fn=change_random))
    assert next(batches)[0] == 7
    with pytest.raises(ValueError, match="process 1(.|\n)*no"):
        next(batches)


def test_workers_end_with_their_epoch_unless_they_are_kept() -> None:
    def workers(loader: DataLoader) -> set[int]:
        return {pid.item() for pid in loader}

    def alive(pids: set[int]) -> bool:
        return any(os.path.exists(f"/proc/{pid}") for pid in pids)

    options: dict[str, Any] = {"num_workers": 2, "collate_fn": its_worker}
    loader = DataLoader(range(4), **options)
    assert not alive(workers(loader) | workers(loader))
    batches = iter(loader)
    pid = int(next(batches))
    assert alive({pid})
    del batches
    gc.collect()
    assert not alive({pid})

    loader = DataLoader(range(4), persistent_workers=True, **options)
    kept = workers(loader)
    assert workers(loader) == kept and alive(kept)
    older = iter(loader)
    next(older)
    assert workers(loader) == kept
    with pytest.raises(RuntimeError, match="a newer iterator of this loader"):
        next(older)
    del loader, older
    gc.collect()
    assert not alive(kept)


def test_batches_may_come_as_they_are_made() -> None:
    loader = DataLoader(
        Uneven(), None, sampler=range(8), num_workers=2, in_order=False, prefetch_factor=1
    )
    found = [int(x) for x in loader]
    assert sorted(found) == list(range(8)) and found[0] == 1


def test_many_large_tensors_and_long_messages_pass() -> None:
    many = [torch.full((20000,), float(i)) for i in range(400)]
    for tensor in many[100:]:  # more than one message carries, after more than are lent at once
        tensor.share_memory_()
    batch = next(iter(DataLoader([many], None, num_workers=1, multiprocessing_context="fork")))
    assert [x[0].item() for x in batch] == list(range(400))
    loader = DataLoader([0] * 8, None, num_workers=2, collate_fn=long_text)
    assert all(text == long_text(None) for text in loader)


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_program_that_leaves_ends_its_workers(method: str) -> None:
    program = (
        "import operator, os, rushlight as torch\n"
        "batches = iter(torch.utils.data.DataLoader([os.getpid] * 3, None, num_workers=2,\n"
        f"    collate_fn=operator.call, multiprocessing_context={method!r}))\n"
        "print(next(batches), flush=True)\n"
    )
    for end in ("pass", "raise SystemExit(0)", "os._exit(0)", "os.kill(os.getpid(), 9)"):
        done = subprocess.run(
            [sys.executable, "-c", program + end], stdout=subprocess.PIPE, timeout=60
        )
        for _ in range(400):
            if not os.path.exists(f"/proc/{int(done.stdout)}"):
                break
            time.sleep(0.05)
        else:
            raise AssertionError(f"the worker lives on after {end}")


def test_parts_of_a_distributed_sampler_cover_the_dataset() -> None:
    parts = [DistributedSampler(range(10), 3, rank) for rank in range(3)]
    orders = [list(part) for part in parts]
    assert [len(order) for order in orders] == [len(part) for part in parts] == [4, 4, 4]
    assert {index for order in orders for index in order} == set(range(10))
    parts[0].set_epoch(1)
    assert list(parts[0]) != orders[0]
    whole = [i for rank in range(3) for i in DistributedSampler(range(10), 3, rank, drop_last=True)]
    assert len(set(whole)) == len(whole) == 9
    assert list(DistributedSampler([0], 3, 2, shuffle=False)) == [0]
    with pytest.raises(ValueError, match="Invalid rank 3"):
        DistributedSampler(range(10), 3, 3)
    with pytest.raises(ValueError, match="has not been initialized"):
        DistributedSampler(range(10))
