"""Checkpoints of many files as one file of save, and back.

Files are read by rushlight.load, which runs no code from them.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.checkpoint import _tree
from rushlight.distributed.checkpoint._saving import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
    load,
    save,
)
from rushlight.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    StorageReader,
)
from rushlight.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata, entry_of

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

    One process calls it. The keys of nested dicts become texts, tuples of tensors lists.

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
        super().__init__("" if checkpoint_id is None else checkpoint_id)
        self.coordinator_rank = coordinator_rank
        self._tensors: dict[int, Tensor] = {}

    @property
    def checkpoint_id(self) -> str:
        """The file."""
        return self.path

    def _sent(self, value: Any) -> Any:
        """What the coordinator has."""
        if not dist.is_initialized():
            return value
        values = [value]
        dist.broadcast_object_list(values, self.coordinator_rank)
        return values[0]

    def read_metadata(self) -> Metadata:
        """Returns what is in the file.

        Raises:
            RuntimeError: on all ranks, if the coordinator cannot read it.
        """
        told, tensors = None, {}
        if not dist.is_initialized() or dist.get_rank() == self.coordinator_rank:
            try:
                flat = rl.load(self.path, map_location="cpu")
                flat = {".".join(map(str, path)): value for path, value in _tree.leaves(flat)}
                tensors = {k: v.detach() for k, v in flat.items() if isinstance(v, Tensor)}
                values = {key: value for key, value in flat.items() if key not in tensors}
                told = {k: (v.dtype, tuple(v.shape)) for k, v in tensors.items()}, values
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
        told = self._sent(told)
        if isinstance(told, str):
            raise RuntimeError(f"cannot read {self.path}: {told}")
        entries = {key: entry_of(dtype, shape) for key, (dtype, shape) in told[0].items()}
        self._tensors = {id(entries[key]): tensor for key, tensor in tensors.items()}
        return Metadata(entries, told[1])

    def read_box(
        self, entry: TensorStorageMetadata, target: Tensor, offsets: tuple[int, ...]
    ) -> None:
        """See StorageReader."""
        tensor = self._tensors.get(id(entry))
        if dist.is_initialized():
            if tensor is None:
                tensor = rl.empty(entry.size, dtype=entry.properties.dtype)
            tensor = tensor.to(target.device).contiguous()
            dist.broadcast(tensor, self.coordinator_rank)
        assert tensor is not None
        for dim, (offset, length) in enumerate(zip(offsets, target.shape, strict=True)):
            tensor = tensor.narrow(dim, min(offset, tensor.shape[dim] - length), length)
        target.copy_(tensor)


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
