"""Files of named tensors in the format of the package safetensors, under the names it has there.

A file is the length of a header, the header, which is JSON and says name, dtype, shape and place of
each tensor, and the bytes of all tensors. The package itself is not needed. Invariant: a tensor
that is read lies inside the file, whatever the header says.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import rushlight as rl
from rushlight import Tensor
from rushlight._checkpoint.archive import ReadOptions, replace_when_complete

if TYPE_CHECKING:
    from rushlight.nn import Module

__all__ = [
    "SafetensorError",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
]

_LENGTH = struct.Struct("<Q")
_MAX_HEADER = 100_000_000  # as in the package
_ALIGNMENT = 8  # of the first tensor; wider elements first keeps all aligned
_METADATA = "__metadata__"
_DTYPES = {
    "BOOL": rl.bool,
    "U8": rl.uint8,
    "I8": rl.int8,
    "U16": rl.uint16,
    "I16": rl.int16,
    "U32": rl.uint32,
    "I32": rl.int32,
    "U64": rl.uint64,
    "I64": rl.int64,
    "F8_E4M3": rl.float8_e4m3fn,
    "F8_E5M2": rl.float8_e5m2,
    "F16": rl.float16,
    "BF16": rl.bfloat16,
    "F32": rl.float32,
    "F64": rl.float64,
    "C64": rl.complex64,
}


class SafetensorError(RuntimeError):
    """A file that is not in the format, or has no such tensor."""


class _Entry:
    """What the header says about one tensor; its place counts from the end of the header."""

    __slots__ = ("begin", "dtype", "end", "kind", "shape")

    def __init__(self, kind: str, shape: tuple[int, ...], begin: int, end: int) -> None:
        self.kind = kind
        self.dtype = _DTYPES[kind]
        self.shape = shape
        self.begin = begin
        self.end = end


def _read_header(data: Any, name: str) -> tuple[dict[str, _Entry], dict[str, str] | None, int]:
    """Returns the entries, the metadata and where the bytes of tensors start, all checked."""

    def check(condition: bool, problem: str) -> None:
        if not condition:
            raise SafetensorError(f"load: cannot read {name}: {problem}.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        check(len(result) == len(pairs), "its header has a name twice")
        return result

    check(len(data) >= _LENGTH.size, "it is too short for a safetensors file")
    (length,) = _LENGTH.unpack(data[: _LENGTH.size])
    check(length <= _MAX_HEADER, "its header is too long; it may be no safetensors file")
    start = _LENGTH.size + length
    check(start <= len(data), "it ends in the middle of its header")
    try:
        header = json.loads(bytes(data[_LENGTH.size : start]), object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise SafetensorError(f"load: cannot read {name}: its header is not JSON.") from None
    check(isinstance(header, dict), "its header is not a table")
    metadata = header.pop(_METADATA, None)
    is_text = metadata is None or (
        isinstance(metadata, dict) and all(isinstance(text, str) for text in metadata.values())
    )
    check(is_text, "its metadata are not texts")
    entries = {}
    for key, facts in header.items():
        is_table = isinstance(facts, dict) and {"dtype", "shape", "data_offsets"} <= facts.keys()
        check(is_table, f"its header is incomplete for {key!r}")
        kind, shape, place = facts["dtype"], facts["shape"], facts["data_offsets"]
        check(isinstance(kind, str), f"the dtype of {key!r} is damaged")
        check(kind in _DTYPES, f"{key!r} has the dtype {kind}, which Rushlight does not have")
        check(_are_counts(shape) and _are_counts(place), f"the place of {key!r} is damaged")
        check(len(place) == 2 and place[0] <= place[1], f"the place of {key!r} is damaged")
        size = math.prod(shape) * _DTYPES[kind].itemsize
        check(place[1] - place[0] == size, f"the size of {key!r} does not fit its shape")
        entries[key] = _Entry(kind, tuple(shape), *place)
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: (entry.begin, entry.end)):
        check(entry.begin == end, "its tensors overlap or leave holes")
        end = entry.end
    check(start + end == len(data), "it is cut off, or has more bytes than its header says")
    return entries, metadata, start


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _tensor_at(data: Any, start: int, entry: _Entry, device: Any) -> Tensor:
    size = entry.end - entry.begin
    if not size:
        return rl.empty(entry.shape, dtype=entry.dtype, device=device)
    place = start + entry.begin
    flat = rl.frombuffer(data, dtype=rl.uint8, count=size, offset=place)
    if place % entry.dtype.itemsize or entry.dtype is rl.bool:
        flat = flat.clone()  # also because a bool in memory must be 0 or 1
    result = (flat != 0) if entry.dtype is rl.bool else flat.view(entry.dtype)
    return result.reshape(entry.shape).to(device)


# Writing


def _parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> list[Any]:
    """The length, the header and the bytes of each tensor, in the order of a file."""
    if not isinstance(tensors, dict):
        raise ValueError(f"save: expected a dict of tensors, but got {type(tensors).__name__}.")
    if _METADATA in tensors:
        raise ValueError(f"save: {_METADATA!r} names the metadata in a file. Rename the tensor.")
    for key, text in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"save: metadata must be texts, but {key!r} is {text!r}.")
    kinds = {dtype: kind for kind, dtype in _DTYPES.items()}
    for key, tensor in tensors.items():
        if not isinstance(key, str) or not isinstance(tensor, Tensor):
            raise ValueError(
                f"save: expected tensors by name, but {key!r} is {type(tensor).__name__}."
            )
        if tensor.layout is not rl.strided or tensor.dtype not in kinds:
            raise ValueError(
                f"save: {key!r} is a tensor of {tensor.dtype} and {tensor.layout}, which the "
                "format does not have. Convert it."
            )
    _refuse_shared(tensors)
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    data: list[Any] = []
    end = 0
    for key in sorted(tensors, key=lambda key: (-tensors[key].itemsize, key)):
        tensor = tensors[key].detach().cpu().contiguous()
        begin, end = end, end + tensor.nbytes
        header[key] = {
            "dtype": kinds[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        data.append(memoryview(tensor.reshape(-1).view(rl.uint8)))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return [_LENGTH.pack(len(text)), text, *data]


def _sharing(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """The names of those tensors that share memory, group by group."""
    groups: dict[tuple[str, int], list[str]] = {}
    for key, tensor in tensors.items():
        if tensor.numel():
            place = str(tensor.device), tensor.untyped_storage().data_ptr()
            groups.setdefault(place, []).append(key)
    return [keys for keys in groups.values() if len(keys) > 1]


def _refuse_shared(tensors: Mapping[str, Tensor]) -> None:
    shared = _sharing(tensors)
    if shared:
        raise RuntimeError(
            "save: Some tensors share memory, this will lead to duplicate memory on disk and "
            f"potential differences when loading them again: {shared}. Clone them, or use "
            "save_model."
        )


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Returns tensors as the bytes of a file.

    Args:
        tensors: by name; none may share memory with another one.
        metadata: texts to keep with them.

    Raises:
        ValueError: if something is not a tensor of a dtype that the format has.
        TypeError: if metadata are not texts.
        RuntimeError: if tensors share memory.

    Example:
        >>> from rushlight.utils import safetensors
        >>> safetensors.load(safetensors.save({"x": torch.arange(3)}))
        {'x': tensor([0, 1, 2])}
    """
    return b"".join(bytes(part) for part in _parts(tensors, metadata))


def save_file(
    tensors: dict[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes tensors to a file; one that is there already is replaced when it is complete.

    Args:
        tensors: by name; none may share memory with another one.
        filename: path.
        metadata: texts to keep with them.

    Raises:
        ValueError: if something is not a tensor of a dtype that the format has.
        TypeError: if metadata are not texts.
        RuntimeError: if tensors share memory, or the folder does not exist.
    """
    parts = _parts(tensors, metadata)
    with replace_when_complete(os.fspath(filename)) as file:
        for part in parts:
            file.write(part)


def save_model(
    model: Module,
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Writes the state of a module to a file; tensors that share all memory are written once.

    Args:
        model: the module.
        filename: path.
        metadata: texts to keep with it; the names that are left out are added.
        force_contiguous: no effect; tensors are written row by row.

    Raises:
        RuntimeError: if tensors share a part of their memory.
    """
    state: dict[str, Any] = dict(model.state_dict())
    metadata = dict(metadata or {})
    for keys in _sharing(state):
        kept, *others = sorted(keys)
        for key in others:
            if _place(state[key]) != _place(state[kept]):
                _refuse_shared({kept: state[kept], key: state[key]})
            del state[key]
            metadata.setdefault(key, kept)
    save_file(state, filename, metadata)


def _place(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride())


# Reading


class safe_open:
    """A file of tensors, which are read when they are asked for.

    Args:
        filename: path.
        framework: accepted for the package's sake.
        device: where tensors are put.

    Raises:
        SafetensorError: if the file is not in the format.
        FileNotFoundError: if there is no such file.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str = "pt",
        device: str | rl.device = "cpu",
    ) -> None:
        self._device = device
        self._name = os.fspath(filename)
        with open(filename, "rb") as file:
            is_empty = os.fstat(file.fileno()).st_size == 0
            self._data: Any = b"" if is_empty else ReadOptions(use_mmap=True).map_file(file)
        self._entries, self._metadata, self._start = _read_header(self._data, self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Leaves the file mapped for as long as one of its tensors is there."""

    def keys(self) -> list[str]:
        """Returns the names of the tensors."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """Returns the names of the tensors in the order in which they lie in the file."""
        return sorted(self._entries, key=lambda key: self._entries[key].begin)

    def metadata(self) -> dict[str, str] | None:
        """Returns the texts that were saved with the tensors, None if there are none."""
        return self._metadata

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise SafetensorError(f"File {self._name} does not contain tensor {name}")
        return self._entries[name]

    def get_tensor(self, name: str) -> Tensor:
        """Returns a tensor, which reads the file when it is used; changes do not go to the file.

        Raises:
            SafetensorError: if there is no tensor of that name.
        """
        return _tensor_at(self._data, self._start, self._entry(name), self._device)

    def get_slice(self, name: str) -> _Slice:
        """Returns a tensor of which only what is indexed is read."""
        entry = self._entry(name)
        return _Slice(entry, _tensor_at(self._data, self._start, entry, "cpu"), self._device)


class _Slice:
    """A tensor in a file, to be indexed."""

    def __init__(self, entry: _Entry, tensor: Tensor, device: Any) -> None:
        self._entry = entry
        self._tensor = tensor
        self._device = device

    def get_shape(self) -> list[int]:
        """Returns the sizes."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """Returns the format's name of the dtype."""
        return self._entry.kind

    def __getitem__(self, index: Any) -> Tensor:
        return self._tensor[index].to(self._device)


def load(data: bytes) -> dict[str, Tensor]:
    """Returns the tensors in the bytes of a file.

    Raises:
        SafetensorError: if they are not in the format.
    """
    memory = bytearray(data)
    entries, _, start = _read_header(memory, "the data")
    return {key: _tensor_at(memory, start, entries[key], "cpu") for key in entries}


def load_file(
    filename: str | os.PathLike[str], device: str | int | rl.device = "cpu"
) -> dict[str, Tensor]:
    """Returns the tensors in a file, by name.

    On the CPU the file is mapped into memory: nothing is read before it is used, and changes do not
    go to the file.

    Args:
        filename: path.
        device: where to put the tensors; a number is that of a GPU.

    Raises:
        SafetensorError: if the file is not in the format.
    """
    place = f"cuda:{device}" if isinstance(device, int) else device
    with safe_open(filename, device=place) as file:
        return {key: file.get_tensor(key) for key in file.offset_keys()}


def load_model(
    model: Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int | rl.device = "cpu",
) -> tuple[list[str], list[str]]:
    """Fills a module from a file that save_model wrote.

    Args:
        model: the module.
        filename: path.
        strict: whether missing and unexpected names are errors.
        device: where to read tensors to first.

    Returns:
        The names that are missing in the file and those that the module does not know.

    Raises:
        RuntimeError: if shapes differ or, with strict, names do.
    """
    missing, unexpected = model.load_state_dict(load_file(filename, device), strict=False)
    state = model.state_dict()
    for keys in _sharing(state):  # one of those that share memory fills all
        if any(key not in missing for key in keys):
            missing[:] = [key for key in missing if key not in keys]
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}:\n"
            + (f"    Missing key(s) in state_dict: {missing}\n" if missing else "")
            + (f"    Unexpected key(s) in state_dict: {unexpected}\n" if unexpected else "")
        )
    return missing, unexpected
