"""A store over the network: one process, the master, has the table, the others ask it.

Owns the server, a thread of the master's process for each connection, and the client. A request is
a record, as in records.py, of operation, seconds to wait and arguments; an answer is a byte that
says what the rest is. Nothing is pickled: who reaches the port can change the table, but not run
code.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
import weakref
from datetime import timedelta
from typing import ClassVar

from rushlight.distributed.errors import DistNetworkError, DistStoreError
from rushlight.distributed.records import SIZE, pack, unpack
from rushlight.distributed.store import HashStore, LateError, Store, encoded, seconds_of

__all__ = ["TCPStore"]

_MOST = 1 << 30  # bytes of a request: more is a stranger who speaks another language
_BACKLOG = 1024
_DONE, _FAILED, _LATE = b"\0", b"\1", b"\2"
_GRACE = 10  # seconds that an answer may take longer than it was asked to wait


class TCPStore(Store):
    """A store that the processes of several machines share.

    Args:
        host_name: where the master listens.
        port: its port; 0 lets the master take a free one.
        world_size: how many processes will use it, the master included, if that is known.
        is_master: whether this process has the table.
        timeout: how long operations wait, and connecting.
        wait_for_workers: whether to wait until all world_size processes are here.
        multi_tenant: whether stores of this process with the same port share a server, which stays
            as long as one of them.
        master_listen_fd: a socket that listens already, for the master.
        use_libuv: kept as libuvBackend; it chooses between PyTorch's two servers.

    Where the launcher has the table, at the port in MASTER_PORT, a master is a client of it.

    Raises:
        ValueError: if world_size is 0.
        DistNetworkError: if the master cannot be reached in time, or the port is taken.

    Example:
        >>> store = torch.distributed.TCPStore("127.0.0.1", 0, 1, is_master=True)
        >>> store.add("count", 2)
        2
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(minutes=5),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        self.set_timeout(timeout)
        self.libuvBackend = use_libuv
        self._host = host_name
        self._connections = threading.local()
        self._is_master = is_master
        self._server: _Server | None = None
        if is_master and not _is_of_launcher(port):
            self._server = _Server.started(port, multi_tenant, master_listen_fd)
            port = self._server.port
        self._port = port
        self._connection()
        if wait_for_workers and world_size and world_size > 0:
            self._wait_for_workers(world_size, seconds_of(timeout))

    @property
    def host(self) -> str:
        """Where the master listens."""
        return self._host

    @property
    def port(self) -> int:
        """The master's port."""
        return self._port

    def own_address(self) -> str:
        """Returns this machine's address on the network that the master is reached by."""
        return self._connection().getsockname()[0]

    def _wait_for_workers(self, world_size: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        here = self.add("init/", 1)
        if not self._is_master:
            if here == world_size:
                self.set("init/all", "")
        elif here < world_size:
            try:
                self.wait(["init/all"], timedelta(seconds=max(0.0, end - time.monotonic())))
                self.delete_key("init/all")  # "init/" alone stays, as num_keys documents
            except DistStoreError:
                here = self.add("init/", 0)
                raise DistStoreError(
                    f"TCPStore: {here} of {world_size} processes joined within {seconds:g} s. "
                    "All must be started with the same address and world_size."
                ) from None

    def num_keys(self) -> int:
        """Returns how many keys there are, that of the processes that joined included."""
        return super().num_keys()

    def clone(self) -> TCPStore:
        return TCPStore(self._host, self._port, timeout=self._timeout, use_libuv=self.libuvBackend)

    def _call(self, name: str, *args: str | bytes, timeout: timedelta | None = None) -> bytes:
        seconds = seconds_of(self._timeout if timeout is None else timeout)
        coded = [encoded(arg) for arg in args]
        connection = self._connection()
        try:
            connection.settimeout(seconds + _GRACE)
            connection.sendall(pack([name.encode(), str(seconds).encode(), *coded]))
            answer = _receive(connection)
        except BaseException as error:  # the answer may still come, and must not be misread
            self._close()
            if not isinstance(error, (OSError, EOFError)):
                raise
            raise DistNetworkError(
                f"TCPStore.{name}: the connection to {self._host}:{self._port} broke: "
                f"{str(error) or 'it was closed'}. See whether the process of rank 0 still runs."
            ) from None
        kind, text = answer[:1], answer[1:]
        if kind == _LATE:
            raise self._late(name, coded, seconds)
        if kind == _FAILED:
            raise DistStoreError(f"TCPStore.{name}: {text.decode()}")
        return text

    def _connection(self) -> socket.socket:
        """The connection of this thread; one that a forked child inherited is not used."""
        mine = self._connections
        if getattr(mine, "pid", None) != os.getpid():
            mine.owner = _Connection(_connect(self._host, self._port, seconds_of(self._timeout)))
            mine.pid = os.getpid()
        return mine.owner.socket

    def _close(self) -> None:
        self._connections.owner = self._connections.pid = None


def _is_of_launcher(port: int) -> bool:
    """Whether the launcher of this process has a table at this port."""
    has_table = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") in ("True", "1")
    return has_table and os.environ.get("MASTER_PORT") == str(port)


class _Connection:
    """Closes a connection when its thread, or the store, is gone."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection

    def __del__(self) -> None:
        self.socket.close()


def _connect(host: str, port: int, seconds: float) -> socket.socket:
    """A connection to a server that may still have to start."""
    end = time.monotonic() + seconds
    pause = 0.005
    while True:
        try:
            connection = socket.create_connection((host, port), max(0.1, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() + pause >= end:
                raise DistNetworkError(
                    f"TCPStore: {host}:{port} could not be reached within {seconds:g} s: {error}. "
                    "Rank 0 must run, and its port be open."
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.5)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def _receive(connection: socket.socket, most: int = _MOST) -> bytes:
    (size,) = SIZE.unpack(_exactly(connection, SIZE.size))
    if size > most:
        raise EOFError(f"a message of {size} bytes was announced, more than a store sends")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Server:
    """The table, and the threads that answer for it, while stores hold it."""

    _shared: ClassVar[weakref.WeakValueDictionary[int, _Server]] = weakref.WeakValueDictionary()

    def __init__(self, port: int, listen_fd: int | None) -> None:
        try:
            if listen_fd is not None:
                listener = socket.socket(fileno=listen_fd)
                listener.listen(_BACKLOG)
            else:
                listener = _listening(port)
        except OSError as error:
            raise DistNetworkError(
                f"TCPStore: port {port} cannot be opened: {error}. Another program may use it: "
                "take another port, or 0 for a free one."
            ) from None
        self.port: int = listener.getsockname()[1]
        weakref.finalize(self, _stop, listener, os.getpid()).atexit = False
        threading.Thread(target=_accept, args=(listener,), name="TCPStore", daemon=True).start()

    @classmethod
    def started(cls, port: int, multi_tenant: bool, listen_fd: int | None) -> _Server:
        """A server on a port; the one that runs there already, if it may be shared."""
        server = cls._shared.get(port) if multi_tenant else None
        if server is None:
            server = cls(port, listen_fd)
            if multi_tenant:
                cls._shared[server.port] = server
        return server


def _stop(listener: socket.socket, pid: int) -> None:
    """Takes no more connections; those that exist go on, and all if a forked child drops it."""
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # closing alone does not wake its thread
    listener.close()


def _accept(listener: socket.socket) -> None:
    table = HashStore()
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_serve, args=(connection, table), daemon=True).start()


def _serve(connection: socket.socket, table: HashStore) -> None:
    with connection:
        try:
            while True:
                answer = _answer(table, unpack(_receive(connection)))
                connection.sendall(SIZE.pack(len(answer)) + answer)
        except (OSError, EOFError, ValueError, TypeError, KeyError, struct.error):
            return  # it was closed, or is no client of ours


def _answer(table: HashStore, request: list[bytes]) -> bytes:
    name, seconds, *args = request
    timeout = timedelta(seconds=float(seconds))
    try:
        return _DONE + table._call(name.decode(), *args, timeout=timeout)
    except LateError:
        return _LATE
    except DistStoreError as error:
        return _FAILED + str(error).encode()


def _listening(port: int) -> socket.socket:
    """A socket that listens on all addresses, of both versions of the protocol where they exist."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
            )
        except OSError:
            pass  # version 6 may be switched off; what else is wrong shows below
    return socket.create_server(("", port), backlog=_BACKLOG)
