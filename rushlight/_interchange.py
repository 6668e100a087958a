"""The methods of Tensor that hand its memory to other libraries: NumPy, DLPack, the array API."""

from __future__ import annotations

from rushlight import _C
from rushlight._layout import LAYOUTS
from rushlight._told import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor
    from rushlight.utils.dlpack import DLDeviceType

# How NumPy writes the types of elements.
_ARRAY_TYPES = {
    getattr(_C, f"{name}{8 * size}"): f"{'|' if size == 1 else '<'}{letter}{size}"
    for name, letter, sizes in (
        ("int", "i", (1, 2, 4, 8)),
        ("uint", "u", (1, 2, 4, 8)),
        ("float", "f", (2, 4, 8)),
        ("complex", "c", (8, 16)),
    )
    for size in sizes
} | {_C.bool: "|b1"}
_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


class InterchangeMethods(_C.TensorBase):
    """What Tensor inherits."""

    __array_priority__ = 1000  # NumPy hands `array + tensor` to us

    # NumPy

    def numpy(self, *, force: bool = False) -> Any:
        """Returns a NumPy array that shares the tensor's memory.

        Args:
            force: detaches and moves to the CPU first, so that it may be a copy.

        Raises:
            RuntimeError: if the tensor requires grad.
            TypeError: if NumPy has no such type (bfloat16), or the tensor is not on the CPU.
        """
        if self._layout and not force:
            raise TypeError(
                f"numpy: can't convert a tensor of layout {LAYOUTS[self._layout]} to numpy. Use "
                "Tensor.to_dense() first."
            )
        return _C._numpy(self.detach().to_dense().cpu() if force else self)

    @told
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = _C._numpy(self)
        if dtype is not None and dtype != array.dtype:
            if copy is False:
                raise ValueError(
                    f"__array__: cannot avoid a copy from {array.dtype} to {dtype}. Leave out copy."
                )
            return array.astype(dtype)
        return array.copy() if copy else array

    @told
    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        # What NumPy's functions computed becomes a tensor; bool as uint8, as in PyTorch.
        if array.dtype == bool:
            array = array.astype("uint8")
        return _C.from_numpy(array)

    # GPUs

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """How CuPy, Numba and others find the memory of a tensor on a GPU.

        Raises:
            AttributeError: if it is not on a GPU, sparse, or of a dtype that NumPy does not have.
            RuntimeError: if it requires grad.
        """
        if self.device.type != "cuda" or self._layout or self.dtype not in _ARRAY_TYPES:
            raise AttributeError(
                "__cuda_array_interface__: only dense tensors on a GPU of a dtype that NumPy has "
                f"are shared, not {self.dtype} on {self.device}."
            )
        if self.requires_grad:
            raise RuntimeError(
                "__cuda_array_interface__: can't be had of a tensor that requires grad. Use "
                "tensor.detach()."
            )
        steps = tuple(step * self.itemsize for step in self.stride())
        return {
            "typestr": _ARRAY_TYPES[self.dtype],
            "shape": tuple(self.shape),
            "strides": None if self.is_contiguous() else steps,
            "data": (self.data_ptr(), False),
            "version": 2,
        }

    # DLPack

    @told
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
        read_only: bool = False,
    ) -> Any:
        """Returns a DLPack capsule on the tensor's memory.

        Args:
            stream: the consumer's stream of a tensor on CUDA; work queued here is done before it
                goes on. -1 asks not to wait.
            max_version: the newest version the consumer understands; from 1.0 on, the capsule has
                flags, which read-only memory needs.
            dl_device: where the memory shall be: its device, or the CPU for a copy.
            copy: True copies always, False never, None where it must.
            read_only: tells the consumer not to write; read-only memory does so in any case.

        Raises:
            BufferError: if the tensor requires grad, has no data, or is elsewhere.
        """
        if self.device.type == "meta":
            raise BufferError("Cannot pack tensors on meta, which have no data.")
        if stream is not None and not isinstance(stream, int):
            raise TypeError(f"__dlpack__: stream must be an int or None, got {stream!r}.")
        tensor, own_device = self, self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != own_device:
            if tuple(dl_device) != (1, 0) or copy is False:
                raise BufferError(
                    f"__dlpack__: cannot export from device {own_device} to {tuple(dl_device)} "
                    f"with copy={copy}. Move the tensor first."
                )
            tensor, copy = self.detach().cpu(), False
        elif own_device == (1, 0) and stream not in (None, -1):
            raise BufferError("__dlpack__: stream must be None for CPU tensors.")
        if tensor.device.type == "cuda" and stream != -1:
            _C._cuda_stream_synchronize(
                tensor.device.index, _C._cuda_current_stream(tensor.device.index)
            )
        versioned = max_version is not None and max_version[0] >= 1
        return _C._to_dlpack(tensor, versioned, bool(copy), read_only)

    @told
    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        """Returns DLPack's type of the device and its index.

        Raises:
            ValueError: for devices without memory.
        """
        if self.device.type == "meta":
            raise ValueError("Unknown device type meta for Dlpack: it has no memory.")
        from rushlight.utils.dlpack import DLDeviceType

        if self.device.type == "cuda":
            return DLDeviceType.kDLCUDA, self.device.index or 0
        return DLDeviceType.kDLCPU, 0

    # The array API

    def __complex__(self) -> complex:
        """Returns the only element as a Python complex.

        Raises:
            ValueError: if there are none or several.
        """
        return complex(self.item() if self.is_complex() and self.numel() == 1 else float(self))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Returns rushlight.array_api, the functions of the Python array API standard.

        Raises:
            ValueError: if api_version is newer than what there is, or no version at all.
        """
        if api_version not in (None, *_API_VERSIONS):
            raise ValueError(
                f"__array_namespace__: version {api_version!r} is not there. "
                f"It must be one of {', '.join(_API_VERSIONS)}."
            )
        from rushlight import array_api

        return array_api

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Returns the tensor on a device, itself when it is there; the standard's name for to.

        Raises:
            ValueError: if a stream is given; copies run on the current one.
        """
        if stream is not None:
            raise ValueError("to_device: stream must be None. Use torch.cuda.stream(stream).")
        place = device if isinstance(device, _C.device) else _C.device(device)
        return _C._to(self, place, False)
