"""Writing a checkpoint.

Owns how tensors and the framework's own types are pickled: under PyTorch's names, with storages
referred to by number, so that views which share memory share it again when loaded.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections import OrderedDict
from typing import IO, Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._checkpoint.archive import ArchiveWriter
from rushlight._checkpoint.legacy import FACTS, START, VERSION
from rushlight._checkpoint.rebuild import (
    QUANTIZED_STORAGE_TYPES,
    STORAGE_TYPES,
    TORCH_NAMES,
    UNTYPED_STORAGE,
    get_layout,
    rebuild_jagged,
    rebuild_meta,
    rebuild_parameter,
    rebuild_parameter_with_state,
    rebuild_quantized,
    rebuild_sparse,
    rebuild_strided,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_with_attributes,
    rebuild_wrapper,
)
from rushlight._quantized import QuantizedTensor, integers_of, parts_of_form
from rushlight._sparse import parts_of
from rushlight._storage import StorageBase
from rushlight.nested._tensor import NestedTensor, StridedNestedTensor
from rushlight.nn import Buffer, Parameter
from rushlight.nn.parameter import is_lazy
from rushlight.utils.hooks import warn_if_has_hooks

_TYPES: dict[Any, Any] = {**STORAGE_TYPES, **QUANTIZED_STORAGE_TYPES}


class _SavedStorage:
    """A storage that the pickle refers to; `reference` is how."""

    def __init__(self, tensor: Tensor, nbytes: int, key: str) -> None:
        self.key = key
        self.type = _TYPES.get(tensor.dtype, UNTYPED_STORAGE)
        self.dtype = tensor.dtype
        count = nbytes // tensor.itemsize
        # Holds on to the memory, so that no other storage can take its address meanwhile.
        elements = integers_of(tensor) if tensor.is_quantized else tensor.detach()
        self.elements = elements.as_strided((count,), (1,), 0)
        numel = count * tensor.itemsize // self.type.itemsize
        self.reference = ("storage", self.type, key, str(tensor.device), numel)

    def data(self) -> memoryview:
        return memoryview(self.elements.cpu().view(rl.uint8))


# The pickler in C insists on importing the names that it writes.
_PythonPickler: Any = pickle._Pickler

_PLAIN = (Tensor.__reduce_ex__, Parameter.__reduce_ex__)
# What reducer_override has nothing to say about, which is most of what a checkpoint holds.
_AS_USUAL = {OrderedDict, bool, dict, float, int, list, str, tuple, type(None)}


class _Pickler(_PythonPickler):
    """Pickles an object, and notes the storages that the pickle refers to.

    Args:
        file: where to.
        protocol: of the pickle.
        view: what references to storages end with in the format.
    """

    def __init__(self, file: IO[bytes], protocol: int, view: tuple[None, ...] = ()) -> None:
        super().__init__(file, protocol)
        self.storages: dict[tuple[Any, ...], _SavedStorage] = {}
        self._view = view

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, StorageBase):
            obj = self._storage_of(obj._values())
            if obj.type is UNTYPED_STORAGE:
                raise RuntimeError(
                    f"save: files know no storages of {obj.dtype}. Save untyped(), or a tensor."
                )
        return obj.reference + self._view if isinstance(obj, _SavedStorage) else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) in _AS_USUAL:
            return NotImplemented
        if id(obj) in TORCH_NAMES:
            return TORCH_NAMES[id(obj)]
        if is_lazy(obj):
            return type(obj), (obj.requires_grad, obj.device, obj.dtype)
        if isinstance(obj, QuantizedTensor):
            return self._reduce_quantized(obj)
        if isinstance(obj, NestedTensor):
            parts = {
                "values": obj.values().detach(),
                "offsets": obj.offsets(),
                "lengths": obj.lengths(),
                "_ragged_idx": obj._ragged_idx,
                "_metadata_cache": {},
                "requires_grad": obj.requires_grad,
            }
            return rebuild_with_attributes, (rebuild_jagged, NestedTensor, (parts,), {})
        if isinstance(obj, StridedNestedTensor):
            return rebuild_strided, obj._tables()
        if isinstance(obj, Tensor) and type(obj).__reduce_ex__ not in _PLAIN:
            return NotImplemented  # its class says how it is pickled, or why not
        if isinstance(obj, Tensor) and _C._is_wrapper(obj):
            return self._reduce_wrapper(obj)
        if isinstance(obj, Parameter):
            arguments = (obj.detach(), obj.requires_grad, OrderedDict())
            state = vars(obj)
            if state:
                return rebuild_parameter_with_state, (*arguments, dict(state))
            return rebuild_parameter, arguments
        if isinstance(obj, Tensor):
            if obj.layout is not rl.strided:
                return rebuild_sparse, parts_of(obj.detach())
            return self._reduce_tensor(obj)
        if isinstance(obj, rl.layout):
            return get_layout, (repr(obj),)
        if isinstance(obj, rl.Size):
            return rl.Size, (tuple(obj),)
        if isinstance(obj, rl.device):
            return rl.device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        torch_name = TORCH_NAMES.get(id(obj))
        if torch_name is None:
            super().save_global(obj, name)
            return
        module, _, attribute = torch_name.rpartition(".")
        self.write(pickle.GLOBAL + f"{module}\n{attribute}\n".encode())
        self.memoize(obj)

    def save_reduce(self, func: Any, args: tuple[Any, ...], *rest: Any, obj: Any = None) -> None:
        if func is not rebuild_tensor_v2 or not self.bin:
            super().save_reduce(func, args, *rest, obj=obj)
            return
        # The same without a look at each number, and no places in the memo for what comes once.
        storage, offset, shape, stride, requires_grad, _ = args
        save, write, save_int = self.save, self.write, self.save_long
        *reference, count = storage.reference
        save(func)
        write(pickle.MARK + pickle.MARK)
        for part in reference:
            save(part)
        save_int(count)
        write(pickle.NONE * len(self._view) + pickle.TUPLE + pickle.BINPERSID)
        save_int(offset)
        for numbers in (shape, stride):
            write(pickle.MARK)
            for number in numbers:
                save_int(number)
            write(pickle.TUPLE)
        self.save_bool(requires_grad)
        save(OrderedDict)
        write(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)
        self.memoize(obj)

    def _reduce_tensor(self, tensor: Tensor) -> tuple[Any, ...]:
        warn_if_has_hooks(tensor)
        function, arguments = self._reduce_values(tensor)
        kind, state = type(tensor), tensor.__getstate__() or {}
        if isinstance(tensor, Buffer):  # which is a tensor with a mark in PyTorch
            kind, state = Tensor, {**vars(tensor), "_is_buffer": True}
        if kind is Tensor and not state:
            return function, arguments
        return rebuild_with_attributes, (function, kind, arguments, state)

    def _reduce_wrapper(self, tensor: Tensor) -> tuple[Any, ...]:
        cls, shape, stride = type(tensor), tuple(tensor.shape), tuple(tensor.stride())
        outside = (tensor.dtype, shape, stride, tensor.storage_offset(), rl.strided, tensor.device)
        arguments = (cls, *outside, tensor.requires_grad)
        state = tensor.__getstate__() or {}
        return rebuild_with_attributes, (rebuild_wrapper, cls, arguments, state)

    def _reduce_quantized(self, tensor: QuantizedTensor) -> tuple[Any, ...]:
        return rebuild_quantized, (
            self._storage_of(tensor),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            parts_of_form(tensor.form),
            False,
            OrderedDict(),
        )

    def _reduce_values(self, tensor: Tensor) -> tuple[Any, ...]:
        if tensor.is_meta:
            shape, stride = tuple(tensor.shape), tuple(tensor.stride())
            return rebuild_meta, (tensor.dtype, shape, stride, tensor.requires_grad)
        storage = self._storage_of(tensor)
        arguments = (
            storage,
            tensor.storage_offset(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            tensor.requires_grad,
            OrderedDict(),  # hooks are not saved
        )
        if storage.type is UNTYPED_STORAGE:
            return rebuild_tensor_v3, (*arguments, tensor.dtype)
        return rebuild_tensor_v2, arguments

    def _storage_of(self, tensor: Tensor) -> _SavedStorage:
        memory = tensor.untyped_storage()
        nbytes = memory.nbytes()
        # Storages without memory may have any address.
        identity: tuple[Any, ...] = (memory.data_ptr(), nbytes) if nbytes else (tensor.dtype,)
        storage = self.storages.get(identity)
        if storage is None:
            storage = _SavedStorage(tensor, nbytes, str(len(self.storages)))
            self.storages[identity] = storage
        if storage.dtype != tensor.dtype:
            raise RuntimeError(
                "save: Cannot save multiple tensors or storages that view the same data as "
                f"different types: {storage.dtype} and {tensor.dtype}. Clone one of them."
            )
        return storage


def write_checkpoint(obj: Any, file: IO[bytes], protocol: int, skips_data: bool = False) -> None:
    """Writes an object and the storages of its tensors to a file, or zeros in their place."""
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, protocol)
    pickler.dump(obj)
    with ArchiveWriter(file) as archive:
        archive.add("data.pkl", pickled.getbuffer())
        archive.add("byteorder", sys.byteorder.encode())
        for storage in pickler.storages.values():
            data = storage.data()
            archive.add(f"data/{storage.key}", bytes(data.nbytes) if skips_data else data)
        archive.add("version", b"3\n")


def write_legacy(obj: Any, file: IO[bytes], protocol: int, skips_data: bool = False) -> None:
    """Writes a checkpoint in the format of legacy.py, for programs that read no other."""
    for start in (START, pickle.dumps(VERSION, 2), pickle.dumps(FACTS, 2)):
        file.write(start)
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, protocol, view=(None,))
    pickler.dump(obj)
    file.write(pickled.getbuffer())
    storages = pickler.storages.values()
    file.write(pickle.dumps([storage.key for storage in storages], protocol))
    for storage in storages:
        data = storage.data()
        file.write(struct.pack("<q", data.nbytes // storage.type.itemsize))
        file.write(bytes(data.nbytes) if skips_data else data)
