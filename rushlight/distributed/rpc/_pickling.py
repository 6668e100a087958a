"""Calls as bytes: a pickle, and the memory of tensors and arrays beside it, which is not copied."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import rushlight as rl
from rushlight import Tensor

Parts = Sequence[bytes | memoryview]  # the pickle first

__all__ = ["Tape", "copied", "read", "room_for", "thread", "written"]


class Tape(Protocol):
    """What becomes of history where a thread makes or answers calls; see _tape.py."""

    def sent(self, tensor: Tensor, to: int) -> Any:
        """Goes on with the history of a tensor in a process. Returns what pickle needs, a function
        and its arguments, to make a tensor there that has this history."""
        ...

    def scope(self, to: int) -> AbstractContextManager[Any]:
        """Returns what can be sent to a process, and makes this the tape of a with block there."""
        ...


class _Thread(threading.local):
    """What holds for this thread.

    Attributes:
        writes_call: whether it writes a call, and not some other pickle.
        tape: of the calls that it makes.
    """

    writes_call = False
    tape: Tape | None = None


thread = _Thread()


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, to: int, buffers: list[memoryview]) -> None:
        super().__init__(file, 5, buffer_callback=lambda buffer: buffers.append(buffer.raw()))
        self._to = to
        self._of_modules: set[int] = set()  # parameters, which stay what they are

    def reducer_override(self, obj: Any) -> Any:
        if thread.tape is not None:
            if isinstance(obj, rl.nn.Module):
                self._of_modules.update(map(id, obj._parameters.values()))
            elif isinstance(obj, Tensor) and obj.requires_grad and id(obj) not in self._of_modules:
                return thread.tape.sent(obj, self._to)
        is_plain = type(obj) is Tensor and obj.layout is rl.strided and obj.device.type == "cpu"
        if not is_plain or obj.is_conj() or obj.is_neg() or obj.grad_fn is not None:
            return NotImplemented
        memory = pickle.PickleBuffer(memoryview(obj.detach().contiguous().view(-1).view(rl.uint8)))
        return _tensor, (memory, obj.dtype, tuple(obj.shape), obj.requires_grad)


def _tensor(memory: Any, dtype: rl.dtype, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
    flat = rl.frombuffer(memory, dtype=dtype) if len(memory) else rl.empty(0, dtype=dtype)
    return flat.view(shape).requires_grad_(requires_grad)


def written(value: Any, to: int) -> Parts:
    """Returns a value for a process as a pickle and the memory that it refers to."""
    file, memory = io.BytesIO(), list[memoryview]()
    before, thread.writes_call = thread.writes_call, True
    try:
        _Writer(file, to, memory).dump(value)
    finally:
        thread.writes_call = before
    return [file.getbuffer(), *memory]


def read(parts: Parts) -> Any:
    """Returns what was written, in the memory of the parts."""
    return pickle.loads(parts[0], buffers=parts[1:])


def room_for(size: int) -> memoryview:
    """Returns memory for a part of so many bytes, where elements of any dtype are aligned."""
    return memoryview(rl.empty(size, dtype=rl.uint8))


def copied(parts: Parts) -> Parts:
    """Returns the parts as if they had been sent."""
    made = [room_for(len(part)) for part in parts]
    for new, part in zip(made, parts, strict=True):
        new[:] = part
    return made
