"""Calls as bytes: a pickle, and the memory of tensors and arrays beside it, which is not copied."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor

Parts = Sequence[bytes | memoryview]  # the pickle first

__all__ = ["copied", "room_for", "read", "writing", "written"]


class _Writing(threading.local):
    """Whether this thread writes a call, and not some other pickle."""

    is_call = False


writing = _Writing()


class _Writer(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        is_plain = type(obj) is Tensor and obj.layout is rl.strided and obj.device.type == "cpu"
        if not is_plain or obj.is_conj() or obj.is_neg() or obj.grad_fn is not None:
            return NotImplemented
        memory = pickle.PickleBuffer(memoryview(obj.detach().contiguous().view(-1).view(rl.uint8)))
        return _tensor, (memory, obj.dtype, tuple(obj.shape), obj.requires_grad)


def _tensor(memory: Any, dtype: rl.dtype, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
    flat = rl.frombuffer(memory, dtype=dtype) if len(memory) else rl.empty(0, dtype=dtype)
    return flat.view(shape).requires_grad_(requires_grad)


def written(value: Any) -> Parts:
    """Returns a value as a pickle and the memory that it refers to."""
    file, memory = io.BytesIO(), []
    before, writing.is_call = writing.is_call, True
    try:
        _Writer(file, 5, buffer_callback=lambda buffer: memory.append(buffer.raw())).dump(value)
    finally:
        writing.is_call = before
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
