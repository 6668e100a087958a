"""A store in a file, for processes that see the same file system."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from datetime import timedelta

from rushlight.distributed.errors import DistStoreError
from rushlight.distributed.records import SIZE, pack, unpack
from rushlight.distributed.store import Missing, Store, Table, changes, encoded, operate, seconds_of

__all__ = ["FileStore"]

_OWN_KEYS = ("\1users", "\1gone")  # how many have opened the file, and closed it


class FileStore(Store):
    """A store in a file of a file system that all processes see.

    The file is a list of the operations that changed the table; each process replays what is new.

    Args:
        file_name: its path; the last of world_size processes to end deletes the file.
        world_size: the number of processes that use it; -1 if the file is to stay.
    """

    _POLL = 0.01  # seconds between two looks at the file

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = file_name
        self._table: Table = {}
        self._read = 0
        self._lock = threading.Lock()
        self._world_size = world_size
        self._pid = os.getpid()
        if world_size > 0:
            self.add(_OWN_KEYS[0], 1)

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._path

    def clone(self) -> FileStore:
        return self

    def num_keys(self) -> int:
        return len(self.list_keys()) + 1  # PyTorch counts one of its own

    def list_keys(self) -> list[str]:
        return [key for key in super().list_keys() if key not in _OWN_KEYS]

    def _call(self, name: str, *args: str | bytes, timeout: timedelta | None = None) -> bytes:
        seconds = seconds_of(self._timeout if timeout is None else timeout)
        end = time.monotonic() + seconds
        coded = [encoded(arg) for arg in args]
        while True:
            try:
                return self._once(name, coded)
            except Missing:
                if time.monotonic() >= end:
                    raise self._late(name, coded, seconds) from None
                time.sleep(self._POLL)

    def _once(self, name: str, args: list[bytes]) -> bytes:
        with self._lock:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._replay(file)
                result = operate(self._table, name, args)
                if changes(name):
                    record = pack([name.encode(), *args])
                    os.pwrite(file, record, self._read)
                    self._read += len(record)
                return result
            finally:
                os.close(file)

    def _replay(self, file: int) -> None:
        size = os.fstat(file).st_size
        if size < self._read:
            raise DistStoreError(
                f"FileStore: {self._path} was deleted while it was in use. Each job needs a file "
                "of its own, and world_size must be the number of processes."
            )
        data = os.pread(file, size - self._read, self._read)
        start = 0
        try:
            while start < len(data):
                (size,) = SIZE.unpack_from(data, start)
                name, *args = unpack(data[start + SIZE.size : start + SIZE.size + size])
                operate(self._table, name.decode(), args)
                start += SIZE.size + size
        except (struct.error, ValueError, KeyError, TypeError) as error:
            raise DistStoreError(
                f"FileStore: {self._path} is not the file of a store: {error!r}. Each job needs a "
                "file of its own, which it makes itself."
            ) from None
        self._read += len(data)

    def __del__(self) -> None:
        if os is None or getattr(self, "_world_size", -1) <= 0 or os.getpid() != self._pid:
            return  # without os the interpreter is ending
        try:
            users = max(self._world_size, int(self.get(_OWN_KEYS[0])))
            if self.add(_OWN_KEYS[1], 1) >= users:
                os.unlink(self._path)
        except (OSError, DistStoreError):
            pass  # the folder is gone already
