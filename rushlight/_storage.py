"""Storages, the memory behind tensors: as bytes, and as numbers of one dtype.

What an UntypedStorage holds, and what is asked of it often, is in bindings/storage.cpp. A
TypedStorage is an untyped one and a dtype.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, Self

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._legacy import TYPE_NAMES


def memory_of(tensor: Tensor) -> int:
    """A number that tensors have in common which share memory; one of its own where there is none.

    Example:
        >>> from rushlight._storage import memory_of
        >>> x = torch.ones(3)
        >>> memory_of(x) == memory_of(x[1:]), memory_of(x) == memory_of(x.clone())
        (True, False)
    """
    if tensor.layout is not rl.strided:
        return id(tensor)
    return tensor.untyped_storage().data_ptr() or id(tensor)


class StorageBase:
    """What storages of bytes and of numbers have in common."""

    def _values(self) -> Tensor:
        """The elements as a tensor of one dim that shares the memory."""
        raise NotImplementedError

    def _wrap(self, values: Tensor) -> Self:
        """A storage of this kind on the memory of a tensor."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self._values().numel()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __getitem__(self, index: Any) -> Any:
        if self.device.type == "meta":
            raise NotImplementedError(f"{type(self).__name__}: a storage on meta has no elements.")
        found = self._values()[index]
        return self._part(found, index) if isinstance(index, slice) else found.item()

    def _part(self, values: Tensor, index: slice) -> Self:
        """A storage of this kind on some of the elements."""
        raise RuntimeError(
            f"{type(self).__name__}: slices of numbers share no memory. Slice untyped()."
        )

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(value, StorageBase):
            value = value._values()
        self._values()[index] = value

    def __repr__(self) -> str:
        numbers = "".join(f" {value}\n" for value in self.tolist())
        return f"{numbers}[{self._description()} of size {len(self)}]"

    def _description(self) -> str:
        return f"torch.storage.{type(self).__name__}(device={self.device})"

    def __copy__(self) -> Self:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            from rushlight._copying import copy_memory

            memo[id(self)] = self._wrap(copy_memory(self._values(), memo))
        return memo[id(self)]

    @property
    def device(self) -> rl.device:
        """The device whose memory it is."""
        return self._values().device

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return self.device.type == "cuda"

    @property
    def is_sparse(self) -> bool:
        """Always False."""
        return False

    def size(self) -> int:
        """Returns the number of elements."""
        return len(self)

    def element_size(self) -> int:
        """Returns the number of bytes of an element."""
        return self._values().element_size()

    def nbytes(self) -> int:
        """Returns the number of bytes."""
        return self._values().nbytes

    def data_ptr(self) -> int:
        """Returns the address of the first byte."""
        return self._values().data_ptr()

    def get_device(self) -> int:
        """Returns the number of the GPU, -1 on the CPU."""
        return self._values().get_device()

    def tolist(self) -> list[Any]:
        """Returns the elements as a list."""
        return self._values().tolist()

    def copy_(self, source: StorageBase, non_blocking: bool = False) -> Self:
        """Writes the elements of another storage of the same length over these."""
        self._values().copy_(source._values(), non_blocking)
        return self

    def fill_(self, value: Any) -> Self:
        """Sets all elements to one value."""
        self._values().fill_(value)
        return self

    def clone(self) -> Self:
        """Returns a copy."""
        return self._wrap(self._values().clone())

    def to(self, device: Any, non_blocking: bool = False) -> Self:
        """Returns the storage on another device, itself when it is there."""
        place = _C.device(device)
        if place.type == self.device.type and place.index in (None, self.device.index):
            return self
        return self._wrap(self._values().to(place, non_blocking=non_blocking))

    def cpu(self) -> Self:
        """Returns the storage on the CPU, itself when it is there."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """Returns the storage on a GPU."""
        return self.to("cuda" if device is None else device, non_blocking)

    def resize_(self, size: int) -> Self:
        """Makes the storage longer or shorter, in elements; tensors see the memory that it becomes.

        Raises:
            RuntimeError: if the memory is shared, or another library's.
        """
        _C._storage_resize(self._values(), size * self.element_size())
        return self

    def share_memory_(self) -> Self:
        """Moves the storage to memory that processes share; see Tensor.share_memory_."""
        _C._storage_share(self._values())
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> Self:
        """Returns a storage in memory that processes share; workers of loaders fill it.

        Args:
            size: its length, in elements.
            device: accepted if it is the CPU.
        """
        if _C.device(device).type != "cpu":
            raise RuntimeError(f"_new_shared: processes share memory of the CPU, not of {device}.")
        make: Any = cls
        return make(size).share_memory_()

    def is_shared(self) -> bool:
        """Returns whether processes share the memory."""
        return _C._storage_is_shared(self._values())

    def is_pinned(self) -> bool:
        """Returns whether the memory is pinned for copies to a GPU."""
        return self._values().is_pinned()

    def pin_memory(self) -> Self:
        """Returns the storage in pinned memory, itself when it is or there is no GPU."""
        pinned = self._values().pin_memory()
        return self if pinned.data_ptr() == self.data_ptr() else self._wrap(pinned)


class UntypedStorage(_C.StorageHolder, StorageBase):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """The bytes behind a tensor, shared by all its views.

    Args:
        data: a number of bytes, undefined, or a sequence of them.
        device: where they are.

    Example:
        >>> x = torch.zeros(3)
        >>> x.untyped_storage().nbytes()
        12
        >>> x.untyped_storage().fill_(255)[0]
        255
    """

    def __init__(self, data: Any = 0, *, device: Any = None) -> None:
        if hasattr(data, "__index__"):
            self._hold(rl.empty(data.__index__(), dtype=_C.uint8, device=device))
        else:
            self._hold(_C.tensor(list(data), dtype=_C.uint8, device=device))

    def __reduce__(self) -> tuple[Any, ...]:
        return _storage_of_bytes, (memoryview(self._values().cpu()).tobytes(), str(self.device))

    def _wrap(self, values: Tensor) -> Self:
        return self._of(values)

    def _part(self, values: Tensor, index: slice) -> Self:
        if index.step not in (None, 1):
            raise RuntimeError(
                f"Trying to slice with a step of {index.step}, but only a step of 1 is supported"
            )
        if values.device.type != "cpu":
            raise RuntimeError("UntypedStorage: slices need memory of the CPU. Slice a tensor.")
        return self._of(rl.frombuffer(values, dtype=rl.uint8) if values.numel() else values.clone())

    @classmethod
    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0
    ) -> Self:
        """Returns the first bytes of a file; see torch.from_file."""
        return cls._of(_C._map_file_bytes(filename, shared, nbytes))

    @classmethod
    def from_buffer(cls, buffer: Any, **options: Any) -> Self:
        """Returns a copy of the bytes of a buffer.

        Args:
            buffer: bytes, or what has Python's buffer protocol.
            options: byte_order, dtype, count and offset, as of TypedStorage.from_buffer.
        """
        return cls._of(_copy_of_buffer(buffer, **{"dtype": rl.uint8, **options}))

    @property
    def filename(self) -> None:
        """Always None: shared memory has no name here."""
        return None

    def untyped(self) -> Self:
        """Returns itself."""
        return self

    def new(self) -> Self:
        """Returns a storage of no bytes on the same device."""
        return type(self)(device=self.device)

    def type(self, dtype: Any = None) -> Any:
        """Returns the name of the type, or the bytes as numbers of a dtype, one of each."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        return TypedStorage(wrap_storage=self, dtype=rl.uint8).type(dtype)


class _TypedMeta(type):
    """Makes isinstance(storage, torch.FloatStorage) a question about dtype and device."""

    _dtype: rl.dtype | None
    _device: str | None

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls._dtype is None:
            return type.__instancecheck__(cls, instance)
        return (
            type.__instancecheck__(TypedStorage, instance)
            and instance.dtype is cls._dtype
            and instance.device.type == (cls._device or "cpu")
        )


class TypedStorage(StorageBase, metaclass=_TypedMeta):
    """The memory behind a tensor as numbers of one dtype; old, Tensor.untyped_storage() is new.

    Args:
        args: a number of elements, undefined, or a sequence of them, or nothing.
        wrap_storage: an UntypedStorage to look at.
        dtype: the dtype; the default dtype unless given or told by the class.
        device: where a new one is made.

    Example:
        >>> x = torch.arange(3.0)
        >>> x.storage()[2] = 7
        >>> x
        tensor([0., 1., 7.])
        >>> torch.FloatStorage([1, 2]).tolist()
        [1.0, 2.0]
    """

    _dtype: rl.dtype | None = None
    _device: str | None = None

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: rl.dtype | None = None,
        device: Any = None,
    ) -> None:
        self.dtype = type(self)._dtype or dtype or _C.get_default_dtype()
        device = type(self)._device if device is None else device
        if len(args) > 1:
            raise TypeError(f"{type(self).__name__} takes a size or a sequence, got {len(args)}")
        if wrap_storage is not None:
            self._untyped = wrap_storage
        elif not args or hasattr(args[0], "__index__"):
            made = rl.empty(args[0].__index__() if args else 0, dtype=self.dtype, device=device)
            self._untyped = UntypedStorage._of(made)
        else:
            data = args[0]
            if isinstance(data, StorageBase):
                data = data.tolist()
            made = _C.tensor(list(data), dtype=self.dtype, device=device)
            self._untyped = UntypedStorage._of(made)

    def __reduce__(self) -> tuple[Any, ...]:
        return _typed_storage, (type(self), self._untyped, self.dtype)

    def _values(self) -> Tensor:
        data = self._untyped._values()
        whole = data.numel() // self.dtype.itemsize * self.dtype.itemsize
        return data[:whole].view(self.dtype)

    def _wrap(self, values: Tensor) -> Self:
        return type(self)(wrap_storage=UntypedStorage._of(values), dtype=values.dtype)

    def resizable(self) -> bool:
        """Returns whether the memory is our own and lent to nobody, so that resize_ works."""
        return self._untyped.resizable()

    def _description(self) -> str:
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TypedStorage)
            and self.dtype is other.dtype
            and self._untyped == other._untyped
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self._untyped))

    @classmethod
    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0
    ) -> Self:
        """Returns the first numbers of a file; see torch.from_file.

        Args:
            filename: where the file is.
            shared: whether what is written to the storage goes to the file.
            size: how many numbers there are.
        """
        dtype = cls._dtype or _C.get_default_dtype()
        bytes = UntypedStorage.from_file(filename, shared, size * dtype.itemsize)
        return cls(wrap_storage=bytes, dtype=dtype)

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        *,
        dtype: rl.dtype | None = None,
        count: int = -1,
        offset: int = 0,
    ) -> Self:
        """Returns a copy of the numbers in a buffer.

        Args:
            buffer: bytes, or what has Python's buffer protocol.
            byte_order: of each number: "native", "little" or "big"; not needed for bytes.
            dtype: the dtype; that of the class, where it has one.
            count: how many numbers, all unless given.
            offset: where the first one begins, in bytes.

        Raises:
            ValueError: if byte_order is none of these, or the buffer is too short.

        Example:
            >>> torch.ShortStorage.from_buffer(bytes([0, 1, 0, 2]), "big").tolist()
            [1, 2]
        """
        kind = cls._dtype or dtype or _C.get_default_dtype()
        values = _copy_of_buffer(buffer, byte_order, dtype=kind, count=count, offset=offset)
        return cls(wrap_storage=UntypedStorage._of(values), dtype=kind)

    _from_buffer = from_buffer  # PyTorch's, which does not warn

    def untyped(self) -> UntypedStorage:
        """Returns the same memory as bytes."""
        return self._untyped

    @property
    def _cdata(self) -> int:
        """A number that storages of other memory do not have while this one lives."""
        return self._untyped._cdata

    @property
    def _untyped_storage(self) -> UntypedStorage:
        """The same memory as bytes, as libraries ask for it."""
        return self._untyped

    def _size(self) -> int:
        """Returns the number of elements, as programs that pickle storages ask for it."""
        return len(self)

    def pickle_storage_type(self) -> str:
        """Returns the name of the class of storages that it is called in files."""
        return f"{TYPE_NAMES[self.dtype]}Storage"

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None) -> Any:
        """Returns the name of the type, or the numbers as another dtype."""
        if dtype is None:
            return f"torch.{TYPE_NAMES[self.dtype]}Storage"
        return TypedStorage(wrap_storage=UntypedStorage._of(self._values().to(dtype)), dtype=dtype)


def _storage_of_bytes(payload: bytes, device: str) -> UntypedStorage:
    """Makes the storage that was pickled."""
    values = rl.frombuffer(bytearray(payload), dtype=rl.uint8) if payload else rl.empty(0).byte()
    return UntypedStorage._of(values.to(device))


def _typed_storage(cls: Any, untyped: UntypedStorage, dtype: rl.dtype) -> TypedStorage:
    """Makes the storage of numbers that was pickled."""
    return cls(wrap_storage=untyped, dtype=dtype)


def _copy_of_buffer(
    buffer: Any,
    byte_order: str | None = None,
    *,
    dtype: rl.dtype,
    count: int = -1,
    offset: int = 0,
) -> Tensor:
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if byte_order not in ("native", "little", "big") and (byte_order or width > 1):
        raise ValueError(
            f"from_buffer: byte_order must be 'native', 'little' or 'big', not {byte_order!r}"
        )
    if not len(memoryview(buffer).cast("B")):
        return rl.empty(0, dtype=dtype)
    values = rl.frombuffer(bytearray(buffer), dtype=dtype, count=count, offset=offset)
    if byte_order in (None, "native", sys.byteorder):
        return values
    return values.view(rl.uint8).view(-1, width).flip(1).view(-1).view(dtype)


def _converter(dtype: rl.dtype) -> Any:
    def convert(self: TypedStorage | UntypedStorage) -> Any:
        return self if getattr(self, "dtype", None) is dtype else self.type(dtype)

    convert.__doc__ = f"Returns the numbers as {dtype._name}, itself when they are."
    return convert


for _name, _dtype in (
    ("float", _C.float32),
    ("double", _C.float64),
    ("half", _C.float16),
    ("bfloat16", _C.bfloat16),
    ("int", _C.int32),
    ("long", _C.int64),
    ("short", _C.int16),
    ("char", _C.int8),
    ("byte", _C.uint8),
    ("bool", _C.bool),
    ("complex_float", _C.complex64),
    ("complex_double", _C.complex128),
):
    setattr(TypedStorage, _name, _converter(_dtype))
    setattr(UntypedStorage, _name, _converter(_dtype))

Storage = TypedStorage


def storage_class(dtype: rl.dtype) -> type[TypedStorage]:
    """Returns torch.FloatStorage or its kin of a dtype."""
    name = f"{TYPE_NAMES[dtype]}Storage"
    if name not in globals():
        doc = f"Storages of {dtype._name} numbers; see TypedStorage."
        members = {"__doc__": doc, "__module__": "rushlight", "_dtype": dtype, "dtype": dtype}
        globals()[name] = _TypedMeta(name, (TypedStorage,), members)
    return globals()[name]


def _named(name: str, module: str) -> type[TypedStorage]:
    for dtype, text in TYPE_NAMES.items():
        if name == f"{text}Storage":
            return storage_class(dtype)
    raise AttributeError(f"module '{module}' has no attribute '{name}'")


def cuda_storage_class(name: str) -> type[TypedStorage]:
    """Returns torch.cuda.FloatStorage or its kin."""
    on_cpu = _named(name, "rushlight.cuda")
    members = {"__doc__": on_cpu.__doc__, "__module__": "rushlight.cuda", "_device": "cuda"}
    return _TypedMeta(name, (on_cpu,), members)


def __getattr__(name: str) -> type[TypedStorage]:
    """Makes the class of storages that is asked for."""
    return _named(name, "rushlight._storage")
