"""How a process learns that a worker of a library's own loader died.

The loader here waits on a channel to each worker, which ends with it, and needs none of this.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Iterable
from types import FrameType

_workers: dict[int, tuple[int, ...]] = {}  # the processes of each loader's iterator, by its id
_is_handled = False


def _set_worker_signal_handlers() -> None:
    """Lets a worker print where it was when it crashes."""
    faulthandler.enable()


def _set_worker_pids(key: int, pids: Iterable[int]) -> None:
    """Begins to watch processes."""
    _workers[key] = tuple(pids)


def _remove_worker_pids(key: int) -> None:
    """Watches them no longer."""
    _workers.pop(key, None)


def _error_if_any_worker_fails() -> None:
    """Looks at the processes that are watched.

    Raises:
        RuntimeError: if one was killed, or left with an error; its iterator is watched no longer.
    """
    for key, pids in list(_workers.items()):
        for pid in pids:
            try:  # without WNOWAIT its exit code would be lost to the multiprocessing module
                end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # it was already waited for
                continue
            if end is None or (end.si_code == os.CLD_EXITED and end.si_status == 0):
                continue
            _remove_worker_pids(key)
            if end.si_code == os.CLD_EXITED:
                how = f"exited unexpectedly with exit code {end.si_status}"
            else:
                how = f"is killed by signal: {signal.strsignal(end.si_status)}"
            raise RuntimeError(
                f"DataLoader worker (pid {pid}) {how}. Its own output may say why; num_workers=0 "
                "makes batches in this process."
            )


def _set_SIGCHLD_handler() -> None:
    """Looks at the workers whenever a child of this process ends, before its former handler."""
    global _is_handled
    if _is_handled or threading.current_thread() is not threading.main_thread():
        return
    former = signal.getsignal(signal.SIGCHLD)

    def handle(number: int, frame: FrameType | None) -> None:
        _error_if_any_worker_fails()
        if callable(former):
            former(number, frame)

    signal.signal(signal.SIGCHLD, handle)
    _is_handled = True
