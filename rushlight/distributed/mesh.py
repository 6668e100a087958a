"""The connections between the processes of a job: messages from any rank to any other.

Owns the framing of messages, their way to those who wait for them, and the news that a process has
ended. Every rank listens, and who wants to send connects: a connection carries messages one way and
has a thread at its receiving end. A message is read when somebody wants one from its sender: into
that one's memory if it is the right one, aside if it is not; until then it waits in the network.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.errors import DistBackendError, DistNetworkError
from rushlight.distributed.store import PrefixStore, Store
from rushlight.distributed.tcp_store import TCPStore
from rushlight.distributed.work import Work, Worker

__all__ = ["Mesh", "Receipt", "channel_of"]

_HEADER = struct.Struct("<QqQ32s")  # channel, tag, number of bytes, note
_HELLO = struct.Struct("<16sIQ")  # the job's secret, the sender's rank, a channel of its own or 0
_LARGE = 1 << 16  # bytes: smaller messages go along with their header
_LOOK = 1.0  # seconds between looks at the health of the one who should send
_INTERFACE = "GLOO_SOCKET_IFNAME"  # of the environment: the network to use


def channel_of(group_name: str, purpose: str) -> int:
    """Returns the number that messages of a group carry."""
    import hashlib

    name = f"{group_name} {purpose}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little")


class Receipt(Work):
    """A message that is waited for.

    Args:
        tensor: flat and on the CPU, where it goes.
        source: the rank that sends it, None for whoever does.
        channel, tag: what the sender must have named too.
        check: raises unless the sender's note and number of bytes are as they should be.
        timeout: seconds to wait at most.
        is_alive: whether it is possible that it still comes.
        write: called when it is there.
    """

    def __init__(
        self,
        tensor: Tensor,
        source: int | None,
        channel: int,
        tag: int,
        check: Callable[[int, bytes, int], None],
        timeout: float,
        is_alive: Callable[[], bool] = lambda: True,
        write: Callable[[], None] | None = None,
    ) -> None:
        super().__init__([tensor])
        self.memory = memoryview(tensor.view(rl.uint8))
        self.source = source
        self.channel = channel
        self.tag = tag
        self._check = check
        self._timeout = timeout
        self._is_alive = is_alive
        self._write = write
        self.cancel: Callable[[Receipt], None] = lambda receipt: None

    def fits(self, sender: int, note: bytes, size: int) -> bool:
        """Returns whether a message is as it should be; else this receipt has failed."""
        try:
            self._check(sender, note, size)
        except Exception as error:
            self.set_exception(error)
            return False
        return True

    def arrived(self, sender: int) -> None:
        """Ends the waiting: the message is in the tensor."""
        self.source = sender
        if self._write is not None:
            self._write()
        self.set_result(self._results)

    def source_rank(self) -> int:
        """Returns the rank in the job that sent it."""
        if self.source is None:
            raise RuntimeError("source_rank: the message has not arrived. Call wait() first.")
        return self.source

    _source_rank = source_rank

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = self._timeout if timeout is None else timeout.total_seconds()
        end = time.monotonic() + seconds
        while not self._is_set.wait(min(_LOOK, max(0.0, end - time.monotonic()))):
            problem = None
            if not self._is_alive() and not self._is_set.wait(_LOOK):
                problem = DistNetworkError(f"recv: rank {self.source} has ended before it sent.")
            elif time.monotonic() >= end:
                problem = DistBackendError(
                    f"recv: timed out after {seconds:g} s waiting for a message from rank "
                    f"{'any' if self.source is None else self.source}."
                )
            if problem is not None:
                self.cancel(self)
                raise problem
        return super().wait()


class Mesh:
    """The connections of one process.

    Args:
        store: of the job; where the ranks listen stands there.
        rank: of this process.
        size: the number of processes.
    """

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.rank = rank
        self._size = size
        self._store = PrefixStore("mesh", store)
        self._secret = bytes.fromhex(
            self._store.compare_set("secret", "", os.urandom(16).hex()).decode()
        )
        self._listener = socket.create_server(("", 0), backlog=max(128, size))
        port = self._listener.getsockname()[1]
        self._store.set(f"address/{rank}", f"{_own_address(store)} {port}")
        self._changed = threading.Condition()  # guards the five below
        self._is_closed = False
        self._receipts: list[Receipt] = []
        self._aside: list[tuple[int, int, int, bytes, bytearray]] = []
        self._lost: dict[int, str] = {}
        self._owned: dict[tuple[int, int], socket.socket] = {}  # by rank and channel
        self._out: dict[int, socket.socket] = {}
        self._in: list[socket.socket] = []
        self._senders: dict[int, Worker] = {}
        self._locks = [threading.Lock() for _ in range(size)]
        _meshes.add(self)
        threading.Thread(target=self._accept, name="mesh", daemon=True).start()

    # Connecting and sending

    def own_connection(self, rank: int, channel: int, timeout: float) -> socket.socket:
        """Returns a connection that goes both ways, for a channel that has no others.

        Both ranks call this; the higher one connects.

        Raises:
            DistNetworkError: if it cannot be made in time.
        """
        if rank < self.rank:
            connection = self._connect(rank, channel, timeout)
            with self._changed:
                self._owned[rank, channel] = connection
            return connection
        with self._changed:
            if self._changed.wait_for(lambda: (rank, channel) in self._owned, timeout):
                return self._owned[rank, channel]
        raise DistNetworkError(f"rank {rank} did not connect to rank {self.rank} in {timeout:g} s.")

    def _connect(self, rank: int, own_channel: int, timeout: float) -> socket.socket:
        host, port = self._store.get(f"address/{rank}").decode().rsplit(" ", 1)
        try:
            connection = socket.create_connection((host, int(port)), timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(_HELLO.pack(self._secret, self.rank, own_channel))
        except OSError as error:
            raise DistNetworkError(
                f"rank {self.rank} cannot reach rank {rank} at {host}:{port}: {error}. The ranks "
                f"must see each other's machines; {_INTERFACE} chooses the network."
            ) from None
        return connection

    def send(
        self, rank: int, channel: int, tag: int, note: bytes, flat: Tensor, timeout: float
    ) -> None:
        """Sends a flat tensor of the CPU, and returns when it may be changed.

        Raises:
            DistNetworkError: if the other process has ended.
            DistBackendError: if it does not take the message in time.
        """
        memory = memoryview(flat.view(rl.uint8))
        if rank == self.rank:
            with self._changed:
                self._put_aside(rank, channel, tag, note, bytearray(memory))
            return
        with self._locks[rank]:
            if rank not in self._out:
                self._out[rank] = self._connect(rank, 0, timeout)
            connection = self._out[rank]
            header = _HEADER.pack(channel, tag, len(memory), note)
            try:
                connection.settimeout(timeout)
                if len(memory) < _LARGE:
                    connection.sendall(header + memory)
                else:
                    connection.sendall(header)
                    connection.sendall(memory)
            except BaseException as error:  # the rest of the message will never come
                connection.close()
                if isinstance(error, TimeoutError):
                    raise DistBackendError(
                        f"send: rank {rank} did not take a message of {len(memory)} bytes within "
                        f"{timeout:g} s."
                    ) from None
                if isinstance(error, OSError):
                    why = self._lost.get(rank, f"rank {rank} has ended, or left: {error}")
                    raise DistNetworkError(f"send: {why}") from None
                raise

    def sender(self, rank: int) -> Worker:
        """Returns the thread that sends to a rank what need not be waited for."""
        return self._senders.setdefault(rank, Worker())

    # Receiving

    def receive(self, receipt: Receipt) -> Receipt:
        """Begins to wait for a message."""
        with self._changed:
            for i, (sender, channel, tag, note, data) in enumerate(self._aside):
                if _wants(receipt, sender, channel, tag):
                    del self._aside[i]
                    if receipt.fits(sender, note, len(data)):
                        receipt.memory[:] = data
                        receipt.arrived(sender)
                    return receipt
            reason = self._why_lost(receipt.source)
            if reason is not None:
                receipt.set_exception(DistNetworkError(reason))
                return receipt
            receipt.cancel = self._cancel
            self._receipts.append(receipt)
            self._changed.notify_all()
        return receipt

    def _cancel(self, receipt: Receipt) -> None:
        with self._changed:
            if receipt in self._receipts:
                self._receipts.remove(receipt)

    def _why_lost(self, source: int | None) -> str | None:
        """Why nothing can come from a rank, or from any."""
        if source is not None:
            return self._lost.get(source)
        return "all other ranks have ended" if len(self._lost) == self._size - 1 > 0 else None

    def _put_aside(self, sender: int, channel: int, tag: int, note: bytes, data: bytearray) -> None:
        """Keeps a message, or gives it to who has come to wait for it since."""
        receipt = self._taken(sender, channel, tag)
        if receipt is None:
            self._aside.append((sender, channel, tag, note, data))
        elif receipt.fits(sender, note, len(data)):
            receipt.memory[:] = data
            receipt.arrived(sender)

    def _taken(self, sender: int, channel: int, tag: int) -> Receipt | None:
        """The receipt for a message, which nobody else gets."""
        for i, receipt in enumerate(self._receipts):
            if _wants(receipt, sender, channel, tag):
                return self._receipts.pop(i)
        return None

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._in.append(connection)
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        """Reads what one rank sends, until it ends."""
        sender = -1
        try:
            hello = read_exactly(connection, bytearray(_HELLO.size))
            secret, sender, own_channel = _HELLO.unpack(hello)
            if secret != self._secret or sender >= self._size:
                connection.close()  # a stranger
                return
            if own_channel:
                with self._changed:
                    self._owned[sender, own_channel] = connection
                    self._changed.notify_all()
                return
            while True:
                header = read_exactly(connection, bytearray(_HEADER.size))
                channel, tag, size, note = _HEADER.unpack(header)
                receipt = self._awaited(sender, channel, tag)
                if receipt is None:
                    data = read_exactly(connection, bytearray(size))
                    with self._changed:
                        self._put_aside(sender, channel, tag, note, data)
                elif receipt.fits(sender, note, size):
                    try:
                        read_exactly(connection, receipt.memory)
                    except (OSError, EOFError):
                        receipt.set_exception(DistNetworkError(_lost_reason(sender)))
                        raise
                    receipt.arrived(sender)
                else:
                    read_exactly(connection, bytearray(size))
        except (OSError, EOFError):
            if sender >= 0:
                self._lose(sender)

    def _awaited(self, sender: int, channel: int, tag: int) -> Receipt | None:
        """Waits until a message from a rank is wanted: this one, or else None."""
        with self._changed:
            while True:
                receipt = self._taken(sender, channel, tag)
                if receipt is not None:
                    return receipt
                if any(receipt.source in (sender, None) for receipt in self._receipts):
                    return None
                if self._is_closed:
                    raise EOFError
                self._changed.wait()

    def _lose(self, rank: int) -> None:
        reason = _lost_reason(rank)
        with self._changed:
            self._lost[rank] = reason
            self._fail(lambda receipt: self._why_lost(receipt.source) is not None, reason)

    def _fail(self, which: Callable[[Receipt], bool], reason: str) -> None:
        failed = [receipt for receipt in self._receipts if which(receipt)]
        self._receipts = [receipt for receipt in self._receipts if not which(receipt)]
        for receipt in failed:
            receipt.set_exception(DistNetworkError(reason))

    # The end

    def close(self) -> None:
        """Sends what is begun, and ends all connections."""
        for sender in self._senders.values():
            sender.stop()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for connection in self._sockets():
            with contextlib.suppress(OSError):  # the other end may be closed already
                connection.shutdown(socket.SHUT_RDWR)  # closing alone does not wake its thread
        self.close_sockets()

    def _sockets(self) -> list[socket.socket]:
        return [self._listener, *self._out.values(), *self._in, *self._owned.values()]

    def close_sockets(self) -> None:
        """Closes this process's copies of the connections, as forked children do."""
        for connection in self._sockets():
            connection.close()


def _lost_reason(rank: int) -> str:
    return f"rank {rank} has ended, or left the job. See its output for the reason."


def _wants(receipt: Receipt, sender: int, channel: int, tag: int) -> bool:
    same_source = receipt.source is None or receipt.source == sender
    return same_source and receipt.channel == channel and receipt.tag == tag


def read_exactly(connection: socket.socket, memory: bytearray | memoryview) -> bytearray:
    """Fills the memory."""
    rest = memoryview(memory)
    while rest:
        count = connection.recv_into(rest, 0, socket.MSG_WAITALL)
        if count == 0:
            raise EOFError
        rest = rest[count:]
    return memory  # pyright: ignore[reportReturnType]


def _own_address(store: Store) -> str:
    """Where other ranks reach this machine: the address that it reaches the store from."""
    if interface := os.environ.get(_INTERFACE):
        return _address_of(interface.split(",")[0])
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return store.own_address()
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _address_of(interface: str) -> str:
    import fcntl

    get_address = 0x8915  # SIOCGIFADDR
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, get_address, struct.pack("256s", interface.encode()))
        except OSError as error:
            raise ValueError(
                f"{_INTERFACE}={interface}: there is no such network with an address: {error}."
            ) from None
    return socket.inet_ntoa(answer[20:24])


_meshes: weakref.WeakSet[Mesh] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for mesh in list(_meshes):
        mesh.close_sockets()


os.register_at_fork(after_in_child=_after_fork_in_child)
