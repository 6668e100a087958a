"""Processes that run a function or a program, each with arguments and an environment of its own."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Protocol

from rushlight.distributed.elastic.multiprocessing.errors import ProcessFailure, record
from rushlight.distributed.elastic.multiprocessing.logs import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    Std,
    Tail,
)
from rushlight.multiprocessing import get_context

__all__ = [
    "DefaultLogsSpecs",
    "FunctionProcess",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "Process",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "result_of",
    "start_processes",
    "to_map",
]

_log = logging.getLogger(__name__)

_SIGNALS = "TORCHELASTIC_SIGNALS_TO_HANDLE"  # of the environment
_DEFAULTS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


class SignalException(Exception):
    """Raised where a program waits for its processes, when a signal asks it to end.

    Args:
        msg: what happened.
        sigval: the signal.
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg, sigval)
        self.sigval = sigval

    def __str__(self) -> str:
        return str(self.args[0])


class Process(Protocol):
    """What is needed of a process; those of subprocess are like that."""

    @property
    def pid(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> Any: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class FunctionProcess:
    """A new process that calls a function, with the methods of one that runs a program.

    Args:
        function: what is called; start_method="spawn" looks it up by its name in its module.
        args: its arguments.
        environment: what is added to this process's environment.
        result: the file for what it returns; see result_of.
        start_method: "spawn", "fork" or "forkserver".
        outputs: the files of its outputs 1 and 2, if they go to files.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        environment: Mapping[str, str],
        result: Path,
        start_method: str,
        outputs: Mapping[int, str] | None = None,
    ) -> None:
        context: Any = get_context(start_method)
        call = (function, args, dict(environment), result, dict(outputs or {}))
        self._process: BaseProcess = context.Process(target=_call, args=call)
        self._process.start()
        self.terminate = self._process.terminate
        self.kill = self._process.kill

    @property
    def pid(self) -> int | None:
        """Its number in the system."""
        return self._process.pid

    def send_signal(self, sig: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self._process.pid is not None and self.poll() is None:
            os.kill(self._process.pid, sig)

    def poll(self) -> int | None:
        """Returns its exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> None:
        """Waits for its end.

        Raises:
            subprocess.TimeoutExpired: if it takes longer.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self._process.name), timeout or 0.0)


def _call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    environment: dict[str, str],
    result: Path,
    outputs: dict[int, str],
) -> None:
    for number in _before:  # this was forked
        signal.signal(number, signal.SIG_DFL)
    _before.clear()
    _listening.clear()
    os.environ.update(environment)

    def keep_result() -> None:
        for number, path in outputs.items():
            with open(path, "wb") as file:
                os.dup2(file.fileno(), number)
        result.write_bytes(pickle.dumps(function(*args)))

    record(keep_result)()


def result_of(path: Path) -> Any:
    """Returns what a function has returned in a FunctionProcess with this file.

    That is None where the process was ended by the function, without an error.
    """
    return pickle.loads(path.read_bytes()) if path.exists() else None


class _Program(subprocess.Popen[bytes]):
    """A program in a session of its own; signals reach what it has started, too."""

    def __init__(self, command: list[str], **options: Any) -> None:
        super().__init__(command, start_new_session=True, **options)

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.killpg(self.pid, sig)


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """Returns the outputs of each rank.

    Example:
        >>> from rushlight.distributed.elastic.multiprocessing import Std, to_map
        >>> to_map({1: Std.OUT}, 2)
        {0: <Std.NONE: 0>, 1: <Std.OUT: 1>}
    """
    ranks = range(local_world_size)
    if isinstance(val_or_map, Std):
        return dict.fromkeys(ranks, val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in ranks}


@dataclass
class RunProcsResult:
    """How processes ended, by local rank.

    Attributes:
        return_values: what functions have returned; None for programs.
        failures: of those that failed; then there are no return_values.
        stdouts, stderrs: the files of the outputs; "" for those that went to the terminal.
    """

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Returns whether one failed."""
        return bool(self.failures)


class PContext(ABC):
    """Processes that start_processes made.

    Args:
        name: of what they do.
        entrypoint, args, envs, logs_specs, log_line_prefixes: see start_processes.
    """

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any] | str,
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
    ) -> None:
        if sorted(args) != sorted(envs) or sorted(args) != list(range(len(args))):
            raise RuntimeError(
                f"{name}: args are for the local ranks {sorted(args)}, envs for {sorted(envs)}. "
                "Both must be for 0, 1, 2, ..."
            )
        self.name = name
        self.entrypoint = entrypoint
        self.args = args
        self.envs = envs
        self.nprocs = len(args)
        self.files: LogsDest = logs_specs.reify(envs)
        self._labels = {rank: f"[{name}{rank}]:" for rank in args} | (log_line_prefixes or {})
        self._running: dict[int, Process] = {}
        self._tails: list[Tail] = []
        self._result: RunProcsResult | None = None

    @abstractmethod
    def _start(self, rank: int) -> Process:
        """Starts one."""

    @abstractmethod
    def _return_value(self, rank: int) -> Any:
        """What one that ended well has returned."""

    def start(self) -> None:
        """Starts all of them. Signals that ask to end raise SignalException from now on."""
        _listen(self)
        for rank in self.args:
            self._running[rank] = self._start(rank)
        self._tails = [
            Tail(self.files.tee_stdouts, self._labels, sys.stdout),
            Tail(self.files.tee_stderrs, self._labels, sys.stderr),
        ]

    def pids(self) -> dict[int, int]:
        """Returns the numbers of the processes in the system, by local rank."""
        return {rank: process.pid or 0 for rank, process in self._running.items()}

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Waits until all have ended, or one has failed: then it ends the others.

        Args:
            timeout: seconds to wait at most; 0 looks once, a negative number waits on.
            period: seconds between two looks.

        Returns:
            How they ended; None if they are still running.
        """
        end = time.monotonic() + timeout
        while True:
            result = self._poll()
            left = period if timeout < 0 else end - time.monotonic()
            if result is not None or left <= 0:
                return result
            time.sleep(min(period, left))

    def _poll(self) -> RunProcsResult | None:
        if self._result is not None:
            return self._result
        codes = {rank: process.poll() for rank, process in self._running.items()}
        failed = {rank: code for rank, code in codes.items() if code}
        if not failed and None in codes.values():
            return None
        self.close()
        result = RunProcsResult(stdouts=self.files.stdouts, stderrs=self.files.stderrs)
        for rank, code in failed.items():
            file = self.files.error_files.get(rank, "")
            result.failures[rank] = ProcessFailure(rank, self.pids()[rank], code, file)
        if not failed:
            result.return_values = {rank: self._return_value(rank) for rank in codes}
        self._result = result
        return result

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        """Ends those that are still running.

        Args:
            death_sig: the signal that asks them to; SIGTERM by default.
            timeout: seconds that they have; then they are killed, as by a second signal.
        """
        end = time.monotonic() + timeout
        try:
            for process in self._running.values():
                process.send_signal(signal.SIGTERM if death_sig is None else death_sig)
            for process in self._running.values():
                process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()
            for tail in self._tails:
                tail.stop()
            self._tails = []
            _listen_no_more(self)


class MultiprocessContext(PContext):
    """Processes that call a function.

    Args:
        start_method: how they are made: "spawn", "fork" or "forkserver".
        name, entrypoint, args, envs, logs_specs, log_line_prefixes: see start_processes.
    """

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any],
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        start_method: str,
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
    ) -> None:
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        self.start_method = start_method
        self._function = entrypoint
        self._results = Path(tempfile.mkdtemp(prefix="rushlight-results-"))
        self._values: dict[int, Any] = {}

    def _start(self, rank: int) -> Process:
        outputs = {1: self.files.stdouts.get(rank), 2: self.files.stderrs.get(rank)}
        return FunctionProcess(
            self._function,
            self.args[rank],
            self.envs[rank],
            self._results / str(rank),
            self.start_method,
            {number: path for number, path in outputs.items() if path},
        )

    def _return_value(self, rank: int) -> Any:
        return self._values.get(rank)

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        try:
            super().close(death_sig, timeout)
            for rank, process in self._running.items():
                if process.poll() == 0 and rank not in self._values:
                    self._values[rank] = result_of(self._results / str(rank))
        finally:
            shutil.rmtree(self._results, ignore_errors=True)


class SubprocessContext(PContext):
    """Processes that run a program, whose arguments are texts."""

    def _start(self, rank: int) -> Process:
        with ExitStack() as files:
            outputs: dict[str, Any] = {}
            for name, paths in ("stdout", self.files.stdouts), ("stderr", self.files.stderrs):
                if paths.get(rank):
                    outputs[name] = files.enter_context(open(paths[rank], "wb"))
            command = [str(self.entrypoint), *map(str, self.args[rank])]
            return _Program(command, env=os.environ | self.envs[rank], **outputs)

    def _return_value(self, rank: int) -> None:
        return None


_before: dict[signal.Signals, Any] = {}  # the handlers that _on_signal stands for
_listening: weakref.WeakSet[PContext] = weakref.WeakSet()


def _listen(context: PContext) -> None:
    """Has signals raise SignalException until no context listens any more."""
    if threading.current_thread() is not threading.main_thread():
        return  # Python does not let others handle signals
    _listening.add(context)
    for name in filter(None, map(str.strip, os.environ.get(_SIGNALS, _DEFAULTS).split(","))):
        try:
            number = signal.Signals[name]
            before = signal.signal(number, _on_signal)
        except (KeyError, OSError):
            _log.warning("%s: %s is no signal that can be handled", _SIGNALS, name)
            continue
        if before is not _on_signal:
            _before[number] = before


def _listen_no_more(context: PContext) -> None:
    _listening.discard(context)
    if not _listening and threading.current_thread() is threading.main_thread():
        while _before:
            number, handler = _before.popitem()
            signal.signal(number, handler or signal.SIG_DFL)  # None: one that is not Python's


def _on_signal(number: int, frame: FrameType | None) -> NoReturn:
    kind = signal.Signals(number)
    raise SignalException(f"Process {os.getpid()} got signal: {number}", sigval=kind)


def start_processes(
    name: str,
    entrypoint: Callable[..., Any] | str,
    args: dict[int, tuple[Any, ...]],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
) -> PContext:
    """Starts a process for each local rank, which calls a function or runs a program.

    Args:
        name: of what they do, for the lines on the terminal.
        entrypoint: a function, or the path of a program.
        args: its arguments, by local rank: 0, 1, 2, ...
        envs: what each finds in its environment, beside what this process has.
        logs_specs: where their outputs go.
        log_line_prefixes: what stands before the lines that `tee` shows; name and rank by default.
        start_method: how a process that calls a function is made: "spawn", "fork" or "forkserver".

    Returns:
        The processes, to wait for.

    Raises:
        RuntimeError: if args and envs are not for the same ranks.

    Example:
        >>> from rushlight.distributed.elastic.multiprocessing import (
        ...     DefaultLogsSpecs, start_processes
        ... )
        >>> processes = start_processes(
        ...     "division", divmod, {0: (7, 2), 1: (8, 2)}, {0: {}, 1: {}}, DefaultLogsSpecs()
        ... )
        >>> processes.wait(period=0.1).return_values
        {0: (3, 1), 1: (4, 0)}
    """
    more = (logs_specs, log_line_prefixes)
    context: PContext
    if isinstance(entrypoint, str):
        context = SubprocessContext(name, entrypoint, args, envs, *more)
    else:
        context = MultiprocessContext(name, entrypoint, args, envs, start_method, *more)
    try:
        context.start()
    except BaseException:
        context.close()
        raise
    return context
