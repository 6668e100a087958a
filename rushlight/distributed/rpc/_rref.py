"""References to values in other processes, and the values that others refer to.

A value lives as long as there are references to it in any process. Each reference has a number;
the owner keeps the set of those that live. Who sends a copy tells the owner its number first, and
of its own end afterwards, over the same connection: so the set is never empty too early.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rushlight import Tensor
from rushlight.distributed import autograd
from rushlight.distributed.rpc._agent import WorkerInfo, agent
from rushlight.distributed.rpc._agent import _is_current_rpc_agent_set as _has_agent
from rushlight.distributed.rpc._pickling import thread
from rushlight.distributed.rpc.functions import async_execution
from rushlight.futures import Future

T = TypeVar("T")
Id = tuple[int, int]  # the rank that made it, and a number

__all__ = ["PyRRef", "RRef", "create_remote", "forget_values"]


class _Value:
    """A value that others refer to."""

    def __init__(self) -> None:
        self.future = Future()
        self.references: set[Id] = set()
        self.ended_early: set[Id] = set()  # before they were told


_lock = threading.Lock()
_values: dict[Id, _Value] = {}
_numbers = itertools.count()


def _new_id() -> Id:
    return agent().me.id, next(_numbers)


def _value(key: Id) -> _Value:
    with _lock:
        return _values.setdefault(key, _Value())


def _begin(key: Id, reference: Id) -> None:
    """On the owner: there is another reference."""
    with _lock:
        value = _values.setdefault(key, _Value())
        if reference in value.ended_early:
            value.ended_early.discard(reference)
        else:
            value.references.add(reference)


def _end(key: Id, reference: Id) -> None:
    """On the owner: a reference has ended."""
    dropped = None  # after the lock: its end may run any code
    with _lock:
        value = _values.get(key)
        if value is None:
            return
        if reference in value.references:
            value.references.discard(reference)
            if not value.references and not value.ended_early:
                dropped = _values.pop(key)
        else:
            value.ended_early.add(reference)
    del dropped


def _release(owner: int, key: Id, reference: Id) -> None:
    # Runs wherever the interpreter collects garbage, so it must not wait for a lock.
    if _has_agent():
        agent().notify(owner, _end, key, reference)


def forget_values() -> None:
    """Lets go of all values."""
    _values.clear()


def _create(key: Id, func: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """On the owner: computes a value."""
    future = _value(key).future
    try:
        result = func(*args, **kwargs)
    except BaseException as error:
        future.set_exception(error)
        return
    if getattr(func, "answers_later", False):
        result.add_done_callback(lambda done: _copy_result(done, future))
    else:
        future.set_result(result)


def _copy_result(done: Future, to: Future) -> None:
    try:
        to.set_result(done.value())
    except BaseException as error:
        to.set_exception(error)


@async_execution
def _fetch(key: Id) -> Future:
    """On the owner: the value."""
    return _value(key).future


@async_execution
def _invoke(key: Id, name: str, args: Any, kwargs: Any) -> Future:
    """On the owner: what a method of the value returns."""
    result = Future()

    def run(ready: Future) -> None:
        try:
            method = getattr(ready.value(), name)
            returned = method(*args, **kwargs)
        except BaseException as error:
            result.set_exception(error)
            return
        if getattr(method, "answers_later", False):
            returned.add_done_callback(lambda done: _copy_result(done, result))
        else:
            result.set_result(returned)

    _value(key).future.add_done_callback(run)
    return result


def _backward(key: Id, context: int, retain_graph: bool) -> None:
    """On the owner: backward from the value."""
    value = _value(key).future.wait()
    if not isinstance(value, Tensor):
        raise RuntimeError(f"backward: the RRef refers to {type(value).__name__}, not to a tensor.")
    if context == -1:
        value.backward(retain_graph=retain_graph)
    else:
        autograd.backward(context, [value], retain_graph)


class RRef(Generic[T]):
    """A reference to a value that stays in the process that has it, its owner.

    It can be sent in calls. The value lives until no process has a reference.

    Args:
        value: of this process.
        type_hint: accepted for PyTorch's sake.
    """

    def __init__(self, value: T, type_hint: Any = None) -> None:
        key = _new_id()
        self._bind(key, agent().me, _new_id())
        _begin(key, self._reference)
        _value(key).future.set_result(value)

    def _bind(self, key: Id, owner: WorkerInfo, reference: Id) -> None:
        self._key, self._owner, self._reference = key, owner, reference
        self._created: Future | None = None  # of the call that computes the value, while in doubt
        weakref.finalize(self, _release, owner.id, key, reference).atexit = False

    def __reduce__(self) -> Any:
        if not thread.writes_call:
            raise RuntimeError(
                "Can not pickle rref in python pickler, rref can only be pickled when using RPC"
            )
        reference = _new_id()
        agent().notify_now(self._owner.id, _begin, self._key, reference)
        return _received, (self._key, self._owner, reference)

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self.is_owner() else "UserRRef"
        return f"{kind}(id={self._key}, owner={self._owner.name})"

    def is_owner(self) -> bool:
        """Whether this process has the value."""
        return self._owner == agent().me

    def owner(self) -> WorkerInfo:
        """Returns the process that has the value."""
        return self._owner

    def owner_name(self) -> str:
        """Returns its name."""
        return self._owner.name

    def confirmed_by_owner(self) -> bool:
        """Whether the owner is known to have the value, or to compute it."""
        return self.is_owner() or self._created is None or self._created.done()

    def to_here(self, timeout: float = -1.0) -> T:
        """Waits for the value and returns a copy; in its owner, the value itself.

        Raises:
            Exception: what the function raised that was to compute it.
            RuntimeError: if it takes longer than `timeout` seconds.
        """
        if self.is_owner():
            return _value(self._key).future.wait()
        value = agent().call(self._owner, _fetch, (self._key,), {}, timeout).wait()
        self._created = None
        return value

    def local_value(self) -> T:
        """Waits for the value and returns it.

        Raises:
            RuntimeError: in other processes than the owner.
        """
        if not self.is_owner():
            raise RuntimeError(
                f"local_value: {self!r} is not of this process, {agent().me.name}. Call to_here() "
                "for a copy."
            )
        return _value(self._key).future.wait()

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Computes gradients from the value, a tensor of one element, where it is.

        Args:
            dist_autograd_ctx_id: the context that gets them, see distributed.autograd; by default
                they go to the `.grad` of the owner's leaves.
            retain_graph: whether backward shall be possible again.
        """
        args = (self._key, dist_autograd_ctx_id, retain_graph)
        agent().call(self._owner, _backward, args, {}, 0).wait()

    def rpc_sync(self, timeout: float = -1.0) -> Any:
        """Returns an object whose methods are those of the value, called there."""
        return _Proxy(
            self, lambda func, args: agent().call(self._owner, func, args, {}, timeout).wait()
        )

    def rpc_async(self, timeout: float = -1.0) -> Any:
        """Returns an object whose methods call those of the value, and return futures."""
        return _Proxy(self, lambda func, args: agent().call(self._owner, func, args, {}, timeout))

    def remote(self, timeout: float = -1.0) -> Any:
        """Returns an object whose methods call those of the value, and return references."""
        return _Proxy(self, lambda func, args: create_remote(self._owner, func, args, {}, timeout))


PyRRef = RRef


class _Proxy:
    """The methods of a value in another process."""

    def __init__(self, rref: RRef, call: Callable[[Any, Any], Any]) -> None:
        self._rref = rref
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            return self._call(_invoke, (self._rref._key, name, args, kwargs))

        return method


def _received(key: Id, owner: WorkerInfo, reference: Id) -> RRef:
    made = RRef.__new__(RRef)
    made._bind(key, owner, reference)
    return made


def create_remote(
    to: WorkerInfo, func: Callable[..., Any], args: Any, kwargs: Any, timeout: float
) -> RRef:
    """Begins func(*args, **kwargs) in a process, and returns a reference to the result there."""
    if not callable(func):
        raise TypeError("function should be callable.")
    made = _received(_new_id(), to, _new_id())
    agent().notify_now(to.id, _begin, made._key, made._reference)
    call = (made._key, func, tuple(args or ()), kwargs or {})
    made._created = agent().call(to, _create, call, {}, timeout)
    return made
