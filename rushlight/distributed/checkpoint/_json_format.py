"""The file of a checkpoint in a folder that says what it holds and where: metadata.json."""

from __future__ import annotations

import json
import os
from typing import Any

import rushlight as rl
from rushlight._checkpoint.archive import replace_when_complete
from rushlight._checkpoint.plain_data import decoded, dtype_of, encoded
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

__all__ = ["FILE", "read", "write"]

FILE = "metadata.json"
_FORMAT = "rushlight.distributed.checkpoint"
_VERSION = 2


def write(folder: str | os.PathLike[str], metadata: Metadata) -> None:
    """Writes what is in a checkpoint to its folder, in place of what is there."""
    tensors: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for key, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, TensorStorageMetadata):
            tensors[key] = {
                "dtype": str(entry.properties.dtype),
                "shape": list(entry.size),
                "parts": [
                    {
                        "offsets": list(part.offsets),
                        "shape": list(part.sizes),
                        **_place(metadata, MetadataIndex(key, part.offsets)),
                    }
                    for part in entry.chunks
                ],
            }
        else:
            values[key] = _place(metadata, MetadataIndex(key))
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "tensors": tensors,
        "values": values,
        "planner_data": encoded(metadata.planner_data, _refused),
    }
    with replace_when_complete(os.path.join(folder, FILE)) as file:
        file.write(json.dumps(content, allow_nan=False).encode())


def _refused(value: Any) -> None:
    raise TypeError(
        f"save: planner_data has {value!r}, a {type(value).__name__}. It may hold numbers, texts, "
        "bytes, dtypes, devices, and lists, tuples, sets and dicts of them."
    )


def _place(metadata: Metadata, index: MetadataIndex) -> dict[str, Any]:
    info = metadata.storage_data[index]
    return {"file": info.relative_path, "name": info.place}


def read(folder: str | os.PathLike[str]) -> Metadata:
    """Returns what is in a checkpoint.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if the file is damaged, or of another version.
    """
    path = os.path.join(folder, FILE)
    with open(path, "rb") as file:
        data = file.read()
    try:
        content = json.loads(data)
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise ValueError(f"it has version {content['version']} of {content['format']}")
        entries: dict[str, STORAGE_TYPES] = {}
        places: dict[MetadataIndex, _StorageInfo] = {}
        for key, facts in content["tensors"].items():
            entries[key] = entry = entry_of(dtype_of(facts["dtype"]), _sizes(facts["shape"]))
            for place, part in enumerate(facts["parts"]):
                box = ChunkStorageMetadata(_sizes(part["offsets"]), _sizes(part["shape"]))
                entry.chunks.append(box)
                places[MetadataIndex(key, box.offsets, place)] = _info(part)
            entry_is_whole(entry)
        for key, facts in content["values"].items():
            entries[key] = BytesStorageMetadata()
            places[MetadataIndex(key)] = _info(facts)
        planner_data = decoded(content["planner_data"])
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise ValueError(f"load: cannot read {path}: {error}.") from None
    return Metadata(entries, planner_data, places)


def _info(facts: Any) -> _StorageInfo:
    file, name = facts["file"], facts["name"]
    if type(file) is not str or type(name) is not str or os.path.basename(file) != file:
        raise ValueError(f"{file!r} is no file of its own")
    return _StorageInfo(file, name)


def _sizes(value: Any) -> rl.Size:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**63 for n in value):
        raise ValueError(f"{value!r} are no sizes")
    return rl.Size(value)
