"""How a process of a job tells its launcher why it failed, and what the launcher makes of it.

The launcher gives each process the name of a file, TORCHELASTIC_ERROR_FILE; record writes the
traceback there, as JSON in the form that other launchers of PyTorch read too.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import json
import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, ParamSpec, Self, TypeVar

from rushlight._checkpoint.archive import replace_when_complete

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "record"]

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_NONE = "<N/A>"


@dataclass
class ProcessFailure:
    """That a process of a job failed.

    Args:
        local_rank: its rank on its machine.
        pid: its number in the system.
        exitcode: its exit code, minus the signal's number if one ended it.
        error_file: what record wrote; it need not exist.

    Attributes:
        error_file_data: what is in the file.
        message: the error in one line, or the signal.
        timestamp: when it failed, in seconds since 1970.

    Raises:
        ValueError: if the file has another form.

    Example:
        >>> from rushlight.distributed.elastic.multiprocessing.errors import ProcessFailure
        >>> ProcessFailure(local_rank=0, pid=99, exitcode=-9, error_file="").message
        'Signal 9 (SIGKILL) received by PID 99'
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: str = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        if os.path.isfile(self.error_file):
            try:
                with open(self.error_file) as file:
                    self.error_file_data = json.load(file)
                message = self.error_file_data["message"]
                facts = {"message": message, **self.error_file_data}
                if isinstance(message, dict):
                    facts = {"message": message["message"], **message["extraInfo"]}
                self.message, self.timestamp = facts["message"], int(facts.get("timestamp", 0))
            except (LookupError, TypeError, ValueError) as error:
                raise ValueError(f"{self.error_file} does not tell an error: {error!r}.") from None
            return
        self.error_file = _NONE
        self.error_file_data = {"message": "<NONE>"}
        self.timestamp = int(time.time())
        self.message = (
            f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            if self.exitcode < 0
            else "Its output says more; its main function under @record would tell its traceback."
        )

    @property
    def traceback(self) -> str:
        """The traceback that the process left, or nothing."""
        message = self.error_file_data["message"]
        return message["extraInfo"].get("py_callstack", "") if isinstance(message, dict) else ""

    def told(self) -> str:
        """Returns it as text, from which `read` makes it on another machine."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Self:
        """Returns what `told` told."""
        facts = json.loads(text)
        own = {name: facts.pop(name) for name in ("local_rank", "pid", "exitcode")}
        made = cls(**own, error_file="")
        vars(made).update(facts)
        return made

    def signal_name(self) -> str:
        """Returns the name of the signal that ended it, "<N/A>" if none did or it has none."""
        known = -self.exitcode in list(signal.Signals)
        return signal.Signals(-self.exitcode).name if known else _NONE

    def timestamp_isoformat(self) -> str:
        """Returns when it failed, as text."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """That processes of a job failed.

    Args:
        name: of the program.
        failures: of each that failed, by rank.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name = name
        self.failures = failures
        super().__init__(name, failures)

    def __str__(self) -> str:
        return self.format_msg()

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Returns the rank and the failure of the process that failed first."""
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """Returns what the error says."""
        rank, first = self.get_first_failure()
        text = first.traceback
        return (
            f"{self.name} failed: rank {rank} ended first, with "
            + (f"signal {-first.exitcode}" if first.exitcode < 0 else f"exit code {first.exitcode}")
            + (f":\n{text}" if text else ". Its output above says more.")
        )


class ErrorHandler:
    """What record does with an exception; a class of your own may tell it to others too."""

    def initialize(self) -> None:
        """Is called before the function; here it has signals like SIGSEGV print tracebacks."""
        with contextlib.suppress(Exception):  # where outputs are no files
            faulthandler.enable(all_threads=True)

    def record_exception(self, e: BaseException) -> None:
        """Writes an exception to the file that the launcher reads, if there is one."""
        text = "".join(traceback.format_exception(e))
        facts = {"py_callstack": text, "timestamp": str(int(time.time()))}
        self._write({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": facts}})

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Writes what a process of this process has written, for the launcher of this one.

        Args:
            rootcause_error_file: what that one has written.
            error_code: its exit code, 0 to say none.
        """
        with open(rootcause_error_file) as file:
            told = json.load(file)
        if error_code and isinstance(told.get("message"), dict):
            told["message"]["errorCode"] = error_code
        self._write(told)

    def _write(self, told: dict[str, Any]) -> None:
        path = os.environ.get(ERROR_FILE)
        if not path:
            return
        try:
            with replace_when_complete(path) as file:
                file.write(json.dumps(told).encode())
        except (OSError, RuntimeError) as problem:  # the error itself is what must be raised
            warnings.warn(f"the error cannot be written to a file: {problem}", stacklevel=3)


def record(fn: Callable[P, R], error_handler: ErrorHandler | None = None) -> Callable[P, R | None]:
    """Has the launcher print the traceback of what a function raises, for the main function.

    Args:
        fn: the function. Where it starts processes itself, what is told is why those failed.
        error_handler: what is done with an exception; see ErrorHandler.

    Returns:
        The function; sys.exit(0) in it returns None.

    Example:
        >>> @torch.distributed.elastic.multiprocessing.errors.record
        ... def main():
        ...     return "done"
        >>> main()
        'done'
    """
    handler = ErrorHandler() if error_handler is None else error_handler

    @functools.wraps(fn)
    def recording(*args: P.args, **kwargs: P.kwargs) -> R | None:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except ChildFailedError as error:
            _, first = error.get_first_failure()
            if os.path.isfile(first.error_file):  # one of this machine that is still there
                handler.dump_error_file(first.error_file, first.exitcode)
            else:
                handler.record_exception(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return recording
