"""The standard library's multiprocessing, whose queues and pipes pass tensors as shared memory.

Everything of that module is here too. Importing this one teaches its pickler to send tensors and
storages by the descriptor of their memory, see reductions.py.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]

from rushlight.multiprocessing import reductions
from rushlight.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
__all__ += multiprocessing.__all__

_strategies = ("file_descriptor", "file_system")
_strategy = _strategies[0]

reductions.register()


def get_all_sharing_strategies() -> set[str]:
    """Returns the names that set_sharing_strategy takes."""
    return set(_strategies)


def get_sharing_strategy() -> str:
    """Returns the strategy that was set last.

    Example:
        >>> torch.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Sets how many tensors may be shared at once.

    Each shared tensor holds an open file. With "file_system" this process may hold as many as the
    system allows it at most; with "file_descriptor" it keeps its limit (`ulimit -n`).

    Args:
        new_strategy: "file_descriptor" or "file_system".

    Raises:
        ValueError: for another name.
    """
    global _strategy
    if new_strategy not in _strategies:
        raise ValueError(
            f"set_sharing_strategy: unknown strategy {new_strategy!r}. Use one of {_strategies}."
        )
    if new_strategy == "file_system":
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    _strategy = new_strategy
