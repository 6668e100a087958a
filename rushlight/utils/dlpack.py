"""DLPack: tensors that share memory with other libraries, by capsules."""

from __future__ import annotations

import enum

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._tensor_override import DisableTorchFunctionSubclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers for the types of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """Returns a capsule from before DLPack 1.0, which one from_dlpack may consume.

    Prefer handing over the tensor itself, which knows its device and version.

    Example:
        >>> torch.from_dlpack(torch.to_dlpack(torch.arange(3)))
        tensor([0, 1, 2])
    """
    return _C._to_dlpack(tensor, False, False, False)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Returns a tensor that shares memory with an object of the DLPack protocol, or a capsule.

    Args:
        ext_tensor: the object; of a capsule from to_dlpack, the memory is shared as it is.
        device: where the tensor shall be; where the object is, by default.
        copy: True copies always, False never, None where it must.

    Raises:
        RuntimeError: if a capsule was consumed before, or describes what tensors cannot be.
        BufferError: if the object cannot be exported in this way.

    Example:
        >>> import numpy
        >>> torch.from_dlpack(numpy.arange(3))
        tensor([0, 1, 2])
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise RuntimeError(
                "from_dlpack: device and copy need an object with __dlpack__, not a capsule."
            )
        return _C._from_dlpack(ext_tensor)
    options: dict[str, Any] = {}
    if copy is not None:
        options["copy"] = copy
    place = None if device is None else rl.device(device)
    if place is not None:
        options["dl_device"] = rl.empty(0, device=place).__dlpack_device__()
    kind, index = ext_tensor.__dlpack_device__()
    if kind == DLDeviceType.kDLCUDA:
        stream = _C._cuda_current_stream(index)
        options["stream"] = stream or 1  # 0 would be ambiguous; 1 is the default stream
    try:
        capsule = ext_tensor.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer from before version 1.0
        capsule = ext_tensor.__dlpack__(**options)
    return _C._from_dlpack(capsule)


class ReadOnlyTensorWrapper(Tensor):
    """A look at a tensor's memory that other libraries must not write to.

    It can only be handed over, to consumers of DLPack 1.0 or newer: all else raises RuntimeError.

    Args:
        tensor: the tensor, which itself stays as it is.

    Example:
        >>> import numpy
        >>> shared = torch.utils.dlpack.ReadOnlyTensorWrapper(torch.arange(3))
        >>> numpy.from_dlpack(shared).flags.writeable
        False
    """

    def __new__(cls, tensor: Tensor) -> ReadOnlyTensorWrapper:
        return tensor.as_subclass(cls)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in (Tensor.__dlpack__, Tensor.__dlpack_device__):
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise RuntimeError(
            f"{cls.__name__}: {getattr(func, '__name__', func)} is not possible. It only supports "
            "DLPack export. Use the tensor that it was made of."
        )

    def __dlpack__(self, *, max_version: tuple[int, int] | None = (1, 0), **options: Any) -> Any:
        """Returns a DLPack capsule that says that the memory must not be written.

        Args:
            max_version: the newest version the consumer understands; before 1.0, read-only memory
                cannot be described.
            options: those of Tensor.__dlpack__.
        """
        return super().__dlpack__(
            max_version=max_version or (1, 0), **{**options, "read_only": True}
        )
