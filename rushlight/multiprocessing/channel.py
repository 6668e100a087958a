"""A pair of ends over which two processes of this machine send each other objects.

Owns the framing of messages and the way of descriptors: along with the message, by SCM_RIGHTS. The
queues of multiprocessing fetch each descriptor over a connection of its own instead, some hundred
times as slow. An end that was closed, or whose process died, is seen at once by the other. Small
tensors are copied into the message.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import weakref
from multiprocessing.reduction import ForkingPickler

import rushlight as rl
from rushlight import Tensor
from rushlight.multiprocessing.reductions import Descriptor, reduce_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["Channel"]

_HEADER = struct.Struct("<QI")  # bytes of the pickle, number of descriptors
_FILES_AT_ONCE = 253  # what Linux lets one message carry
_LARGE = 1 << 16  # bytes: below, a copy is quicker than opening shared memory


class Channel:
    """One end.

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
        pickler = _Pickler(io.BytesIO())
        pickler.dump(message)
        files = [descriptor.number for descriptor in pickler.descriptors]
        text = pickler.file.getbuffer()
        parts = [_HEADER.pack(len(text), len(files))]
        for first in range(0, max(len(files), 1), _FILES_AT_ONCE):
            socket.send_fds(self._end, parts, files[first : first + _FILES_AT_ONCE])
            parts = [b"\0"]
        self._end.sendall(text)

    def recv(self) -> Any:
        """Returns the next object, waiting for it.

        Raises:
            EOFError: if the other end is closed.
        """
        header, files = self._recv_files(_HEADER.size)
        size, count = _HEADER.unpack(header)
        while len(files) < count:
            files += self._recv_files(1)[1]
        text = bytearray(size)
        self._recv_into(memoryview(text))
        return _Unpickler(io.BytesIO(text), files).load()

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
        _ends_of_this_process.add(self)

    def _recv_files(self, size: int) -> tuple[bytes, list[Descriptor]]:
        """The next bytes, with the descriptors that came with them."""
        try:
            data, numbers, *_ = socket.recv_fds(self._end, size, _FILES_AT_ONCE)
        except ConnectionResetError:
            raise EOFError from None
        rest = bytearray(size - len(data))
        if not data:
            raise EOFError
        self._recv_into(memoryview(rest))
        return data + rest, [Descriptor(number) for number in numbers]

    def _recv_into(self, rest: memoryview) -> None:
        while rest:
            try:
                count = self._end.recv_into(rest)
            except ConnectionResetError:
                count = 0
            if count == 0:
                raise EOFError
            rest = rest[count:]


class _Pickler(ForkingPickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.file = file
        self.descriptors: list[Descriptor] = []
        for kind in (Tensor, rl.nn.Parameter):
            self.dispatch_table[kind] = _reduce_small_or_shared

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is not Descriptor:
            return None
        self.descriptors.append(obj)
        return len(self.descriptors) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, descriptors: list[Descriptor]) -> None:
        super().__init__(file)
        self._descriptors = descriptors

    def persistent_load(self, pid: int) -> Descriptor:
        return self._descriptors[pid]


def _reduce_small_or_shared(tensor: Tensor) -> Any:
    if tensor.requires_grad or tensor.device.type != "cpu" or tensor.layout is not rl.strided:
        return reduce_tensor(tensor)
    if tensor.nbytes < _LARGE:
        return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if tensor.nbytes < tensor.untyped_storage().nbytes() and not tensor.is_shared():
        tensor = tensor.clone()  # the rest of its storage has no reason to go
    return reduce_tensor(tensor)


_ends_of_this_process: weakref.WeakSet[Channel] = weakref.WeakSet()


def _close_ends() -> None:
    for end in list(_ends_of_this_process):
        end.close()
    _ends_of_this_process.clear()


os.register_at_fork(after_in_child=_close_ends)
