"""What save and load ask of the storage that a checkpoint is written to and read from."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from rushlight.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from rushlight.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from rushlight.futures import Future

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What became of an item that was written.

    Args:
        index: its name.
        size_in_bytes: how much was written.
        storage_data: where it is, for the reader.
    """

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes checkpoints. save calls the methods in this order."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins anew, at another place if one is given."""

    def storage_meta(self) -> StorageMeta | None:
        """Returns what planners may want to know of the place."""
        return None

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Gets ready, on all ranks."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Returns the plan of this rank, to which it may add."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Returns, on the coordinator, the plans of all ranks, to which it may add."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes what planner.resolve_data returns for each item of this rank's plan."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes, on the coordinator, what the checkpoint is.

        Args:
            metadata: what it holds, to which it may add storage_data.
            results: what write_data returned, by rank.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Returns whether it can write to a place."""


class StorageReader(abc.ABC):
    """Reads checkpoints. load calls the methods in this order."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins anew, at another place if one is given."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns what is in the checkpoint, on all ranks."""

    @abc.abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Gets ready, on all ranks."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Returns the plan of this rank, to which it may add."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Returns, on the coordinator, the plans of all ranks, to which it may add."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Gives the planner what each item of this rank's plan reads.

        Bytes go to planner.load_bytes; tensors are copied into what planner.resolve_tensor
        returns, of which planner.commit_tensor is told.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Returns whether it can read from a place."""
