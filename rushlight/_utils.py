"""Helpers that libraries import from torch._utils."""

from __future__ import annotations

import sys
import traceback

import rushlight as rl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, NoReturn

    from rushlight import Tensor
    from rushlight.nn import Parameter


# PyTorch has no class of storages for these: what is pickled names the dtype.
WITHOUT_STORAGE = (rl.uint16, rl.uint32, rl.uint64, rl.float8_e4m3fn, rl.float8_e5m2)


def _element_size(dtype: rl.dtype) -> int:
    """The bytes of an element."""
    return dtype.itemsize


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor on a typed storage, which it shares."""
    made = rl.empty(0, dtype=storage.dtype, device=storage.device)
    return made.set_(storage.untyped(), storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """_rebuild_tensor with what a pickled tensor says beside; hooks and metadata are not used."""
    return _rebuild_tensor(storage, storage_offset, size, stride).requires_grad_(requires_grad)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: rl.dtype,
    metadata: Any = None,
) -> Tensor:
    """_rebuild_tensor_v2 on a storage of bytes, for dtypes that have no class of storages."""
    made = rl.empty(0, dtype=dtype, device=storage.device)
    made.set_(storage, storage_offset, tuple(size), tuple(stride))
    return made.requires_grad_(requires_grad)


def _rebuild_meta_tensor_no_storage(
    dtype: rl.dtype, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    """A tensor on meta."""
    made = rl.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return made.requires_grad_(requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter that shares a tensor's memory."""
    return rl.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> Parameter:
    """_rebuild_parameter with attributes: a dict, or a pair of those with slots beside."""
    made = _rebuild_parameter(data, requires_grad, backward_hooks)
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            setattr(made, name, value)
    return made


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of tensors of one dtype, one after the other."""
    return rl.cat([tensor.reshape(-1) for tensor in tensors]) if tensors else rl.empty(0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a flat tensor in the shapes of others; the reverse of _flatten_dense_tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Yields the tensors in lists of one type each, which end before they exceed size_limit bytes.

    A larger tensor makes a list of its own.
    """
    waiting: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        group = waiting.setdefault(str(tensor.type()), [])
        if group and sum(each.nbytes for each in group) + tensor.nbytes > size_limit:
            yield group
            group = waiting[str(tensor.type())] = []
        group.append(tensor)
    yield from waiting.values()


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a GPU, given as a device, its name or the number itself; -1 for the CPU.

    Args:
        device: which.
        optional: take None, and a device without a number, for the current GPU.
        allow_cpu: take the CPU, too.

    Raises:
        ValueError: for what is not allowed.
    """
    if isinstance(device, str):
        device = rl.device(device)
    if isinstance(device, rl.device):
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        device = device.index
    if isinstance(device, int):
        return device
    if not optional:
        raise ValueError(f"Expected a device with a specified index or an integer, got: {device}")
    return rl.cuda.current_device()


def _get_available_device_type() -> str | None:
    """The type of a device beside the CPU that this machine has."""
    return "cuda" if rl.cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a type of device, torch.cuda for "cuda".

    Raises:
        RuntimeError: if there is none.
    """
    module = getattr(rl, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module.")
    return module


class ExceptionWrapper:
    """An exception of a thread or process, to be raised again where its result is awaited.

    Args:
        exc_info: what sys.exc_info() gives; that of the exception being handled if None.
        where: where it happened, for the message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self._name = self.exc_type.__name__  # that of the message, whatever is raised
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raises an exception of the same class with the traceback as its text."""
        message = f"Caught {self._name} {self.where}.\nOriginal {self.exc_msg}"
        text = KeyErrorMessage(message) if issubclass(self.exc_type, KeyError) else message
        try:
            error = self.exc_type(text)
        except Exception:  # a class that is not made of one text
            error = RuntimeError(text)
        raise error


class KeyErrorMessage(str):
    """A text that KeyError shows with its line ends."""

    def __repr__(self) -> str:
        return self
