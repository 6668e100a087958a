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
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
    _StorageInfo,
    entry_is_whole,
    entry_of,
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


def read(folder: str | os.PathLike[str]) -> Metadata:
    """Returns what is in a checkpoint.

    Raises:
        ValueError: if it is damaged.
    """
    path = os.path.join(folder, FILE)
    with open(path, "rb") as file:
        data = file.read()
    try:
        facts = read_pickle(data, os.fspath(path), _KNOWN).state
        places = {}
        for index, info in facts["storage_data"].items():
            offset = index.state.get("offset")
            places[MetadataIndex(index.state["fqn"], offset)] = _place(info.state)
        entries: dict[str, STORAGE_TYPES] = {
            name: _entry(name, entry.state, places)
            if isinstance(entry, _Tensor)
            else BytesStorageMetadata()
            for name, entry in facts["state_dict_metadata"].items()
        }
    except (LookupError, TypeError, AttributeError, ValueError, UnpicklingError) as error:
        raise ValueError(f"load: cannot read {path}: {error!r}.") from None
    return Metadata(entries, facts.get("planner_data"), places)


def _place(state: Any) -> _StorageInfo:
    file, offset, length = state["relative_path"], state["offset"], state["length"]
    if type(file) is not str or os.path.basename(file) != file:
        raise ValueError(f"{file!r} is no file of its own")
    if type(offset) is not int or type(length) is not int or offset < 0 or length < 0:
        raise ValueError(f"the place of a part in {file} is damaged")
    if state.get("transform_descriptors"):
        raise ValueError(f"{file} is compressed")
    return _StorageInfo(file, (offset, length))


def _entry(name: str, state: Any, places: dict[MetadataIndex, Any]) -> TensorStorageMetadata:
    dtype = state["properties"].state[0]
    if not isinstance(dtype, rl.dtype):
        raise ValueError(f"the dtype of {name} is damaged")
    entry = entry_of(dtype, state["size"])
    for chunk in state["chunks"]:
        box = ChunkStorageMetadata(rl.Size(chunk.state["offsets"]), rl.Size(chunk.state["sizes"]))
        if MetadataIndex(name, box.offsets) not in places:
            raise ValueError(f"a part of {name} is nowhere")
        entry.chunks.append(box)
    entry_is_whole(entry)
    return entry


def read_item(path: str | os.PathLike[str], place: tuple[int, int]) -> io.BytesIO:
    """Returns some bytes of a file."""
    offset, length = place
    with open(path, "rb") as file:
        file.seek(offset)
        size = os.fstat(file.fileno()).st_size
        return io.BytesIO(file.read(min(length, max(size - offset, 0))))
