"""The constructors from before torch.tensor: torch.FloatTensor and its kin, Tensor.new.

Owns what they take (sizes, data, a tensor or a storage) and the names of types that go with them.
A class of this file makes plain tensors; isinstance asks for the dtype and the device.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import _C, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# dtype: what stands before "Tensor" and "Storage" in the name of its type.
TYPE_NAMES: dict[rl.dtype, str] = {
    _C.bool: "Bool",
    _C.uint8: "Byte",
    _C.int8: "Char",
    _C.int16: "Short",
    _C.int32: "Int",
    _C.int64: "Long",
    _C.uint16: "UInt16",
    _C.uint32: "UInt32",
    _C.uint64: "UInt64",
    _C.float16: "Half",
    _C.bfloat16: "BFloat16",
    _C.float8_e4m3fn: "Float8_e4m3fn",
    _C.float8_e5m2: "Float8_e5m2",
    _C.float32: "Float",
    _C.float64: "Double",
    _C.complex64: "ComplexFloat",
    _C.complex128: "ComplexDouble",
}


_types_by_name: dict[str, tuple[rl.dtype, str]] = {}


def type_name(dtype: rl.dtype, device: rl.device, is_sparse: bool = False) -> str:
    """Returns the name of a tensor's type, as in 'torch.cuda.FloatTensor'."""
    place = "" if device.type == "cpu" else f"{device.type}."
    place += "sparse." if is_sparse else ""
    return f"torch.{place}{TYPE_NAMES.get(dtype, dtype._name)}Tensor"


def read_type(name: str) -> tuple[rl.dtype, str]:
    """Returns the dtype and the kind of device behind the name of a type.

    Raises:
        ValueError: if there is no such type.
    """
    if not _types_by_name:
        for device in ("cpu", "cuda"):
            for dtype in TYPE_NAMES:
                _types_by_name[type_name(dtype, _C.device(device))] = dtype, device
    if name not in _types_by_name:
        raise ValueError(f"invalid type: '{name}'")
    return _types_by_name[name]


def _is_size(length: Any) -> bool:
    """Whether it is one size; NumPy's integers are, its arrays and tensors are not."""
    return hasattr(length, "__index__") and not hasattr(length, "__setitem__")


def new_tensor(
    dtype: rl.dtype, device: rl.device, args: tuple[Any, ...], size: Any = None
) -> Tensor:
    """Returns what torch.FloatTensor(*args) makes: of sizes, or of data.

    Args:
        dtype: the dtype of the tensor.
        device: where it is made.
        args: sizes, as numbers or one torch.Size, for undefined values; or a sequence or array of
            values, which are converted; or a tensor or storage of the dtype, whose memory is
            shared.
        size: the sizes, as an argument of that name.

    Raises:
        TypeError: if the argument is none of these.
    """
    if size is not None:
        args = (_C.Size(size),)
    if not args:
        return rl.empty(0, dtype=dtype, device=device)
    first = args[0]
    if isinstance(first, Tensor) and len(args) == 1:
        if first.dtype is not dtype or first.device.type != device.type:
            raise TypeError(
                f"expected {type_name(dtype, device)} (got {first.type()}). The constructor shares "
                f"the tensor's memory. Use .to() to convert it."
            )
        return first.detach()
    if rl.is_storage(first):
        return rl.empty(0, dtype=dtype, device=device).set_(first)
    if _is_size(first) or isinstance(first, (_C.Size, Tensor)):
        return rl.empty(*args, dtype=dtype, device=device)
    if isinstance(first, (str, dict)) or not hasattr(first, "__getitem__"):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    if len(args) > 1:
        raise TypeError(f"new(): takes one sequence of data (got {len(args)} arguments)")
    if isinstance(first, list):  # each of which may be bytes
        first = [bytearray(row) if isinstance(row, bytes) else row for row in first]
    return _C.tensor(first, dtype=dtype, device=device)


def new_sparse_tensor(
    dtype: rl.dtype, device: rl.device, args: tuple[Any, ...], size: Any = None
) -> Tensor:
    """Returns what torch.sparse.FloatTensor(*args) makes: of indices and values, or of sizes.

    Args:
        dtype: the dtype of an empty tensor; values keep their own.
        device: where it is made.
        args: indices (dims, n), values (n, ...) and perhaps the sizes; or sizes, as numbers or
            one torch.Size, for a tensor with no values.
        size: the sizes, as an argument of that name.

    Raises:
        TypeError: if the argument is data of another form.
    """
    if len(args) > 1 and isinstance(args[0], Tensor):
        return rl.sparse_coo_tensor(*args, device=device)
    sizes: Any = (args or (0,)) if size is None else (_C.Size(size),)
    if len(sizes) == 1 and isinstance(sizes[0], _C.Size):
        sizes = sizes[0]
    if not all(map(_is_size, sizes)):
        raise TypeError(
            f"new(): a sparse tensor is made of sizes, or of indices and values (got "
            f"{', '.join(type(arg).__name__ for arg in sizes)}). Use torch.sparse_coo_tensor, or "
            f"to_sparse() of a dense tensor."
        )
    return rl.sparse_coo_tensor(size=sizes, dtype=dtype, device=device)


class TensorType(type):
    """The class of torch.FloatTensor and its kin."""

    dtype: rl.dtype
    device_type: str

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> TensorType:
        """Makes a class that no other is derived from."""
        if bases:
            raise TypeError(
                f"type '{bases[0].__name__}' is not an acceptable base type. Derive from Tensor."
            )
        return super().__new__(cls, name, bases, members)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.device_type
        )

    def __call__(cls, *args: Any, size: Any = None, device: Any = None) -> Tensor:
        place = _C.device(cls.device_type if device is None else device)
        if place.type != cls.device_type:
            raise RuntimeError(
                f"legacy constructor expects device type: {cls.device_type} but device type: "
                f"{place.type} was passed"
            )
        return new_tensor(cls.dtype, place, args, size)

    @property
    def layout(cls) -> rl.layout:
        """How its tensors lie in memory."""
        return rl.strided

    @property
    def is_cuda(cls) -> bool:
        """Whether its tensors are on a GPU."""
        return cls.device_type == "cuda"

    @property
    def is_sparse(cls) -> bool:
        """Always False."""
        return False


def tensor_type(
    name: str, device_type: str = "cpu", kind: type[TensorType] = TensorType
) -> TensorType:
    """Returns the class of this name, "FloatTensor" for one, whose tensors are on such a device.

    Raises:
        AttributeError: if no type has the name.
    """
    dtype = next((d for d, text in TYPE_NAMES.items() if f"{text}Tensor" == name), None)
    if dtype is None:
        raise AttributeError(f"there is no tensor type '{name}'")
    doc = f"Makes {dtype._name} tensors of sizes or of data; isinstance() tells such tensors."
    full_name = type_name(dtype, _C.device(device_type), kind is SparseTensorType)
    module = full_name.rpartition(".")[0].replace("torch", "rushlight", 1)
    members = {"__doc__": doc, "__module__": module, "dtype": dtype, "device_type": device_type}
    return kind(name, (), members)


class SparseTensorType(TensorType):
    """The class of torch.sparse.FloatTensor and its kin."""

    def __instancecheck__(cls, instance: Any) -> bool:
        is_sparse = isinstance(instance, Tensor) and instance.layout is rl.sparse_coo
        return is_sparse and super().__instancecheck__(instance)

    def __call__(cls, *args: Any, size: Any = None, device: Any = None) -> Tensor:
        place = _C.device(cls.device_type if device is None else device)
        return new_sparse_tensor(cls.dtype, place, args, size)

    @property
    def layout(cls) -> rl.layout:
        """How its tensors lie in memory."""
        return rl.sparse_coo

    @property
    def is_sparse(cls) -> bool:
        """Always True."""
        return True


def __getattr__(name: str) -> TensorType:
    """Makes the class of tensors on the CPU that is asked for."""
    if name.endswith("Tensor"):
        return globals().setdefault(name, tensor_type(name))
    raise AttributeError(f"module 'rushlight._legacy' has no attribute '{name}'")


def set_default_tensor_type(t: TensorType | type[Tensor] | str) -> None:
    """Sets the dtype and the device of tensors that are made without; old.

    Use set_default_dtype and set_default_device instead.

    Args:
        t: a class like torch.DoubleTensor, or its name.

    Raises:
        TypeError: if it is not a floating-point type.

    Example:
        >>> torch.set_default_tensor_type(torch.DoubleTensor)
        >>> torch.ones(2).dtype
        torch.float64
        >>> torch.set_default_tensor_type("torch.FloatTensor")
    """
    if isinstance(t, str):
        dtype, device = read_type(t)
    elif isinstance(t, TensorType):
        dtype, device = t.dtype, t.device_type
    else:
        raise TypeError(f"set_default_tensor_type: invalid type object {t!r}")
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C.set_default_dtype(dtype)
    rl.set_default_device(None if device == "cpu" else device)
