"""The loader's side of worker processes: who makes which batch, and in which order they come.

Each worker has a channel of its own. It is asked for prefetch_factor batches ahead, and for one
more with each that is taken. When a worker dies its channel ends, so nobody waits for it.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable
from itertools import count, cycle
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from rushlight._utils import ExceptionWrapper
from rushlight.multiprocessing.channel import Channel
from rushlight.utils.data._utils.fetch import Fetcher
from rushlight.utils.data._utils.pin_memory import pin_memory
from rushlight.utils.data._utils.worker import End, run
from rushlight.utils.data.dataloader import _PREFETCH_FACTOR, DataLoader, _BaseDataLoaderIter

_SECONDS_TO_END = 5
_WHAT_IS_PICKLED = (
    "DataLoader: a worker that is not forked gets the dataset, collate_fn and worker_init_fn by "
    "pickle, which takes functions and classes at the top of a module only. Put them there, or "
    'pass multiprocessing_context="fork", the default before Python 3.14.'
)
_WHAT_A_FORKSERVER_TAKES = (
    "DataLoader: a forkserver takes at most 253 open files for a worker, and each tensor of the "
    "dataset is one. Keep rows that belong together in one tensor (torch.stack them), or pass "
    'multiprocessing_context="spawn" or "fork".'
)


class Workers:
    """The worker processes of a loader; they end with this object, or when it is closed.

    Args:
        loader: the loader.
        fetcher: what makes batches, in each of them.
        seed: worker i draws its random numbers from seed + i.
    """

    def __init__(self, loader: DataLoader, fetcher: Fetcher, seed: int) -> None:
        context = loader.multiprocessing_context or multiprocessing
        if isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.channels: list[Channel] = []
        self.processes: list[BaseProcess] = []
        self.close = weakref.finalize(self, _end, self.channels, self.processes, os.getpid())
        self.numbers = count()
        self.epoch: weakref.ref[_MultiProcessingDataLoaderIter] | Callable[[], None] = lambda: None
        if "numpy" in sys.modules:  # a fork while a thread imports it would leave it half done
            importlib.import_module("numpy")
        for i in range(loader.num_workers):
            ours, theirs = Channel.pair()
            ours.close_in_children()
            self.channels.append(ours)
            process = context.Process(  # pyright: ignore[reportAttributeAccessIssue]
                target=run,
                args=(theirs, fetcher, i, loader.num_workers, seed + i, loader.worker_init_fn),
                daemon=True,
            )
            try:
                process.start()
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                error.add_note(_WHAT_IS_PICKLED)
                raise
            except ValueError as error:
                if str(error) == "too many fds":
                    error.add_note(_WHAT_A_FORKSERVER_TAKES)
                raise
            finally:
                theirs.close()
            self.processes.append(process)

    def receive(self, among: set[int], timeout: float) -> list[tuple[int, int, Any]]:
        """Waits for workers, and returns for each that answered (worker, number, batch).

        Raises:
            RuntimeError: if none answers within so many seconds (0: for ever), or one died.
        """
        workers = {self.channels[i]: i for i in among}
        answers = []
        ready: list[Any] = wait(list(workers), timeout or None)  # pyright: ignore[reportArgumentType]
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        for channel in ready:
            try:
                number, batch = channel.recv()
            except EOFError:
                raise self._death_of(workers[channel]) from None
            answers.append((workers[channel], number, batch))
        return answers

    def send(self, worker: int, message: Any) -> None:
        """Sends a worker a message.

        Raises:
            RuntimeError: if it died.
        """
        try:
            self.channels[worker].send(message)
        except OSError:
            raise self._death_of(worker) from None

    def _death_of(self, worker: int) -> RuntimeError:
        process = self.processes[worker]
        process.join(_SECONDS_TO_END)
        self.close()
        return RuntimeError(
            f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly: worker {worker} ended "
            f"with code {process.exitcode}. Its own output may say why; num_workers=0 makes "
            "batches in this process."
        )


def _end(channels: list[Channel], processes: list[BaseProcess], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child, which leaves them to its parent
    for channel in channels:
        channel.close()
    deadline = time.monotonic() + _SECONDS_TO_END
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One pass over a loader's dataset, whose batches workers make.

    Args:
        loader: the loader.
        processes: its workers; started here if None.
    """

    def __init__(self, loader: DataLoader, processes: Workers | None = None) -> None:
        super().__init__(loader)
        self.processes = processes or Workers(loader, self._make_fetcher(), self._base_seed)
        self._in_order = loader.in_order
        self._prefetch_factor = loader.prefetch_factor or _PREFETCH_FACTOR
        self._reset(loader, first_iter=True)

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._active = set(range(self._num_workers))
        self._turns = cycle(range(self._num_workers))
        self._asked: dict[int, int] = {}  # the batches to come, in order, and who makes them
        self._arrived: dict[int, Any] = {}
        self.processes.epoch = weakref.ref(self)
        for worker in self._active:
            self.processes.send(worker, (None, None))
        for _ in range(self._num_workers * self._prefetch_factor):
            self._ask()

    @property
    def _workers(self) -> list[BaseProcess]:
        return self.processes.processes

    def _shutdown_workers(self) -> None:
        self.processes.close()

    def _next_data(self) -> Any:
        if self.processes.epoch() is not self:
            raise RuntimeError(
                "DataLoader: a newer iterator of this loader uses its workers. Go over one at a "
                "time, or leave persistent_workers=False."
            )
        while self._asked:
            number = self._first_arrived()
            if number is not None:
                return self._take(number)
            self._receive()
        if not self._persistent_workers:
            self.processes.close()
        raise StopIteration

    def _ask(self) -> None:
        """Asks a worker for the next batch, if there is one."""
        if not self._active:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        number = next(self.processes.numbers)
        self._asked[number] = worker = self._choose()
        self.processes.send(worker, (number, index))

    def _choose(self) -> int:
        if self._in_order:
            return next(worker for worker in self._turns if worker in self._active)
        busy = Counter(self._asked.values())
        return min(self._active, key=lambda worker: busy[worker])

    def _first_arrived(self) -> int | None:
        """The number of the batch to return next, None if it is still to come."""
        if not self._in_order:
            return next(iter(self._arrived), None)
        number = next(iter(self._asked))
        return number if number in self._arrived else None

    def _take(self, number: int) -> Any:
        del self._asked[number]
        batch = self._arrived.pop(number)
        self._ask()
        if type(batch) is ExceptionWrapper:
            batch.reraise()
        return pin_memory(batch) if self._pin_memory else batch

    def _receive(self) -> None:
        among = {self._asked[number] for number in self._asked if number not in self._arrived}
        for worker, number, batch in self.processes.receive(among, self._timeout):
            if number not in self._asked:
                continue  # of an epoch that was left early, or beyond the end of a stream
            if batch is End:
                self._retire(worker)
            else:
                self._arrived[number] = batch

    def _retire(self, worker: int) -> None:
        """Expects nothing more of a worker whose stream has ended."""
        self._active.discard(worker)
        for number in [number for number in self._asked if self._asked[number] == worker]:
            if number not in self._arrived:
                del self._asked[number]
        self._ask()
