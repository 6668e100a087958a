"""How a process of a job tells its launcher why it failed.

The launcher gives each process the name of a file, TORCHELASTIC_ERROR_FILE; record writes the
traceback there, as JSON in the form that other launchers of PyTorch read too.
"""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["ChildFailedError", "record"]

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"


class ChildFailedError(Exception):
    """That processes of a job failed.

    Args:
        name: of the program.
        failures: the rank, exit code and traceback of each, the first one first.
    """

    def __init__(self, name: str, failures: list[tuple[int, int, str]]) -> None:
        rank, code, text = failures[0]
        super().__init__(
            f"{name} failed: rank {rank} ended first, with "
            + (f"signal {-code}" if code < 0 else f"exit code {code}")
            + (f":\n{text}" if text else ". Its output above says more.")
        )
        self.name = name
        self.failures = failures


def record(fn: Callable[P, R]) -> Callable[P, R]:
    """Has the launcher print the traceback of what a function raises, for the main function.

    Example:
        >>> @torch.distributed.elastic.multiprocessing.errors.record
        ... def main():
        ...     return "done"
        >>> main()
        'done'
    """

    @functools.wraps(fn)
    def recording(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            _write(error)
            raise

    return recording


def _write(error: Exception) -> None:
    path = os.environ.get(ERROR_FILE)
    if not path:
        return
    message = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))},
    }
    with open(path, "w") as file:
        json.dump({"message": message}, file)


def read_error(path: str) -> str:
    """Returns the traceback that a process left, or nothing."""
    try:
        with open(path) as file:
            content: Any = json.load(file)
        return content["message"]["extraInfo"]["py_callstack"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
