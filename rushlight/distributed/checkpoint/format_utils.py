"""Checkpoints of many files as one file of save, and back.

Files are read by rushlight.load, which runs no code from them.
"""

from __future__ import annotations

import argparse
import io
import os
from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict
from rushlight.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, done
from rushlight.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    Metadata,
    TensorStorageMetadata,
    entry_of,
    whole,
)
from rushlight.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner
from rushlight.distributed.checkpoint.planner_helpers import narrowed
from rushlight.distributed.checkpoint.state_dict_loader import load
from rushlight.distributed.checkpoint.state_dict_saver import save
from rushlight.distributed.checkpoint.storage import StorageReader
from rushlight.futures import Future

__all__ = [
    "BroadcastingTorchSaveReader",
    "DynamicMetaLoadPlanner",
    "dcp_to_torch_save",
    "torch_save_to_dcp",
]


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]
) -> None:
    """Writes what is in the folder of a checkpoint to one file, with whole tensors.

    One process calls it. The keys of nested dicts become texts.

    Args:
        dcp_checkpoint_dir: a folder that save has written, here or in PyTorch.
        torch_save_path: the file, for load.

    Raises:
        CheckpointException: if there is no checkpoint, or it is damaged.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> from rushlight.distributed.checkpoint import format_utils
        >>> folder = tempfile.TemporaryDirectory()
        >>> _ = dcp.save({"model": {"bias": torch.ones(2)}}, checkpoint_id=f"{folder.name}/parts")
        >>> format_utils.dcp_to_torch_save(f"{folder.name}/parts", f"{folder.name}/model.pt")
        >>> torch.load(f"{folder.name}/model.pt")
        {'model': {'bias': tensor([1., 1.])}}
        >>> folder.cleanup()
    """
    state: dict[str, Any] = {}
    load(
        state,
        storage_reader=FileSystemReader(dcp_checkpoint_dir),
        planner=_EmptyStateDictLoadPlanner(),
        no_dist=True,
    )
    rl.save(state, torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]
) -> None:
    """Writes the tensors and values of one file as a checkpoint in a folder.

    One process calls it.

    Args:
        torch_save_path: a file that rushlight.save or torch.save has written.
        dcp_checkpoint_dir: the folder, for load of rushlight.distributed.checkpoint.

    Raises:
        UnpicklingError: if the file holds objects of classes that load does not make.
        CheckpointException: if the folder cannot be written.
    """
    state = rl.load(torch_save_path, map_location="cpu")
    save(state, storage_writer=FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """A DefaultLoadPlanner, PyTorch's for BroadcastingTorchSaveReader, which needs none here."""


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of save on one rank, which sends the others what they need of it.

    Args:
        checkpoint_id: the file; only the coordinator has to reach it.
        coordinator_rank: the rank that reads.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> from rushlight.distributed.checkpoint.format_utils import BroadcastingTorchSaveReader
        >>> state = {"x": torch.zeros(2)}
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     torch.save({"x": torch.ones(2)}, file.name)
        ...     dcp.load(state, storage_reader=BroadcastingTorchSaveReader(file.name))
        >>> state["x"]
        tensor([1., 1.])
    """

    def __init__(
        self, checkpoint_id: str | os.PathLike[str] | None = None, coordinator_rank: int = 0
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self.coordinator_rank = coordinator_rank
        self._flat: dict[str, Any] = {}

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Returns whether there is such a file."""
        return os.path.isfile(checkpoint_id)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins anew, with another file if one is given."""
        if checkpoint_id is not None:
            self.checkpoint_id = checkpoint_id

    def _is_coordinator(self) -> bool:
        return not dist.is_initialized() or dist.get_rank() == self.coordinator_rank

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns what is in the file.

        Raises:
            RuntimeError: on all ranks, if the coordinator cannot read it.
        """
        told: list[Any] = [None]
        if self._is_coordinator():
            try:
                if self.checkpoint_id is None:
                    raise ValueError("there is no checkpoint_id")
                self._flat, _ = flatten_state_dict(rl.load(self.checkpoint_id, map_location="cpu"))
                told[0] = {key: _entry(value) for key, value in self._flat.items()}
            except Exception as error:
                told[0] = f"{type(error).__name__}: {error}"
        if dist.is_initialized():
            dist.broadcast_object_list(told, self.coordinator_rank)
        if isinstance(told[0], str):
            raise RuntimeError(f"cannot read {self.checkpoint_id}: {told[0]}")
        return Metadata(told[0])

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Takes what is in the file."""
        self._metadata = metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Returns the plan."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Returns the plans with the keys that any rank wants, which are sent to all."""
        keys = dict.fromkeys(item.storage_index.fqn for plan in plans for item in plan.items)
        return [replace(plan, storage_data=list(keys)) for plan in plans]

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Gives the planner what each item reads."""
        for key in plan.storage_data:
            value = self._sent(key)
            for item in plan.items:
                if item.storage_index.fqn != key:
                    continue
                if item.type is LoadItemType.BYTE_IO:
                    planner.load_bytes(item, io.BytesIO(value))
                else:
                    target = planner.resolve_tensor(item).detach()
                    target.copy_(narrowed(value, item.storage_offsets, item.lengths))
                    planner.commit_tensor(item, target)
        return done(None)

    def _sent(self, key: str) -> Any:
        """The tensor of a key, or the bytes of its value, which the coordinator has."""
        entry = self._metadata.state_dict_metadata[key]
        if isinstance(entry, TensorStorageMetadata):
            if self._is_coordinator():
                tensor = self._flat[key].detach().contiguous()
            else:
                tensor = rl.empty(entry.size, dtype=entry.properties.dtype)
            if dist.is_initialized():
                dist.broadcast(tensor, self.coordinator_rank)
            return tensor
        told: list[Any] = [None]
        if self._is_coordinator():
            data = io.BytesIO()
            rl.save(self._flat[key], data)
            told[0] = data.getvalue()
        if dist.is_initialized():
            dist.broadcast_object_list(told, self.coordinator_rank)
        return told[0]


def _entry(value: Any) -> TensorStorageMetadata | BytesStorageMetadata:
    """What is known of a value that is stored whole."""
    if not isinstance(value, Tensor):
        return BytesStorageMetadata()
    entry = entry_of(value.dtype, value.shape)
    entry.chunks.append(whole(value.shape))
    return entry


def _main() -> None:
    parser = argparse.ArgumentParser(description="Converts checkpoints.")
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"])
    parser.add_argument("src", help="what there is: a file, or a folder")
    parser.add_argument("dst", help="what to write")
    args = parser.parse_args()
    convert = torch_save_to_dcp if args.mode == "torch_to_dcp" else dcp_to_torch_save
    convert(args.src, args.dst)


if __name__ == "__main__":
    _main()
