"""What a checkpoint says about itself: which tensors there are, and in which files their parts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import rushlight as rl
from rushlight._checkpoint.archive import replace_when_complete
from rushlight._checkpoint.plain_data import decoded, dtype_of
from rushlight.distributed.checkpoint._tree import encoded

__all__ = [
    "STATE_DICT_TYPE",
    "STORAGE_TYPES",
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "TensorProperties",
    "TensorStorageMetadata",
]

STATE_DICT_TYPE = dict[str, object]

FILE = "metadata.json"
_FORMAT = "rushlight.distributed.checkpoint"
_VERSION = 1


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor that lies in one file.

    Args:
        offsets: where in the tensor it begins.
        sizes: how large it is.
        file: name of the file, in the folder of the checkpoint.
        place: its name in the file, or first byte and length there.
    """

    offsets: rl.Size
    sizes: rl.Size
    file: str = ""
    place: Any = None


@dataclass
class TensorProperties:
    """What is known of a tensor beside its shape; all but the dtype is not saved."""

    dtype: rl.dtype = field(default_factory=rl.get_default_dtype)
    layout: rl.layout = rl.strided
    requires_grad: bool = False
    memory_format: rl.memory_format = rl.contiguous_format
    pin_memory: bool = False

    @staticmethod
    def create_from_tensor(tensor: rl.Tensor) -> TensorProperties:
        """Returns those of a tensor.

        Example:
            >>> from rushlight.distributed.checkpoint.metadata import TensorProperties
            >>> TensorProperties.create_from_tensor(torch.ones(2)).dtype
            torch.float32
        """
        return TensorProperties(
            tensor.dtype, tensor.layout, tensor.requires_grad, pin_memory=tensor.is_pinned()
        )


@dataclass
class TensorStorageMetadata:
    """A tensor: what is known of it, its shape, and its parts.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as path:
        ...     _ = dcp.save({"x": torch.ones(2, 3), "step": 1}, checkpoint_id=path)
        ...     found = dcp.FileSystemReader(path).read_metadata().state_dict_metadata
        >>> found["x"].size, found["x"].properties.dtype
        (torch.Size([2, 3]), torch.float32)
        >>> found["step"]
        BytesStorageMetadata()
    """

    properties: TensorProperties
    size: rl.Size
    chunks: list[ChunkStorageMetadata] = field(default_factory=list)


@dataclass
class BytesStorageMetadata:
    """A value that is no tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata


def entry_of(dtype: rl.dtype, shape: Sequence[int]) -> TensorStorageMetadata:
    """Returns what is known of a tensor whose parts are still to come."""
    return TensorStorageMetadata(TensorProperties(dtype), rl.Size(shape))


@dataclass
class Metadata:
    """What is in a checkpoint, by key.

    Args:
        tensors: what is known of each.
        values: all else.
        planner_data: the way to each in the state dict that was saved: the keys of dicts, and
            numbers for places in lists. Keys without one were not nested.
    """

    tensors: dict[str, TensorStorageMetadata]
    values: dict[str, Any]
    planner_data: dict[str, tuple[str | int, ...]] = field(default_factory=dict)

    @property
    def state_dict_metadata(self) -> dict[str, STORAGE_TYPES]:
        """What is known of everything, by key."""
        return {**self.tensors, **{key: BytesStorageMetadata() for key in self.values}}

    def write(self, folder: str) -> None:
        """Writes it to a folder, in place of what is there."""
        tensors = {
            key: {
                "dtype": str(entry.properties.dtype),
                "shape": list(entry.size),
                "parts": [
                    {
                        "offsets": list(part.offsets),
                        "shape": list(part.sizes),
                        "file": part.file,
                        "name": part.place,
                    }
                    for part in entry.chunks
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


def _entry(facts: Any) -> TensorStorageMetadata:
    entry = entry_of(dtype_of(facts["dtype"]), _sizes(facts["shape"]))
    for part in facts["parts"]:
        file, name = part["file"], part["name"]
        if type(file) is not str or type(name) is not str or os.path.basename(file) != file:
            raise ValueError(f"{file!r} is no file of its own")
        entry.chunks.append(
            ChunkStorageMetadata(_sizes(part["offsets"]), _sizes(part["shape"]), file, name)
        )
    entry_is_whole(entry)
    return entry


def _sizes(value: Any) -> rl.Size:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**63 for n in value):
        raise ValueError(f"{value!r} are no sizes")
    return rl.Size(value)


def path_of(value: Any) -> tuple[str | int, ...]:
    """Returns the path that a file tells.

    Raises:
        ValueError: if it is none.
    """
    steps = isinstance(value, list | tuple) and value and all(type(s) in (str, int) for s in value)
    if not steps:
        raise ValueError(f"{value!r} is no path")
    return tuple(value)


def entry_is_whole(entry: TensorStorageMetadata) -> None:
    """Checks that parts lie in their tensor.

    Raises:
        ValueError: if one does not.
    """
    for part in entry.chunks:
        boxes = zip(part.offsets, part.sizes, entry.size, strict=True)
        if any(offset + length > size for offset, length, size in boxes):
            raise ValueError(
                f"a part at {tuple(part.offsets)} of {tuple(part.sizes)} is not in "
                f"{tuple(entry.size)}"
            )
