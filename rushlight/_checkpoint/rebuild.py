"""What the names in a checkpoint stand for.

Owns the table of names that a file may use, and the functions behind them, which check every
argument: in a hostile file they may have any type and value.
Invariant: nothing in the table runs code that the file chose or makes a tensor that reaches outside
its storage.
"""

from __future__ import annotations

import copyreg
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from pickle import UnpicklingError
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import _quantized as quantized
from rushlight._copying import set_state
from rushlight._layout import LAYOUTS, jagged
from rushlight._sparse import rebuild
from rushlight._storage import TypedStorage
from rushlight._utils import WITHOUT_STORAGE
from rushlight.nested import nested_tensor_from_jagged
from rushlight.nested._tensor import Nested, NestedTensor, strided_of
from rushlight.nn import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

_MAX_INT64 = 2**63 - 1
_MAX_DIMS = 64
_MAX_KEY_PARTS = 1000
_TYPE_IN_FILE = "_type_in_file"


class StorageType:
    """Stands for PyTorch's storage classes, such as torch.FloatStorage.

    Args:
        name: full name of the class in PyTorch.
        dtype: dtype of the elements; None for torch.UntypedStorage, which counts bytes.
    """

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: rl.dtype | None) -> None:
        self.name = name
        self.dtype = dtype

    @property
    def itemsize(self) -> int:
        return 1 if self.dtype is None else self.dtype.itemsize


def loaded_storage(data: Tensor, storage_type: StorageType) -> TypedStorage:
    """Returns a storage of the file: its bytes, which know their type there."""
    if storage_type.dtype is rl.bool:
        data.copy_(data != 0)  # a bool in memory is 0 or 1, whatever the file says
    dtype = storage_type.dtype or rl.uint8
    storage = TypedStorage(wrap_storage=data.untyped_storage(), dtype=dtype)
    vars(storage)[_TYPE_IN_FILE] = storage_type
    return storage


def type_in_file(storage: Any) -> StorageType:
    """Returns the type that a storage of the file has there."""
    found = vars(storage).get(_TYPE_IN_FILE) if isinstance(storage, TypedStorage) else None
    if not isinstance(found, StorageType):
        raise UnpicklingError("not a storage")
    return found


UNTYPED_STORAGE = StorageType("torch.storage.UntypedStorage", None)
STORAGE_TYPES = {
    dtype: StorageType(f"torch.{name}Storage", dtype)
    for dtype, name in {
        rl.bool: "Bool",
        rl.uint8: "Byte",
        rl.int8: "Char",
        rl.int16: "Short",
        rl.int32: "Int",
        rl.int64: "Long",
        rl.float16: "Half",
        rl.bfloat16: "BFloat16",
        rl.float32: "Float",
        rl.float64: "Double",
        rl.complex64: "ComplexFloat",
        rl.complex128: "ComplexDouble",
    }.items()
}
QUANTIZED_STORAGE_TYPES = {
    dtype: StorageType(f"torch.{name}Storage", dtype.integers)
    for dtype, name in {
        quantized.qint8: "QInt8",
        quantized.quint8: "QUInt8",
        quantized.qint32: "QInt32",
    }.items()
}
_SCHEMES = (
    quantized.per_tensor_affine,
    quantized.per_tensor_symmetric,
    quantized.per_channel_affine,
    quantized.per_channel_symmetric,
    quantized.per_channel_affine_float_qparams,
)


def check(condition: bool, problem: str) -> None:
    """Raises UnpicklingError unless the condition holds.

    Problems name no value from the file that is not known to be a number or a text: to print it
    could take for ever.
    """
    if not condition:
        raise UnpicklingError(problem)


def check_key(key: Any) -> Any:
    """Returns a key of a dict or set, having refused tuples with too many parts in them.

    Hashing visits all parts, and each again where it occurs again: a small file could make that
    overflow the stack or take for ever.
    """
    parts = [key]
    for part in parts:
        if isinstance(part, tuple):
            check(len(parts) + len(part) <= _MAX_KEY_PARTS, "a key is a tuple with too many parts")
            parts += part
    return key


def set_attributes(target: Any, state: Any) -> None:
    """Sets attributes of an object to those that were saved; none may hide one of its class."""
    check(type(state) is dict, "attributes must be a dict")
    for name, value in state.items():
        fits = type(name) is str and not hasattr(type(target), name)
        check(fits, "an attribute would hide one of its class")
        vars(target)[name] = value


def _check_layout(offset: Any, size: Any, stride: Any, available: int, itemsize: int) -> None:
    """Refuses sizes, strides and an offset (in elements) that leave a storage."""
    check(isinstance(size, tuple) and isinstance(stride, tuple), "a size is not a tuple")
    check(len(size) == len(stride) <= _MAX_DIMS, "a tensor's size and stride do not match")
    for number in (offset, *size, *stride):
        fits = type(number) is int and 0 <= number <= _MAX_INT64
        check(fits, "a size, stride or offset is not a number of elements")
    nbytes = math.prod(n for n in size if n) * itemsize
    check(nbytes <= _MAX_INT64, "a tensor's size is too large")
    if 0 in size:
        return
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if last >= available:
        raise UnpicklingError(
            f"a tensor of size {tuple(size)}, stride {tuple(stride)} and offset {offset} leaves "
            f"its storage of {available} elements"
        )


def _check_can_learn(dtype: rl.dtype) -> None:
    can_learn = dtype.is_floating_point or dtype.is_complex
    check(can_learn, "a tensor of integers requires a gradient")


def _tensor(
    storage: TypedStorage, dtype: Any, offset: Any, size: Any, stride: Any, requires_grad: Any
) -> Tensor:
    data = storage.untyped()._values()
    available = data.numel() // dtype.itemsize
    _check_layout(offset, size, stride, available, dtype.itemsize)
    if 0 in size:
        result = rl.empty(size, dtype=dtype)
    else:
        elements = data[: available * dtype.itemsize].view(dtype)
        result = elements.as_strided(size, stride, offset)
    check(type(requires_grad) is bool, "requires_grad must be a bool")
    if requires_grad:
        _check_can_learn(dtype)
        result.requires_grad_()
    return result


def _resolve(result: Tensor, metadata: Any) -> Tensor:
    """Carries out conjugation and negation, which PyTorch may leave to be done."""
    check(metadata is None or type(metadata) is dict, "metadata must be a dict")
    if metadata and metadata.get("conj") is True:
        result = result.conj()
    if metadata and metadata.get("neg") is True:
        result = -result
    return result


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """Stands for torch._utils._rebuild_tensor."""
    return rebuild_tensor_v2(storage, offset, size, stride, False, None)


def rebuild_tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """Stands for torch._utils._rebuild_tensor_v2: the dtype is that of the storage."""
    dtype = type_in_file(storage).dtype
    check(dtype is not None, "not a typed storage")
    result = _tensor(storage, dtype, offset, size, stride, requires_grad)
    return _resolve(result, metadata)


def rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """Stands for torch._utils._rebuild_tensor_v3: the storage is bytes and the dtype is named."""
    check(type_in_file(storage).dtype is None, "not an untyped storage")
    is_known = any(dtype is known for known in WITHOUT_STORAGE)
    check(is_known, "a tensor of this dtype is not saved as bytes")
    return _resolve(_tensor(storage, dtype, offset, size, stride, requires_grad), metadata)


def rebuild_quantized(
    storage: Any, offset: Any, size: Any, stride: Any, form: Any, requires_grad: Any, hooks: Any
) -> Tensor:
    """Stands for torch._utils._rebuild_qtensor; `form` is a tuple of scheme and parameters."""
    kind = type_in_file(storage)
    types = QUANTIZED_STORAGE_TYPES.values()
    check(any(kind is known for known in types), "not a storage of quantized numbers")
    check(type(form) is tuple and 3 <= len(form) <= 4, "a quantized tensor's form is damaged")
    integers = _tensor(storage, kind.dtype, offset, size, stride, False)
    try:
        return quantized.from_parts(integers, *form)
    except (RuntimeError, TypeError, ValueError) as error:
        raise UnpicklingError(f"a quantized tensor is damaged: {error}") from None


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> Parameter:
    """Stands for torch._utils._rebuild_parameter."""
    check(isinstance(data, Tensor), "a parameter's data must be a tensor")
    check(type(requires_grad) is bool, "requires_grad must be a bool")
    if requires_grad:
        _check_can_learn(data.dtype)
    return Parameter(data.detach(), requires_grad)


def rebuild_parameter_with_state(
    data: Any, requires_grad: Any, hooks: Any, state: Any
) -> Parameter:
    """Stands for torch._utils._rebuild_parameter_with_state."""
    result = rebuild_parameter(data, requires_grad, hooks)
    set_attributes(result, state)
    return result


def rebuild_with_attributes(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """Stands for torch._tensor._rebuild_from_type_v2: a tensor of a class, with attributes."""
    if function is rebuild_jagged:  # whose attributes tell the same as the arguments
        check(kind is NestedTensor, "a nested tensor has an unknown class")
        check(type(arguments) is tuple and len(arguments) == 1, "arguments are not a tuple of one")
        return rebuild_jagged(*arguments)
    check(type(arguments) is tuple, "arguments are not a tuple")
    if function is rebuild_wrapper:
        check(len(arguments) == 8, "arguments are not a tuple of 8")
        check(kind is arguments[0], "a tensor of a class is made of another one")
        return _with_state(rebuild_wrapper(*arguments), state)
    functions = (rebuild_tensor_v2, rebuild_tensor_v3, rebuild_meta)
    is_known = any(function is known for known in functions)
    check(is_known, "a tensor with attributes is made in an unknown way")
    result = function(*arguments)
    if isinstance(kind, type) and not any(kind is known for known in GLOBALS.values()):
        check(issubclass(kind, Tensor), "a tensor with attributes has an unknown class")
        return _with_state(Tensor._make_subclass(kind, result, result.requires_grad), state)
    check(kind is Tensor or kind is Buffer, "a tensor with attributes has an unknown class")
    check(type(state) is dict, "attributes must be a dict")
    if kind is Buffer or state.get("_is_buffer") is True:
        result = Buffer(result, persistent=state.get("persistent") is not False)
        state = {name: state[name] for name in state if name not in ("persistent", "_is_buffer")}
    set_attributes(result, state)
    return result


def _with_state(tensor: Tensor, state: Any) -> Tensor:
    """Sets attributes of a tensor whose class the user trusts, so that it may name them."""
    if type(tensor).__setstate__ is not Tensor.__setstate__:
        tensor.__setstate__(state)
        return tensor
    parts: Any = state if type(state) is tuple and len(state) == 2 else (state, {})
    parts = tuple({} if part is None else part for part in parts)
    for part in parts:
        check(type(part) is dict, "attributes must be a dict")
        for name in part:
            is_name = type(name) is str and not name.startswith("__")
            check(is_name, "an attribute has no proper name")
    slots = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined] # pyright: ignore
    check(parts[1].keys() <= set(slots), "an attribute has no slot in its class")
    set_state(tensor, parts)
    return tensor


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """Stands for torch._utils._rebuild_meta_tensor_no_storage: a tensor without data."""
    check(any(dtype is known for known in (*STORAGE_TYPES, *WITHOUT_STORAGE)), "not a dtype")
    _check_layout(0, size, stride, _MAX_INT64, dtype.itemsize)
    check(type(requires_grad) is bool, "requires_grad must be a bool")
    if requires_grad:
        _check_can_learn(dtype)
    result = rl.empty_strided(size, stride, dtype=dtype, device="meta")
    return result.requires_grad_(requires_grad)


def rebuild_wrapper(
    kind: Any,
    dtype: Any,
    size: Any,
    stride: Any,
    offset: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
) -> Tensor:
    """Stands for torch._utils._rebuild_wrapper_subclass: a tensor of a class that was registered,
    without elements of its own; its parts are attributes."""
    is_class = isinstance(kind, type) and issubclass(kind, Tensor)
    check(is_class, "a tensor of a class has an unknown one")
    check(any(dtype is known for known in (*STORAGE_TYPES, *WITHOUT_STORAGE)), "not a dtype")
    _check_layout(offset, size, stride, _MAX_INT64, dtype.itemsize)
    check(layout is rl.strided and isinstance(device, rl.device), "a tensor's layout is damaged")
    check(type(requires_grad) is bool, "requires_grad must be a bool")
    if requires_grad:
        _check_can_learn(dtype)
    try:
        return Tensor._make_wrapper_subclass(
            kind, size, stride, offset, dtype=dtype, device=device, requires_grad=requires_grad
        )
    except (RuntimeError, TypeError) as error:
        raise UnpicklingError(f"a tensor of a class cannot be made: {error}") from None


def rebuild_sparse(layout: Any, parts: Any) -> Tensor:
    """Stands for torch._utils._rebuild_sparse_tensor; indices are checked."""
    check(any(layout is known for known in LAYOUTS[1:]), "not a sparse layout that is supported")
    is_coo = layout is rl.sparse_coo
    check(type(parts) is tuple and 3 <= len(parts) <= 4, "a sparse tensor has 3 or 4 parts")
    check(is_coo or len(parts) == 4, "a compressed tensor has 4 parts")
    count = 2 if is_coo else 3
    tensors: Any = parts[:count]
    size: Any = parts[count]
    are_dense = all(isinstance(t, Tensor) and t.layout is rl.strided for t in tensors)
    check(are_dense, "a part of a sparse tensor is not a dense tensor")
    check(isinstance(size, tuple), "the size of a sparse tensor is not a tuple")
    check(all(type(n) is int and 0 <= n <= _MAX_INT64 for n in size), "a size is not a number")
    # PyTorch before 2.1 did not tell whether a tensor is coalesced.
    rest = (*parts[3:], False)[:1] if is_coo else ()
    check(all(type(is_coalesced) is bool for is_coalesced in rest), "is_coalesced must be a bool")
    try:
        return rebuild(layout, (*(t.detach() for t in tensors), size, *rest))
    except RuntimeError as error:
        raise UnpicklingError(f"a sparse tensor is damaged: {error}") from None


def rebuild_jagged(parts: Any) -> Tensor:
    """Stands for torch.nested._internal.nested_tensor._rebuild_njt: layout jagged."""
    check(type(parts) is dict, "the parts of a nested tensor must be a dict")
    values, offsets = parts.get("values"), parts.get("offsets")
    lengths, dim = parts.get("lengths"), parts.get("_ragged_idx", 1)
    for tensor in (values, offsets, *(() if lengths is None else (lengths,))):
        check(_is_plain(tensor), "a part of a nested tensor is not a dense tensor")
    check(type(dim) is int, "the ragged dim of a nested tensor is not a number")
    requires_grad: Any = parts.get("requires_grad", False)
    check(type(requires_grad) is bool, "requires_grad must be a bool")
    if requires_grad:
        _check_can_learn(values.dtype)
    try:
        made = nested_tensor_from_jagged(values.detach(), offsets, lengths, dim)
    except RuntimeError as error:
        raise UnpicklingError(f"a nested tensor is damaged: {error}") from None
    return made.requires_grad_(requires_grad)


def rebuild_strided(buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Tensor:
    """Stands for torch._utils._rebuild_nested_tensor: layout strided."""
    tables = sizes, strides, offsets
    check(_is_plain(buffer) and buffer.dim() == 1, "the values of a nested tensor have no one dim")
    check(
        all(_is_plain(table) and table.dtype is rl.int64 and not table.is_meta for table in tables)
        and sizes.shape == strides.shape
        and offsets.dim() == 1
        and sizes.shape[:1] == offsets.shape[: sizes.dim()],
        "the sizes of a nested tensor are not integers that go together",
    )
    parts = []
    rows = zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=False)
    for shape, stride, offset in rows if sizes.dim() == 2 else ():
        _check_layout(offset, tuple(shape), tuple(stride), buffer.numel(), 1)
        parts.append(buffer.as_strided(shape, stride, offset))
    if not parts:
        return strided_of(buffer.detach()[:0], [])
    flat = rl.cat([part.reshape(-1) for part in parts]).detach()
    return strided_of(flat, [part.shape for part in parts])


def _is_plain(tensor: Any) -> bool:
    return (
        isinstance(tensor, Tensor)
        and not isinstance(tensor, Nested)
        and tensor.layout is rl.strided
    )


def get_layout(name: Any) -> Any:
    """Stands for torch.serialization._get_layout."""
    layouts = {repr(layout): layout for layout in (*LAYOUTS, jagged)}
    check(type(name) is str and name in layouts, "not a layout that is supported")
    return layouts[name]


def _make_ordered_dict(pairs: Any = ()) -> OrderedDict[Any, Any]:
    check(isinstance(pairs, list | tuple), "an OrderedDict is made of pairs")
    result = OrderedDict()
    for pair in pairs:
        check(isinstance(pair, list | tuple) and len(pair) == 2, "not a pair of key and value")
        result[check_key(pair[0])] = pair[1]
    return result


def _make_counter(counts: Any) -> Counter[Any]:
    check(type(counts) is dict, "a Counter is made of a dict")
    result: Counter[Any] = Counter()
    dict.update(result, counts)
    return result


def _make_set(items: Any) -> set[Any]:
    check(type(items) is list, "a set is made of a list")
    return {check_key(item) for item in items}


def _make_bytes(text: Any, encoding: Any) -> bytes:
    check(type(text) is str and encoding == "latin1", "bytes are written as latin1 text")
    return text.encode("latin1")


def _make_empty_bytes() -> bytes:
    return b""


def _make_bytearray(data: Any = b"") -> bytearray:
    check(type(data) is bytes, "a bytearray is made of bytes")
    return bytearray(data)


def _make_complex(real: Any, imag: Any) -> complex:
    check(type(real) is float and type(imag) is float, "a complex number is made of two floats")
    return complex(real, imag)


def _make_size(sizes: Any) -> rl.Size:
    ok = type(sizes) is tuple and all(type(n) is int and 0 <= n <= _MAX_INT64 for n in sizes)
    check(ok, "a Size is made of sizes")
    return rl.Size(sizes)


def _make_device(kind: Any, index: Any = None) -> rl.device:
    check(type(kind) is str and (index is None or type(index) is int), "not a device")
    try:
        return rl.device(kind) if index is None else rl.device(kind, index)
    except RuntimeError as error:
        raise UnpicklingError(str(error)) from None


def _make_uninitialized(
    kind: Any, requires_grad: Any, device: Any = None, dtype: Any = None
) -> Any:
    check(type(requires_grad) is bool, "requires_grad must be a bool")
    check(device is None or isinstance(device, rl.device), "not a device")
    check(dtype is None or isinstance(dtype, rl.dtype), "not a dtype")
    if requires_grad and dtype is not None:
        _check_can_learn(dtype)
    try:
        return kind(requires_grad, device, dtype)
    except RuntimeError as error:
        raise UnpicklingError(str(error)) from None


def _dtype_name(dtype: rl.dtype) -> str:
    return f"torch.{str(dtype).rpartition('.')[2]}"


# Name in the pickle -> the object that it stands for.
GLOBALS: dict[str, Any] = {
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse,
    "torch._utils._rebuild_nested_tensor": rebuild_strided,
    "torch._utils._rebuild_qtensor": rebuild_quantized,
    "torch.nested._internal.nested_tensor.NestedTensor": NestedTensor,
    "torch.nested._internal.nested_tensor._rebuild_njt": rebuild_jagged,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta,
    "torch._utils._rebuild_wrapper_subclass": rebuild_wrapper,
    "torch._tensor._rebuild_from_type_v2": rebuild_with_attributes,
    "torch._tensor.Tensor": Tensor,
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Buffer": Buffer,
    "torch.serialization._get_layout": get_layout,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
    "torch.nn.parameter.UninitializedParameter": UninitializedParameter,
    "torch.nn.parameter.UninitializedBuffer": UninitializedBuffer,
    "torch.Size": rl.Size,
    "torch.device": rl.device,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": _make_bytes,
    **{f"builtins.{kind.__name__}": kind for kind in (set, bytes, bytearray, complex)},
    **{_dtype_name(dtype): dtype for dtype in (*STORAGE_TYPES, *WITHOUT_STORAGE)},
    **{repr(constant): constant for constant in (*QUANTIZED_STORAGE_TYPES, *_SCHEMES)},
    **{
        kind.name: kind
        for kind in (
            *STORAGE_TYPES.values(),
            *QUANTIZED_STORAGE_TYPES.values(),
            UNTYPED_STORAGE,
        )
    },
}

# Identity of an object that a file may call -> what is called instead, which checks the arguments.
# Looked up by identity, because what a file calls may be anything, even unhashable.
CALLS: dict[int, Callable[..., Any]] = {
    **{
        id(function): function
        for function in (
            rebuild_tensor,
            rebuild_tensor_v2,
            rebuild_tensor_v3,
            rebuild_sparse,
            rebuild_quantized,
            rebuild_strided,
            rebuild_meta,
            rebuild_wrapper,
            rebuild_with_attributes,
            get_layout,
            rebuild_parameter,
            rebuild_parameter_with_state,
            _make_bytes,
        )
    },
    id(OrderedDict): _make_ordered_dict,
    id(Counter): _make_counter,
    id(set): _make_set,
    id(bytes): _make_empty_bytes,
    id(bytearray): _make_bytearray,
    id(complex): _make_complex,
    id(rl.Size): _make_size,
    id(rl.device): _make_device,
    id(UninitializedParameter): partial(_make_uninitialized, UninitializedParameter),
    id(UninitializedBuffer): partial(_make_uninitialized, UninitializedBuffer),
}

# Identity of an object -> its name in PyTorch, for writing.
TORCH_NAMES: dict[int, str] = {
    id(value): name for name, value in GLOBALS.items() if name.startswith("torch.")
}
