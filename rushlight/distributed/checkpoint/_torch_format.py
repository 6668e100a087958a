"""Reading the checkpoints that torch.distributed.checkpoint writes, without running code from them.

Their folder has a pickle, ".metadata", that says which bytes of which file hold what; each such
item is a checkpoint of torch.save. Both are read by the machine of rushlight.load, which makes
nothing but the records below.
"""

from __future__ import annotations

import io
import os
from pickle import UnpicklingError
from typing import Any

import rushlight as rl
from rushlight._checkpoint.unpickling import read_pickle
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
    entry_is_whole,
    entry_of,
    path_of,
)

__all__ = ["FILE", "read", "read_item"]

FILE = ".metadata"


class _Record:
    """Stands for an object of one of PyTorch's classes: its attributes, or what else it has."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __new__(cls, *args: Any) -> _Record:
        made = super().__new__(cls)
        made.args = args
        return made

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __hash__(self) -> int:
        return id(self)


class _Tensor(_Record):
    pass


class _Properties(_Record):
    pass


class _Value(_Record):
    pass


_MODULE, _FILES = "torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"
_KNOWN: dict[str, Any] = {
    **{
        f"{_MODULE}.{name}": _Record
        for name in ("Metadata", "ChunkStorageMetadata", "MetadataIndex", "StorageMeta")
    },
    f"{_MODULE}.TensorStorageMetadata": _Tensor,
    f"{_MODULE}.BytesStorageMetadata": _Value,
    f"{_MODULE}.TensorProperties": _Properties,
    f"{_MODULE}._MEM_FORMAT_ENCODING": _Record,
    f"{_FILES}._StorageInfo": _Record,
    f"{_FILES}._StoragePrefix": _Record,
    "torch.serialization._get_layout": _Record,
    "pathlib.PosixPath": _Record,
    "pathlib._local.PosixPath": _Record,
}


def read(folder: str) -> Metadata:
    """Returns what is in a checkpoint.

    Raises:
        ValueError: if it is damaged.
    """
    path = os.path.join(folder, FILE)
    with open(path, "rb") as file:
        data = file.read()
    try:
        facts = read_pickle(data, path, _KNOWN).state
        places = {}
        for index, info in facts["storage_data"].items():
            name, offset = index.state["fqn"], index.state.get("offset")
            places[name, None if offset is None else tuple(offset)] = _place(info.state)
        tensors, values = {}, {}
        for name, entry in facts["state_dict_metadata"].items():
            if isinstance(entry, _Tensor):
                tensors[name] = _entry(name, entry.state, places)
            else:
                file_name, place = places[name, None]
                values[name] = read_item(folder, file_name, place)
        paths = {name: path_of(path) for name, path in (facts.get("planner_data") or {}).items()}
    except (LookupError, TypeError, AttributeError, ValueError, UnpicklingError) as error:
        raise ValueError(f"load: cannot read {path}: {error!r}.") from None
    return Metadata(tensors, values, paths)


def _place(state: Any) -> tuple[str, tuple[int, int]]:
    file, offset, length = state["relative_path"], state["offset"], state["length"]
    if type(file) is not str or os.path.basename(file) != file:
        raise ValueError(f"{file!r} is no file of its own")
    if type(offset) is not int or type(length) is not int or offset < 0 or length < 0:
        raise ValueError(f"the place of a part in {file} is damaged")
    if state.get("transform_descriptors"):
        raise ValueError(f"{file} is compressed")
    return file, (offset, length)


def _entry(name: str, state: Any, places: Any) -> TensorStorageMetadata:
    dtype = state["properties"].state[0]
    if not isinstance(dtype, rl.dtype):
        raise ValueError(f"the dtype of {name} is damaged")
    entry = entry_of(dtype, state["size"])
    for chunk in state["chunks"]:
        offsets = tuple(chunk.state["offsets"])
        box = rl.Size(offsets), rl.Size(chunk.state["sizes"])
        entry.chunks.append(ChunkStorageMetadata(*box, *places[name, offsets]))
    entry_is_whole(entry)
    return entry


def read_item(folder: str, name: str, place: tuple[int, int]) -> Any:
    """Returns what some bytes of a file hold."""
    offset, length = place
    with open(os.path.join(folder, name), "rb") as file:
        file.seek(offset)
        size = os.fstat(file.fileno()).st_size
        data = file.read(min(length, max(size - offset, 0)))
    return rl.load(io.BytesIO(data), map_location="cpu", weights_only=True)
