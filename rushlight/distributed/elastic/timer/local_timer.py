"""Timers of processes on the launcher's machine."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from multiprocessing.queues import Queue
from queue import Empty
from typing import Any

from rushlight.distributed.elastic.timer.api import (
    RequestQueue,
    TimerClient,
    TimerRequest,
    TimerServer,
)

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]


class LocalTimerClient(TimerClient):
    """How a process tells the server on its machine.

    Args:
        mp_queue: of multiprocessing; the server has it too.
    """

    def __init__(self, mp_queue: Any) -> None:
        self._mp_queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """Requests that come through a queue of multiprocessing."""

    def __init__(self, queue: Queue[TimerRequest]) -> None:
        self._queue = queue

    def size(self) -> int:
        return self._queue.qsize()

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        requests: list[TimerRequest] = []
        end = time.monotonic() + timeout
        with contextlib.suppress(Empty):
            while len(requests) < size:
                requests.append(self._queue.get(timeout=max(0.0, end - time.monotonic())))
        return requests


class LocalTimerServer(TimerServer):
    """Kills processes of this machine whose time is over.

    Args:
        mp_queue: what their clients were made with.
        max_interval: seconds between two looks at most.
        daemon: whether it ends with the program.
    """

    def __init__(self, mp_queue: Any, max_interval: float = 60, daemon: bool = True) -> None:
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers: dict[tuple[Any, str], TimerRequest] = {}

    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        for request in timer_requests:
            key = request.worker_id, request.scope_id
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_ids: set[Any]) -> None:
        for key in [key for key in self._timers if key[0] in worker_ids]:
            del self._timers[key]

    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        expired: dict[Any, list[TimerRequest]] = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                expired.setdefault(request.worker_id, []).append(request)
        return expired

    def _reap_worker(self, worker_id: Any) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker_id, signal.SIGKILL)
        return True
