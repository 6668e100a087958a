"""A pair of ends over which two processes of this machine send each other objects.

Owns the framing of messages and the way of descriptors: along with the message, by SCM_RIGHTS. The
queues of multiprocessing fetch each descriptor over a connection of its own instead, which is slow.
An end that was closed, or whose process died, is seen at once by the other.

Small tensors are copied into the message, large ones into memory that is used again (slots.py), and
those that are shared already stay where they are.
"""

from __future__ import annotations

import errno
import io
import os
import pickle
import socket
import struct
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any, Self

import rushlight as rl
from rushlight import Tensor
from rushlight._copying import is_dense
from rushlight.multiprocessing.reductions import Descriptor
from rushlight.multiprocessing.slots import Borrower, Lender, Loan

__all__ = ["Channel"]

_HEADER = struct.Struct("<QQI")  # bytes of the notes and of the message, number of descriptors
_FILES_AT_ONCE = 253  # what Linux lets one message carry
_LARGE = 1 << 16  # bytes: smaller tensors go with the message
_BORROWER = "borrower"  # what stands in a message for the receiver's Borrower


class Channel:
    """One end. Memory for large tensors is used again when messages go both ways.

    Args:
        end: a connected Unix socket.

    Example:
        >>> from rushlight.multiprocessing.channel import Channel
        >>> one, other = Channel.pair()
        >>> one.send({"x": torch.ones(2)})
        >>> other.recv()
        {'x': tensor([1., 1.])}
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lender = Lender()
        self._borrower = Borrower()
        _channels.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._end,)

    @classmethod
    def pair(cls) -> tuple[Self, Self]:
        """Returns both ends."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def send(self, message: Any) -> None:
        """Sends an object.

        Raises:
            OSError: if the other end is closed.
            Exception: what pickling raises; then nothing was sent.
        """
        pickler = _Pickler(io.BytesIO(), self._lender)
        try:
            pickler.dump(message)
        except BaseException:
            self._lender.take_back((loan.number, False) for loan in pickler.loans)
            raise
        files = [descriptor.number for descriptor in pickler.descriptors]
        notes = pickle.dumps((self._borrower.returned(), self._lender.dropped()))
        text = pickler.file.getbuffer()
        parts = [_HEADER.pack(len(notes), len(text), len(files))]
        for first in range(0, max(len(files), 1), _FILES_AT_ONCE):
            socket.send_fds(self._end, parts, files[first : first + _FILES_AT_ONCE])
            parts = [b"\0"]
        self._end.sendall(notes)
        self._end.sendall(text)

    def recv(self) -> Any:
        """Returns the next object, waiting for it.

        Raises:
            EOFError: if the other end is closed.
        """
        header, files = self._recv_files(_HEADER.size)
        note_size, size, count = _HEADER.unpack(header)
        while len(files) < count:
            files += self._recv_files(1)[1]
        returned, dropped = pickle.loads(self._recv(note_size))
        self._lender.take_back(returned)
        self._borrower.forget(dropped)
        return _Unpickler(io.BytesIO(self._recv(size)), files, self._borrower).load()

    def close(self) -> None:
        """Closes this end, which is closed too when nobody holds it."""
        self._end.close()

    __del__ = close

    def fileno(self) -> int:
        """Returns the socket's number, for those who wait for several."""
        return self._end.fileno()

    def close_in_children(self) -> None:
        """Has forked children of this process close their copy of this end.

        Else the other end would not see that this process died as long as they live.
        """
        _closed_in_children.add(self)

    def _recv_files(self, size: int) -> tuple[bytes, list[Descriptor]]:
        """The next bytes, with the descriptors that came with them."""
        try:
            data, numbers, flags, _ = socket.recv_fds(self._end, size, _FILES_AT_ONCE)
        except ConnectionResetError:
            raise EOFError from None
        if not data:
            raise EOFError
        files = [Descriptor(number) for number in numbers]
        if flags & socket.MSG_CTRUNC:  # the rest of the message would be misread
            self.close()
            raise OSError(
                errno.EMFILE,
                "too many open files for the shared tensors of a message. Raise the limit: "
                'multiprocessing.set_sharing_strategy("file_system") or ulimit -n',
            )
        return data + self._recv(size - len(data)), files

    def _recv(self, size: int) -> bytearray:
        """So many bytes."""
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            try:
                count = self._end.recv_into(rest)
            except ConnectionResetError:
                count = 0
            if count == 0:
                raise EOFError
            rest = rest[count:]
        return data


class _Pickler(ForkingPickler):
    """Notes the descriptors and the loans of a message, which the text names by number."""

    def __init__(self, file: io.BytesIO, lender: Lender) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.file = file
        self.descriptors: list[Descriptor] = []
        self.loans: list[Loan] = []
        self._lender = lender

    def persistent_id(self, obj: Any) -> int | str | None:
        if type(obj) is Descriptor:
            self.descriptors.append(obj)
            return len(self.descriptors) - 1
        return _BORROWER if obj is self._lender else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not Tensor or obj.requires_grad:
            return NotImplemented
        if obj.device.type != "cpu" or obj.layout is not rl.strided or obj.is_shared():
            return NotImplemented
        loan = self._lender.lend(obj) if obj.nbytes >= _LARGE else None
        if loan is None:
            return _small(obj)
        self.loans.append(loan)
        return Borrower.tensor, (self._lender, loan), obj.__dict__ or None


def _small(tensor: Tensor) -> tuple[Any, ...]:
    """What pickle writes for a tensor of few elements: these, and not all that lies beside them."""
    sizes = tuple(tensor.shape)
    if is_dense(tensor):
        flat = tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
        strides = tensor.stride()
    else:
        flat, strides = tensor.contiguous().view(-1), None
    payload = memoryview(flat.view(rl.uint8)).tobytes()
    return _rebuild_small, (payload, tensor.dtype, sizes, strides), tensor.__dict__ or None


def _rebuild_small(
    payload: bytes, dtype: rl.dtype, sizes: tuple[int, ...], strides: tuple[int, ...] | None
) -> Tensor:
    if not payload:
        return rl.empty(sizes, dtype=dtype)
    flat = rl.frombuffer(bytearray(payload), dtype=dtype)
    made = flat.view(sizes) if strides is None else flat.as_strided(sizes, strides)
    return made.detach()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, files: list[Descriptor], borrower: Borrower) -> None:
        super().__init__(file)
        self._files = files
        self._borrower = borrower

    def persistent_load(self, pid: int | str) -> Descriptor | Borrower:
        return self._files[pid] if isinstance(pid, int) else self._borrower


_channels: weakref.WeakSet[Channel] = weakref.WeakSet()
_closed_in_children: weakref.WeakSet[Channel] = weakref.WeakSet()


def _after_fork_in_parent() -> None:
    for channel in list(_channels):
        channel._borrower.after_fork()


def _after_fork_in_child() -> None:
    for channel in list(_closed_in_children):
        channel.close()
    _closed_in_children.clear()


os.register_at_fork(after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
