"""Timers of processes, and the server that ends those whose time is over."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from sys import _getframe
from typing import Any

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

_log = logging.getLogger(__name__)


@dataclass
class TimerRequest:
    """That a timer begins, or ends if expiration_time is negative.

    Args:
        worker_id: whose it is.
        scope_id: which of its timers; one that begins again takes the place of the first.
        expiration_time: when its time is over, in seconds since 1970.
    """

    worker_id: Any
    scope_id: str
    expiration_time: float


class TimerClient(ABC):
    """How a process begins and ends its timers."""

    @abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Begins a timer."""

    @abstractmethod
    def release(self, scope_id: str) -> None:
        """Ends it."""


class RequestQueue(ABC):
    """How requests come to the server."""

    @abstractmethod
    def size(self) -> int:
        """Returns about how many there are."""

    @abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Returns up to `size` requests, those that come within `timeout` seconds."""


class TimerServer(ABC):
    """A thread that looks at the timers, and ends processes.

    Args:
        request_queue: where requests come from.
        max_interval: seconds between two looks at most.
        daemon: whether the thread ends with the program.
    """

    def __init__(
        self, request_queue: RequestQueue, max_interval: float, daemon: bool = True
    ) -> None:
        self._request_queue = request_queue
        self._max_interval = max_interval
        self._daemon = daemon
        self._thread: threading.Thread | None = None
        self._stops = threading.Event()

    @abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Takes requests in."""

    @abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Forgets the timers of processes."""

    @abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """Returns the timers whose time is over at a point of time, by process."""

    @abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """Ends a process, and returns whether it has ended."""

    def start(self) -> None:
        """Starts the thread, unless it runs."""
        if self._thread is None:
            self._stops.clear()
            self._thread = threading.Thread(target=self._watch, daemon=self._daemon)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stops.set()
        if self._thread is not None:
            self._thread.join(self._max_interval + 1)
            self._thread = None

    def _watch(self) -> None:
        while not self._stops.is_set():
            try:
                self._run_watchdog()
            except Exception:
                _log.exception("a look at the timers failed")
                self._stops.wait(self._max_interval)

    def _run_watchdog(self) -> None:
        """Looks once."""
        size = max(1, self._request_queue.size())
        self.register_timers(self._request_queue.get(size, self._max_interval))
        ended: set[Any] = set()
        for worker, expired in self.get_expired_timers(time.time()).items():
            _log.info("the time of %s is over: %s", worker, [t.scope_id for t in expired])
            try:
                if self._reap_worker(worker):
                    ended.add(worker)
            except Exception:
                _log.exception("process %s cannot be ended, and is left alone", worker)
                ended.add(worker)
        self.clear_timers(ended)


_client: TimerClient | None = None


def configure(timer_client: TimerClient | None) -> None:
    """Sets how this process begins and ends its timers."""
    global _client
    _client = timer_client


@contextmanager
def expires(
    after: float, scope: str | None = None, client: TimerClient | None = None
) -> Iterator[None]:
    """Gives a with block so many seconds; if it takes longer the process is killed.

    Args:
        after: the seconds.
        scope: the timer's name; by default the place of the block, so that one in a function that
            calls itself counts from the last call.
        client: how timers begin and end; what configure has set by default.

    Raises:
        RuntimeError: if there is none.

    Example:
        >>> import multiprocessing
        >>> from rushlight.distributed.elastic import timer
        >>> client = timer.LocalTimerClient(multiprocessing.Queue())
        >>> with timer.expires(after=60, client=client):
        ...     pass
    """
    client = _client if client is None else client
    if client is None:
        raise RuntimeError("configure timer client before using countdown timers.")
    if scope is None:
        place = _getframe(1)
        while place.f_globals["__name__"] == "contextlib" and place.f_back is not None:
            place = place.f_back
        scope = f"{place.f_code.co_filename}#{place.f_lineno}"
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)
