"""Running one function in several processes, and telling which of them failed.

A process that raises leaves its traceback in a file of its own, which whoever joins reads.
"""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


_log = logging.getLogger(__name__)


class ProcessException(Exception):
    """That a process failed.

    Args:
        msg: what happened.
        error_index: which of the processes it was.
        pid: its number in the system.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = pid
        self.pid = pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """That a process raised an exception, with its traceback."""


class ProcessExitedException(ProcessException):
    """That a process ended by a signal, or with an exit code other than 0.

    Args:
        msg: what happened.
        error_index: which of the processes it was.
        error_pid: its number in the system.
        exit_code: its exit code, minus the signal's number if one ended it.
        signal_name: the signal's name.
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), parts


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error_file: str) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # whoever started us got it too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that run one function.

    Args:
        processes: the processes, which were started.
        error_files: for each the file that has its traceback if it raised.
    """

    def __init__(self, processes: Sequence[BaseProcess], error_files: Sequence[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int | None]:
        """Returns the numbers of the processes in the system."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for one of the processes, or for all if one has failed, which it ends.

        Args:
            timeout: seconds to wait at most; None waits on.
            grace_period: seconds that the others have to end by themselves; None for none.

        Returns:
            Whether all have ended. Call it until it says so.

        Raises:
            ProcessRaisedException: if a process raised.
            ProcessExitedException: if a process ended otherwise than by returning.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            i = self.sentinels.pop(sentinel)  # pyright: ignore[reportArgumentType]
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                failed = i
                break
        if failed is None:
            if not self.sentinels:
                self._remove_files()
            return not self.sentinels
        self._end_all(grace_period)
        try:
            raise self._error_of(failed)
        finally:
            self._remove_files()

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for process in self.processes:
            if process.is_alive():
                _log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._wait(30)
        for process in self.processes:
            if process.is_alive():
                _log.warning("Process %s outlived SIGTERM, ending it by SIGKILL", process.pid)
                process.kill()
                process.join()

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def _error_of(self, i: int) -> ProcessException:
        process = self.processes[i]
        pid, code = process.pid or 0, process.exitcode or 0
        if os.path.getsize(self.error_files[i]):
            with open(self.error_files[i], "rb") as file:
                text = pickle.load(file)
            message = f"\n\n-- Process {i} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, i, pid)
        if code < 0:
            name = signal.Signals(-code).name
            message = f"process {i} terminated with signal {name}"
            return ProcessExitedException(message, i, pid, code, name)
        return ProcessExitedException(f"process {i} terminated with exit code {code}", i, pid, code)

    def _remove_files(self) -> None:
        for name in self.error_files:
            if os.path.exists(name):
                os.unlink(name)


class SpawnContext(ProcessContext):
    """Processes that spawn started."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) in nprocs processes, i being 0, 1, ...

    Args:
        fn: the function, at the top of a module unless the processes are forked.
        args: what it gets after i; tensors go as shared memory.
        nprocs: the number of processes.
        join: whether to wait until all have ended.
        daemon: whether they end with this process, and may have no children.
        start_method: "spawn", "fork" or "forkserver"; see the multiprocessing module.

    Returns:
        None, or the processes unless join.

    Raises:
        ProcessRaisedException: if a process raised.
        ProcessExitedException: if a process ended otherwise than by returning.
    """
    context = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for i in range(nprocs):
        number, error_file = tempfile.mkstemp(prefix="rushlight-", suffix=".error")
        os.close(number)
        process = context.Process(  # pyright: ignore[reportAttributeAccessIssue]
            target=_run, args=(fn, i, args, error_file), daemon=daemon
        )
        process.start()
        processes.append(process)
        error_files.append(error_file)
    started = SpawnContext(processes, error_files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) in nprocs new processes; see start_processes.

    Example:
        >>> torch.multiprocessing.spawn(print, nprocs=0)
    """
    if start_method != "spawn":
        warnings.warn(
            f"spawn: starts new processes, not by {start_method!r}. Use start_processes for that.",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
