"""What a checkpoint says about itself: which tensors there are, and in which files their parts."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

import rushlight as rl
from rushlight._checkpoint.archive import replace_when_complete
from rushlight._checkpoint.plain_data import decoded, dtype_of
from rushlight.distributed.checkpoint._tree import encoded

__all__ = ["STATE_DICT_TYPE", "Metadata", "Part", "TensorEntry"]

STATE_DICT_TYPE = dict[str, object]

FILE = "metadata.json"
_FORMAT = "rushlight.distributed.checkpoint"
_VERSION = 1


@dataclass
class Part:
    """A box of a tensor that lies in one file.

    Args:
        offsets: where in the tensor it begins.
        shape: how large it is.
        file: name of the file, in the folder of the checkpoint.
        place: its name in the file, or first byte and length there.
    """

    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    file: str
    place: Any


@dataclass
class TensorEntry:
    """A tensor and its parts."""

    dtype: rl.dtype
    shape: tuple[int, ...]
    parts: list[Part] = field(default_factory=list)


@dataclass
class Metadata:
    """What is in a checkpoint, by key.

    Args:
        tensors: what is known of each.
        values: all else.
        planner_data: the way to each in the state dict that was saved: the keys of dicts, and
            numbers for places in lists. Keys without one were not nested.
    """

    tensors: dict[str, TensorEntry]
    values: dict[str, Any]
    planner_data: dict[str, tuple[str | int, ...]] = field(default_factory=dict)

    @property
    def state_dict_metadata(self) -> dict[str, Any]:
        """What is known of everything, by key."""
        return {**self.tensors, **self.values}

    def write(self, folder: str) -> None:
        """Writes it to a folder, in place of what is there."""
        tensors = {
            key: {
                "dtype": str(entry.dtype),
                "shape": list(entry.shape),
                "parts": [
                    {
                        "offsets": list(part.offsets),
                        "shape": list(part.shape),
                        "file": part.file,
                        "name": part.place,
                    }
                    for part in entry.parts
                ],
            }
            for key, entry in self.tensors.items()
        }
        values = {key: encoded(value, key) for key, value in self.values.items()}
        paths = {key: list(path) for key, path in self.planner_data.items()}
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "tensors": tensors,
            "values": values,
            "paths": paths,
        }
        with replace_when_complete(os.path.join(folder, FILE)) as file:
            file.write(json.dumps(content, allow_nan=False).encode())

    @classmethod
    def read(cls, folder: str) -> Metadata:
        """Reads it from a folder.

        Raises:
            FileNotFoundError: if there is no checkpoint.
            ValueError: if the file is damaged, or from a later version.
        """
        path = os.path.join(folder, FILE)
        with open(path, "rb") as file:
            data = file.read()
        try:
            content = json.loads(data)
            if content["format"] != _FORMAT or content["version"] != _VERSION:
                raise ValueError(f"it has version {content['version']} of {content['format']}")
            tensors = {key: _entry(facts) for key, facts in content["tensors"].items()}
            values = {key: decoded(value) for key, value in content["values"].items()}
            paths = {key: path_of(path) for key, path in content.get("paths", {}).items()}
        except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
            raise ValueError(f"load: cannot read {path}: {error}.") from None
        return cls(tensors, values, paths)


def _entry(facts: Any) -> TensorEntry:
    entry = TensorEntry(dtype_of(facts["dtype"]), _sizes(facts["shape"]))
    for part in facts["parts"]:
        file, name = part["file"], part["name"]
        if type(file) is not str or type(name) is not str or os.path.basename(file) != file:
            raise ValueError(f"{file!r} is no file of its own")
        entry.parts.append(Part(_sizes(part["offsets"]), _sizes(part["shape"]), file, name))
    entry_is_whole(entry)
    return entry


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**63 for n in value):
        raise ValueError(f"{value!r} are no sizes")
    return tuple(value)


def path_of(value: Any) -> tuple[str | int, ...]:
    """Returns the path that a file tells.

    Raises:
        ValueError: if it is none.
    """
    steps = isinstance(value, list | tuple) and value and all(type(s) in (str, int) for s in value)
    if not steps:
        raise ValueError(f"{value!r} is no path")
    return tuple(value)


def entry_is_whole(entry: TensorEntry) -> None:
    """Checks that parts lie in their tensor.

    Raises:
        ValueError: if one does not.
    """
    for part in entry.parts:
        boxes = zip(part.offsets, part.shape, entry.shape, strict=True)
        if any(offset + length > size for offset, length, size in boxes):
            raise ValueError(f"a part at {part.offsets} of {part.shape} is not in {entry.shape}")
