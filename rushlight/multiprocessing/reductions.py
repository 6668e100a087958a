"""How tensors and storages go to other processes of this machine: the memory is shared, not copied.

Owns what the pickler of multiprocessing writes for them: where the tensor lies in its storage, and
a Descriptor, whose way to the receiver is the pickler's business. Sending moves the memory of the
sender to shared memory, where it stays. Tensors on a GPU, sparse ones and those without memory go
as pickle sends them, as copies; so do tensors of subclasses that programs define.
"""

from __future__ import annotations

import os
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._copying import as_class
from rushlight._storage import UntypedStorage

__all__ = ["Descriptor", "reduce_storage", "reduce_tensor", "register"]


class Descriptor:
    """The number of an open file, that is sent as the file.

    Args:
        number: the file's number in this process.
        owner: the tensor that will close it; without one, it is closed with this object.
    """

    def __init__(self, number: int, owner: Tensor | None = None) -> None:
        self.number = number
        self._owner = owner

    def __del__(self) -> None:
        if self._owner is None:
            os.close(self.number)


def register() -> None:
    """Tells the pickler of multiprocessing about tensors, storages and descriptors."""
    ForkingPickler.register(Descriptor, _reduce_descriptor)
    for kind in (Tensor, rl.nn.Parameter):
        ForkingPickler.register(kind, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)


def _reduce_descriptor(descriptor: Descriptor) -> Any:
    return _received, (DupFd(descriptor.number),)


def _received(file: Any) -> Descriptor:
    return Descriptor(file.detach())


def reduce_tensor(tensor: Tensor) -> Any:
    """Returns what pickle writes for a tensor.

    Raises:
        RuntimeError: if gradients would have to flow through it to another process.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "multiprocessing: a non-leaf tensor which requires_grad cannot be sent, since autograd "
            "does not cross process boundaries. Send tensor.detach()."
        )
    if tensor.device.type != "cpu" or tensor.layout is not rl.strided:
        return tensor.__reduce_ex__(2)
    place = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    memory = _shared(tensor.detach())
    parts = (type(tensor), *memory, tensor.dtype, *place, tensor.requires_grad)
    return _rebuild_tensor, parts, tensor.__dict__ or None


def reduce_storage(storage: UntypedStorage) -> Any:
    """Returns what pickle writes for a storage."""
    if storage.device.type != "cpu":
        return storage.__reduce_ex__(2)
    return _rebuild_storage, _shared(storage._values())


def _shared(tensor: Tensor) -> tuple[Descriptor, int]:
    """The shared memory that holds the tensor's storage from now on, and its size in bytes."""
    _C._storage_share(tensor)
    return Descriptor(_C._storage_shared_file(tensor), tensor), tensor.untyped_storage().nbytes()


def _rebuild_tensor(
    cls: Any,
    memory: Descriptor,
    nbytes: int,
    dtype: rl.dtype,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    requires_grad: bool,
) -> Tensor:
    tensor = rl.empty(0, dtype=dtype)
    _C._set_storage(tensor, _C._open_shared_bytes(memory.number, nbytes), offset, sizes, strides)
    return as_class(cls, tensor, requires_grad)


def _rebuild_storage(memory: Descriptor, nbytes: int) -> UntypedStorage:
    return UntypedStorage._of(_C._open_shared_bytes(memory.number, nbytes))
