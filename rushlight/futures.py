"""Results that come later, as asynchronous collectives return them, and waiting for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import GenericAlias
from typing import Any, NoReturn

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A result that another thread will set.

    Args:
        devices: accepted as PyTorch's; results are there when they are set.

    Example:
        >>> future = torch.futures.Future()
        >>> doubled = future.then(lambda done: 2 * done.value())
        >>> future.set_result(3)
        >>> doubled.wait()
        6
    """

    __class_getitem__ = classmethod(GenericAlias)  # Future[Tensor], in annotations

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._is_set = threading.Event()
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Returns whether the result, or an error, is there."""
        return self._is_set.is_set()

    def wait(self) -> Any:
        """Waits for the result and returns it, or raises the error."""
        self._is_set.wait()
        return self.value()

    def value(self) -> Any:
        """Returns the result that is there, or raises the error.

        Raises:
            RuntimeError: if there is none yet.
        """
        if not self.done():
            raise RuntimeError("value: the future has no result yet. Call wait() first.")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Returns the future of callback(self), which runs when this result is there."""
        following = Future()

        def follow(future: Future) -> None:
            try:
                following.set_result(callback(future))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(follow)
        return following

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Has callback(self) called when the result is there: now, if it is.

        What it raises is logged, and no one else's concern.
        """
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        self._call(callback)

    def set_result(self, result: Any) -> None:
        """Sets the result.

        Raises:
            RuntimeError: if there is one already.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which wait and value raise.

        Raises:
            TypeError: unless it is an exception.
        """
        if not isinstance(result, BaseException):
            raise TypeError(
                f"set_exception: {result!r} is of type {type(result)}, not an exception."
            )
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError("the future has a result already; it can be set only once.")
            self._value, self._error = value, error
            self._is_set.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable[[Future], Any]) -> None:
        try:
            callback(self)
        except Exception:
            logging.getLogger(__name__).exception("a callback of a future failed:")

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("Future: cannot be pickled. Pickle what wait() returns.")


def collect_all(futures: list[Future]) -> Future:
    """Returns the future of all these futures, as a list, which is there when they are."""
    if any(future is None for future in futures):
        raise RuntimeError("collect_all: a future is None.")
    all_done = Future()
    missing = len(futures)
    lock = threading.Lock()

    def count(_: Future) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            is_last = missing == 0
        if is_last:
            all_done.set_result(futures)

    if not futures:
        all_done.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return all_done


def wait_all(futures: list[Future]) -> list[Any]:
    """Waits for all results and returns them, or raises the first error.

    Example:
        >>> future = torch.futures.Future()
        >>> future.set_result(1)
        >>> torch.futures.wait_all([future])
        [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
