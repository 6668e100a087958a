"""Small tables of bytes that processes share, through which they find each other.

Owns the operations, written once on a dict (_OPERATIONS), HashStore among the threads of a process,
and PrefixStore, that gives a part of a store to each user. The others have files of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from rushlight.distributed.errors import DistStoreError, QueueEmptyError

__all__ = ["HashStore", "PrefixStore", "Store"]

_DEFAULT_TIMEOUT = timedelta(minutes=5)

Table = dict[str, bytes | list[bytes]]


def seconds_of(timeout: timedelta) -> float:
    """Returns a timeout in seconds.

    Raises:
        TypeError: unless it is a timedelta.
    """
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout!r}"
        )
    return timeout.total_seconds()


class Missing(Exception):
    """That an operation must wait for a key."""


class LateError(DistStoreError):
    """That a key was not set in time."""


def _value(table: Table, key: str) -> bytes:
    value = table.get(key)
    if not isinstance(value, bytes):
        raise Missing
    return value


def _queue(table: Table, key: str) -> list[bytes]:
    queue = table.setdefault(key, [])
    if not isinstance(queue, list):
        raise DistStoreError(f"the key {key!r} holds a value, not a queue. Use another key.")
    return queue


def _set(table: Table, key: str, value: bytes) -> None:
    table[key] = value


def _add(table: Table, key: str, amount: bytes) -> bytes:
    before = table.get(key, b"0")
    try:
        total = int(before) + int(amount)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        raise DistStoreError(f"add: the key {key!r} holds {before!r}, not an integer.") from None
    table[key] = text = str(total).encode()
    return text


def _append(table: Table, key: str, value: bytes) -> None:
    table[key] = (_value(table, key) if key in table else b"") + value


def _compare_set(table: Table, key: str, expected: bytes, desired: bytes) -> bytes:
    before = table.get(key)
    if before is None and expected:
        return expected
    if before is None or before == expected:
        table[key] = before = desired
    return _value(table, key)


def _delete(table: Table, key: str) -> bytes:
    return b"1" if table.pop(key, None) is not None else b""


def _check(table: Table, *keys: str) -> bytes:
    return b"1" if all(key in table for key in keys) else b""


def _wait(table: Table, *keys: str) -> None:
    if not _check(table, *keys):
        raise Missing


def _count(table: Table) -> bytes:
    return str(len(table)).encode()


def _list(table: Table) -> bytes:
    return "\0".join(table).encode()


def _push(table: Table, key: str, value: bytes) -> None:
    _queue(table, key).append(value)


def _pop(table: Table, key: str) -> bytes:
    queue = _queue(table, key) if key in table else []
    if not queue:
        raise Missing
    value = queue.pop(0)
    if not queue:
        del table[key]
    return value


def _length(table: Table, key: str) -> bytes:
    return str(len(_queue(table, key)) if key in table else 0).encode()


# What a store does, by name: the function, and whether it changes the table. The arguments are
# keys, but for as many at the end as _VALUES says.
_OPERATIONS: dict[str, tuple[Callable[..., bytes | None], bool]] = {
    "set": (_set, True),
    "get": (_value, False),
    "add": (_add, True),
    "append": (_append, True),
    "compare_set": (_compare_set, True),
    "delete_key": (_delete, True),
    "check": (_check, False),
    "wait": (_wait, False),
    "num_keys": (_count, False),
    "list_keys": (_list, False),
    "queue_push": (_push, True),
    "queue_pop": (_pop, True),
    "queue_len": (_length, False),
}
_VALUES = {"set": 1, "add": 1, "append": 1, "compare_set": 2, "queue_push": 1}


def operate(table: Table, name: str, args: Sequence[bytes]) -> bytes:
    """Runs an operation on a table.

    Raises:
        Missing: if it has to wait for a key.
    """
    keys = len(args) - _VALUES.get(name, 0)
    decoded = [arg.decode() if i < keys else arg for i, arg in enumerate(args)]
    return _OPERATIONS[name][0](table, *decoded) or b""


def changes(name: str) -> bool:
    """Returns whether an operation changes the table."""
    return _OPERATIONS[name][1]


def encoded(value: str | bytes) -> bytes:
    """Returns a value as the bytes that are kept."""
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """A table of bytes that processes share. Values may be given as str; they come back as bytes.

    Those who make a store of their own override set, get, add and the other methods they use.
    """

    def __init__(self) -> None:
        self._timeout = _DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long operations wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long operations wait for a key."""
        seconds_of(timeout)
        self._timeout = timeout

    def _call(self, name: str, *args: str | bytes, timeout: timedelta | None = None) -> bytes:
        """Runs an operation, waiting for keys; overridden by each kind of store."""
        raise NotImplementedError(f"{type(self).__name__}.{name}: this store does not have it.")

    def _late(self, name: str, args: Sequence[bytes], seconds: float) -> LateError:
        """The error of an operation that waited in vain."""
        keys = ", ".join(arg.decode(errors="replace") for arg in args)
        return LateError(
            f"{type(self).__name__}.{name}: wait timeout after {seconds * 1000:.0f}ms, "
            f"keys: {keys}. Another process did not set them in time: see whether it still runs."
        )

    def set(self, key: str, value: str | bytes) -> None:
        """Sets a key."""
        self._call("set", key, value)

    def get(self, key: str) -> bytes:
        """Returns the value of a key, waiting until it is set.

        Raises:
            DistStoreError: if it is not set in time.

        Example:
            >>> store = torch.distributed.HashStore()
            >>> store.set("key", "value")
            >>> store.get("key")
            b'value'
        """
        return self._call("get", key)

    def add(self, key: str, value: int) -> int:
        """Adds to the number at a key, 0 if it is not set, and returns the sum."""
        return int(self._call("add", key, str(int(value))))

    def append(self, key: str, value: str | bytes) -> None:
        """Puts bytes behind those of a key."""
        if self.has_extended_api():
            self._call("append", key, value)
            return
        value = encoded(value)
        before = self.compare_set(key, b"", b"")
        while (now := self.compare_set(key, before, before + value)) != before + value:
            before = now

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Sets a key if it has the expected value, or is not set and none is expected.

        Returns:
            The value of the key then; the expected one if it is not set.
        """
        return self._call("compare_set", key, expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        """Deletes a key and returns whether it was there."""
        return bool(self._call("delete_key", key))

    def check(self, keys: list[str]) -> bool:
        """Returns whether all these keys are set."""
        return bool(self._call("check", *keys))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Waits until all these keys are set.

        Raises:
            DistStoreError: if they are not set in time.
        """
        self._call("wait", *keys, timeout=timeout)

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Waits until world_size callers have come to the barrier of this key.

        Raises:
            DistStoreError: if they do not come in time.
        """
        arrived = self.add(f"{key}/arrived", 1)
        done = f"{key}/done {(arrived - 1) // world_size}"
        if arrived % world_size == 0:
            self.set(done, "")
            return
        try:
            self.wait([done]) if timeout is None else self.wait([done], timeout)
        except DistStoreError as error:
            arrived = (self.add(f"{key}/arrived", 0) - 1) % world_size + 1
            raise DistStoreError(
                f"barrier timeout: {arrived} of {world_size} callers came to {key!r}. {error}"
            ) from None

    def clone(self) -> Store:
        """Returns a store of the same table, for another thread to wait in."""
        raise NotImplementedError(f"{type(self).__name__}.clone: this store does not have it.")

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Returns the values of several keys, waiting for them."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[str] | list[bytes]) -> None:
        """Sets several keys.

        Raises:
            ValueError: unless there is a value for each.
        """
        if len(keys) != len(values):
            raise ValueError(f"multi_set: {len(keys)} keys, but {len(values)} values.")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def num_keys(self) -> int:
        """Returns how many keys there are."""
        return int(self._call("num_keys"))

    def list_keys(self) -> list[str]:
        """Returns all keys."""
        text = self._call("list_keys").decode()
        return text.split("\0") if text else []

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Puts a value at the end of the queue of a key."""
        self._call("queue_push", key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the value at the head of the queue of a key, which one caller alone gets.

        Raises:
            QueueEmptyError: if there is none and `block` is false.
            DistStoreError: if none comes in time.
        """
        if block:
            return self._call("queue_pop", key)
        try:
            return self._call("queue_pop", key, timeout=timedelta(0))
        except LateError:
            raise QueueEmptyError(f"queue_pop: the queue {key!r} is empty.") from None

    def queue_len(self, key: str) -> int:
        """Returns how many values wait in the queue of a key."""
        return int(self._call("queue_len", key))

    def has_extended_api(self) -> bool:
        """Returns whether append, multi_get and multi_set are single operations of this store."""
        return type(self)._call is not Store._call


class HashStore(Store):
    """A store for the threads of this process."""

    def __init__(self) -> None:
        super().__init__()
        self._table: Table = {}
        self._changed = threading.Condition()

    def clone(self) -> HashStore:
        return self

    def _call(self, name: str, *args: str | bytes, timeout: timedelta | None = None) -> bytes:
        seconds = seconds_of(self._timeout if timeout is None else timeout)
        end = time.monotonic() + seconds
        coded = [encoded(arg) for arg in args]
        with self._changed:
            while True:
                try:
                    result = operate(self._table, name, coded)
                except Missing:
                    if not self._changed.wait(end - time.monotonic()) and end <= time.monotonic():
                        raise self._late(name, coded, seconds) from None
                else:
                    if changes(name):
                        self._changed.notify_all()
                    return result


class PrefixStore(Store):
    """A part of a store: the keys that begin with a prefix.

    Args:
        prefix: what stands before the keys.
        store: where they are kept.

    Example:
        >>> whole = torch.distributed.HashStore()
        >>> torch.distributed.PrefixStore("mine", whole).set("key", "value")
        >>> whole.get("mine/key")
        b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        if not isinstance(store, Store):
            kind = ValueError if store is None else TypeError
            raise kind(f"PrefixStore: store must be a Store, not {store!r}.")
        self._prefix = prefix
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The store that holds the keys."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        """The store that holds the keys, of prefixes within prefixes; programs use this name."""
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._key(key), encoded(value))

    def get(self, key: str) -> bytes:
        return self._store.get(self._key(key))

    def add(self, key: str, value: int) -> int:
        return self._store.add(self._key(key), value)

    def append(self, key: str, value: str | bytes) -> None:
        if self._store.has_extended_api():
            self._store.append(self._key(key), encoded(value))
        else:
            super().append(key, value)

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        return self._store.compare_set(
            self._key(key), encoded(expected_value), encoded(desired_value)
        )

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._key(key))

    def check(self, keys: list[str]) -> bool:
        return self._store.check([self._key(key) for key in keys])

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        named = [self._key(key) for key in keys]
        self._store.wait(named) if timeout is None else self._store.wait(named, timeout)

    def clone(self) -> PrefixStore:
        return PrefixStore(self._prefix, self._store.clone())

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return self._store.multi_get([self._key(key) for key in keys])

    def multi_set(self, keys: list[str], values: list[str] | list[bytes]) -> None:
        self._store.multi_set([self._key(key) for key in keys], [encoded(v) for v in values])

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = self._key("")
        return [key[len(start) :] for key in self._store.list_keys() if key.startswith(start)]

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._key(key), encoded(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._key(key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._key(key))
