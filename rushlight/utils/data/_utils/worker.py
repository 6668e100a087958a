"""The process of a loader that makes batches.

A message to it is (number, index): make that batch, or (None, None): an epoch begins. It answers
with (number, batch), the batch being an ExceptionWrapper where making it raised, or End at a
stream's end.
"""

from __future__ import annotations

import importlib.util
import os
import queue
import random
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight._utils import ExceptionWrapper
from rushlight.multiprocessing.channel import Channel
from rushlight.utils.data._utils.fetch import Fetcher
from rushlight.utils.data.worker_info import WorkerInfo

_worker_info: WorkerInfo | None = None  # what this process is; loaders of libraries set it


class End:
    """What a worker answers at the end of its stream."""


def run(
    channel: Channel,
    fetcher: Fetcher,
    worker: int,
    num_workers: int,
    seed: int,
    worker_init_fn: Callable[[int], Any] | None,
) -> None:
    """Makes batches until the loader closes its end: what a worker process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader's process gets it, and closes
    rl.set_num_threads(1)
    _seed(seed, worker)
    global _worker_info
    _worker_info = WorkerInfo(worker, num_workers, seed, fetcher.dataset)
    fetcher.be_worker(num_workers, worker)
    failure = None
    try:
        if worker_init_fn is not None:
            worker_init_fn(worker)
    except Exception:
        failure = _failure(worker)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(channel, tasks), daemon=True).start()
    while (task := tasks.get()) is not None:
        number, index = task
        if number is None:
            fetcher.restart()
            continue
        result = _make(fetcher, index, worker) if failure is None else failure
        try:
            _send(channel, number, result, worker)
        except OSError:
            return  # nobody waits for it any more


def _seed(seed: int, worker: int) -> None:
    random.seed(seed)
    rl.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_generate_state(seed - worker, worker))


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """What seeds NumPy in a worker, so that its numbers are other ones than random's.

    Args:
        base_seed: the seed of the loader, of 64 bits.
        worker_id: the number of the worker.
    """
    from numpy.random import SeedSequence

    low, high = base_seed & 0xFFFFFFFF, base_seed >> 32 & 0xFFFFFFFF
    return SeedSequence([worker_id, low, high, 0]).generate_state(4).tolist()


def _read(channel: Channel, tasks: queue.SimpleQueue[Any]) -> None:
    """Takes messages as they come, so that the loader never waits to send one."""
    try:
        while True:
            tasks.put(channel.recv())
    except (EOFError, OSError):
        tasks.put(None)


def _make(fetcher: Fetcher, index: Any, worker: int) -> Any:
    try:
        return fetcher.fetch(index)
    except StopIteration:
        return End if fetcher.is_stream else _failure(worker)
    except Exception:
        return _failure(worker)


def _failure(worker: int) -> ExceptionWrapper:
    """The exception being handled, to be raised again where the batch is awaited."""
    return ExceptionWrapper(where=f"in DataLoader worker process {worker}")


def _send(channel: Channel, number: int, result: Any, worker: int) -> None:
    try:
        channel.send((number, result))
    except OSError:
        raise
    except Exception:  # it cannot be pickled
        if isinstance(result, ExceptionWrapper):
            result.exc_type = RuntimeError
        else:
            result = _failure(worker)
        channel.send((number, result))


# What workers of libraries' own loaders import.

HAS_NUMPY = importlib.util.find_spec("numpy") is not None


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """What a worker answers at the end of its stream."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Tells a worker that stays that an epoch begins."""

    seed: int | None = None


class ManagerWatchdog:
    """Knows in a worker whether the process that started it is still there."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()

    def is_alive(self) -> bool:
        """Whether it is: a process without its parent gets another one."""
        return os.getppid() == self.manager_pid
