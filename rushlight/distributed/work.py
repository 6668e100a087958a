"""Work that goes on while the program does other things, and the thread that does it in order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import ParamSpec, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.store import seconds_of
from rushlight.futures import Future

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["Work", "Worker", "in_mode_of_caller"]


class Work(Future):
    """A collective that was begun with async_op=True, or a message on its way.

    Args:
        results: the tensors that it fills, none by default.
    """

    def __init__(self, results: list[Tensor] | None = None) -> None:
        super().__init__()
        self._results = [] if results is None else results

    def run(self, operation: Callable[[], None]) -> None:
        """Does the work and keeps what it raises for those who wait."""
        try:
            operation()
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(self._results)

    def is_completed(self) -> bool:
        """Returns whether it has ended, well or not."""
        return self.done()

    def is_success(self) -> bool:
        """Returns whether it has ended well."""
        return self.done() and self._error is None

    def exception(self) -> BaseException | None:
        """Returns what it raised."""
        return self._error

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits for the end and returns True; then the results may be used.

        Raises:
            DistBackendError: if it takes longer than `timeout`.
            DistError: what the work raised.
        """
        if not self._is_set.wait(None if timeout is None else seconds_of(timeout)):
            raise DistBackendError(f"Work.wait: the operation did not end within {timeout}.")
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """Waits for the end."""
        self.wait()

    def result(self) -> list[Tensor]:
        """Returns the tensors that it filled.

        Raises:
            RuntimeError: before the end.
        """
        return self.value()

    def get_future(self) -> Future:
        """Returns the future of the results, for then()."""
        return self.then(lambda done: done.value())

    def source_rank(self) -> int:
        """Returns where a message came from.

        Raises:
            RuntimeError: if this is no message that arrived.
        """
        raise RuntimeError("source_rank: only the work of irecv has a source.")

    _source_rank = source_rank


_Work = Work  # the name that backends of programs know it by


def in_mode_of_caller(operation: Callable[P, R]) -> Callable[P, R]:
    """Returns an operation for another thread, where it is in inference mode if this one is now.

    Only there tensors can be written to that were made in it.
    """
    if not rl.is_inference_mode_enabled():
        return operation
    return rl.inference_mode()(operation)


class Worker:
    """Runs what it is given one after the other, in a thread that starts when it is needed."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Work, Callable[[], None]] | None] = queue.SimpleQueue()
        self._last: Work | None = None
        self._thread: threading.Thread | None = None

    def put(self, operation: Callable[[], None], results: list[Tensor]) -> Work:
        """Returns the work of running an operation after those that were put before."""
        work = self._last = Work(results)
        self._tasks.put((work, in_mode_of_caller(operation)))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="collectives", daemon=True)
            self._thread.start()
        return work

    def is_idle(self) -> bool:
        """Returns whether all has been done."""
        return self._last is None or self._last.done()

    def stop(self) -> None:
        """Ends the thread after what waits."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._tasks.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while task := self._tasks.get():
            work, operation = task
            work.run(operation)
            del task, work, operation
