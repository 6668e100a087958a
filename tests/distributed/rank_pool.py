"""Processes that stand ready to run functions of the tests as ranks of one process group."""

import contextlib
import multiprocessing
import shutil
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import rushlight as torch
from rushlight import distributed as dist

TIMEOUT = 60  # seconds


def _serve(rank: int, size: int, backend: str, store: str, requests: Connection) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        backend, f"file://{store}", timedelta(seconds=TIMEOUT / 2), rank=rank, world_size=size
    )
    while (request := requests.recv()) is not None:
        function, args = request
        torch.manual_seed(0)
        try:
            requests.send((True, function(*args)))
        except BaseException:
            requests.send((False, traceback.format_exc()))
    dist.destroy_process_group()


class RankPool:
    """Processes, each a rank; they start again after a function has failed in one.

    Args:
        size: how many.
        backend: of the process group.
        method: how they start; "fork" keeps the tests' modules, "spawn" can use CUDA.
    """

    def __init__(self, size: int, backend: str = "gloo", method: str = "fork") -> None:
        self.size = size
        self.backend = backend
        self.method = method
        self.processes: list[Any] = []

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Returns what function(*args) returns in each rank; each begins with the same seed."""
        if not self.processes:
            self._start()
        for pipe in self.pipes:
            pipe.send((function, args))
        answers = []
        for rank, pipe in enumerate(self.pipes):
            answers.append(pipe.recv() if pipe.poll(TIMEOUT) else (False, "no answer in time"))
            if not answers[-1][0]:
                self.close()
                raise AssertionError(f"rank {rank}: {answers[-1][1]}")
        return [value for _, value in answers]

    def _start(self) -> None:
        context: Any = multiprocessing.get_context(self.method)
        # Not a TemporaryDirectory: other tests fork processes, whose ends would remove it.
        self.folder = tempfile.mkdtemp()
        store = str(Path(self.folder) / "store")
        self.pipes = []
        for rank in range(self.size):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(rank, self.size, self.backend, store, theirs), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def close(self) -> None:
        """Ends the processes."""
        for process, pipe in zip(self.processes, getattr(self, "pipes", ()), strict=True):
            with contextlib.suppress(OSError):  # it has ended
                pipe.send(None)
            process.join(2)
            process.kill()
            process.join()
        if self.processes:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.processes, self.pipes = [], []
