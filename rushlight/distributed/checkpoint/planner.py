"""What plans consist of, and what save and load ask of a planner.

A planner decides what each rank writes and reads, and hands storage the tensors and bytes; those
that people write begin with DefaultSavePlanner and DefaultLoadPlanner. Plans travel between ranks.
"""

from __future__ import annotations

import abc
import enum
import io
import math
from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(enum.Enum):
    """What an item writes: a whole tensor, a part of one, or bytes."""

    TENSOR = enum.auto()
    SHARD = enum.auto()
    BYTE_IO = enum.auto()


class LoadItemType(enum.Enum):
    """What an item reads: a part of a tensor, or bytes."""

    TENSOR = enum.auto()
    BYTE_IO = enum.auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes a value takes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A part of a tensor: where it lies, and what is known of the whole."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: rl.Size


@dataclass(frozen=True)
class WriteItem:
    """Something that one rank writes.

    Args:
        index: its name.
        type: what it is.
        bytes_io_data: what is known of bytes, if anything.
        tensor_data: what is known of a tensor.

    Example:
        >>> from rushlight.distributed.checkpoint.default_planner import (
        ...     create_default_local_save_plan,
        ... )
        >>> (item,) = create_default_local_save_plan({"x": torch.ones(2, 3)}, True).items
        >>> item.type, item.tensor_data.size, item.tensor_storage_size()
        (<WriteItemType.TENSOR: 1>, torch.Size([2, 3]), 24)
    """

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Returns the bytes of the whole tensor; None for a value."""
        data = self.tensor_data
        return None if data is None else math.prod(data.size) * data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Something that one rank reads: a box of what is stored into a box of what is here.

    Args:
        type: what it is.
        dest_index: its name in the state dict.
        dest_offsets: where the box begins in this rank's part.
        storage_index: the name of the stored part that has it.
        storage_offsets: where the box begins there.
        lengths: how large the box is.
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: rl.Size
    storage_index: MetadataIndex
    storage_offsets: rl.Size
    lengths: rl.Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes.

    Args:
        items: one by one.
        storage_data: the writer's own.
        planner_data: the planner's own.
        usable: accepted for PyTorch's sake; plans are not kept for the next save.
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads.

    Args:
        items: one by one.
        storage_data: the reader's own.
        planner_data: the planner's own.
    """

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what each rank writes. save calls the methods in this order."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Takes what is to be saved, on all ranks."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Returns what this rank has."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Returns, on the coordinator, what each rank writes, and what the checkpoint will be."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Returns what this rank writes, of what the coordinator gave it."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Returns what an item writes. Writers call it once or more for each, from any thread."""


class LoadPlanner(abc.ABC):
    """Decides what each rank reads. load calls the methods in this order."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Takes what is to be filled, and what there is, on all ranks."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Returns what this rank needs."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Returns, on the coordinator, what each rank reads."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Returns what this rank reads, of what the coordinator gave it."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Takes the bytes of a value."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Returns where a reader may put the bytes of a value itself.

        Raises:
            NotImplementedError: unless a planner defines it.
        """
        raise NotImplementedError(
            f"load: {type(self).__name__} has no resolve_bytes. Give the bytes to load_bytes."
        )

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Returns the tensor, as large as the box of an item, that is to be filled."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Is told that what resolve_tensor returned is filled."""
