"""What a checkpoint says about itself: which tensors and values there are, and in which parts."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import rushlight as rl

__all__ = [
    "STATE_DICT_TYPE",
    "STORAGE_TYPES",
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]

STATE_DICT_TYPE = dict[str, object]


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor that is stored in one piece.

    Args:
        offsets: where in the tensor it begins.
        sizes: how large it is.
    """

    offsets: rl.Size
    sizes: rl.Size


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


@dataclass(frozen=True)
class MetadataIndex:
    """The name of what a plan moves: a value, or a part of a tensor.

    Args:
        fqn: the key.
        offset: where the part begins; None for values.
        index: the place of the part among the chunks of its tensor, which is not compared.
    """

    fqn: str
    offset: Sequence[int] | None = None
    index: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.offset is not None:
            object.__setattr__(self, "offset", rl.Size(self.offset))


@dataclass
class StorageMeta:
    """What a StorageWriter tells planners of the place that it writes to."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class _StorageInfo:
    """Where a file of a checkpoint has something.

    Args:
        relative_path: name of the file, in the folder of the checkpoint.
        place: its name in the file, or first byte and length there.
    """

    relative_path: str
    place: str | tuple[int, int]


@dataclass
class Metadata:
    """What is in a checkpoint.

    Args:
        state_dict_metadata: what is known of everything, by key.
        planner_data: the planner's own. Of DefaultSavePlanner, the way to each value in the state
            dict that was saved: the keys of dicts, and numbers for places in lists.
        storage_data: the storage's own: where everything is, by MetadataIndex.
        storage_meta: what the writer told the planner.
        version: PyTorch's, of its own files.
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


def whole(shape: Sequence[int]) -> ChunkStorageMetadata:
    """Returns all of a tensor as one box."""
    return ChunkStorageMetadata(rl.Size([0] * len(shape)), rl.Size(shape))


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


def tiles(boxes: Iterable[ChunkStorageMetadata], all_of_it: ChunkStorageMetadata) -> bool:
    """Returns whether boxes have each element of a box once, and none beside it.

    Each corner counts +1 or -1, so that sums over all that lies before an element tell how many
    boxes have it: none differ exactly when no corner remains.
    """
    corners: Counter[tuple[int, ...]] = Counter()
    for box, sign in [(all_of_it, -1), *((box, 1) for box in boxes)]:
        pairs = zip(box.offsets, box.sizes, strict=True)
        for ends in product(*(((begin, 1), (begin + size, -1)) for begin, size in pairs)):
            corners[tuple(place for place, _ in ends)] += sign * math.prod(s for _, s in ends)
    return not any(corners.values())
