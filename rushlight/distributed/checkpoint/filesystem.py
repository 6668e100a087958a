"""Checkpoints in a folder: a file of tensors of each rank, and one that says what is where.

Nothing in them is code: tensors are in the format of safetensors, all else is JSON. Each save has
files of other names; the one that says where things are is replaced at the end, so that a folder
holds a whole checkpoint at any time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.checkpoint import metadata as _metadata
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from rushlight.utils import safetensors

Place = tuple[str, tuple[int, ...]]

__all__ = ["FileSystemReader", "FileSystemWriter", "StorageReader", "StorageWriter"]

_SUFFIX = ".safetensors"


class StorageWriter:
    """What a checkpoint is written to: FileSystemWriter."""


class StorageReader:
    """What a checkpoint is read from.

    Args:
        path: where it is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins anew, at another place if one is given."""
        if checkpoint_id is not None:
            self.path = os.fspath(checkpoint_id)

    def read_metadata(self) -> Metadata:
        """Returns what is in the checkpoint."""
        raise NotImplementedError(f"load: {type(self).__name__} has no read_metadata.")

    def read_box(
        self, entry: TensorStorageMetadata, target: Tensor, offsets: tuple[int, ...]
    ) -> None:
        """Fills a tensor with a box of one of the checkpoint's; all ranks call it for each.

        Args:
            entry: that one.
            target: as large as the box.
            offsets: where the box begins.
        """
        raise NotImplementedError(f"load: {type(self).__name__} has no read_box.")


class FileSystemWriter(StorageWriter):
    """Writes checkpoints to a folder.

    Args:
        path: the folder, which is made; all ranks reach it.
        single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead,
            cache_staged_state_dict: accepted for PyTorch's sake. There is a file of each rank, that
            is on the disk when save returns.
        overwrite: whether to replace a checkpoint that is there.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as path:
        ...     _ = dcp.save({"x": torch.ones(2)}, storage_writer=dcp.FileSystemWriter(path))
        ...     state = {"x": torch.zeros(2)}
        ...     dcp.load(state, storage_reader=dcp.FileSystemReader(path))
        >>> state["x"]
        tensor([1., 1.])
    """

    prefix = "part-"  # of the names of files that only this class writes

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        self.path = os.fspath(path)
        self.overwrite = overwrite

    def check(self) -> None:
        """Raises FileExistsError if there is a checkpoint that is to stay."""
        if not self.overwrite and os.path.exists(os.path.join(self.path, _metadata.FILE)):
            raise FileExistsError(
                f"save: {self.path} holds a checkpoint, and overwrite is False. Choose another "
                "folder."
            )

    def check_plan(self, metadata: Metadata) -> None:
        """Raises ValueError if there is what files of this kind cannot hold."""

    def file_of(self, save: str, rank: int, key: str) -> str:
        """Returns the name of the file in which a rank writes its part of a tensor."""
        return f"{self.prefix}{save}-{rank}{_SUFFIX}"

    def name_of(self, key: str, offsets: tuple[int, ...]) -> str:
        """Returns what a box of a tensor is called in its file."""
        return f"{key}@{','.join(map(str, offsets))}"

    def notes_on(self, places: Iterable[Place]) -> dict[str, str] | None:
        """Returns what the file says about its boxes beside their names."""
        return None

    def write_tensors(self, file: str, boxes: dict[Place, Tensor]) -> None:
        """Writes a file of a rank: boxes of tensors, by key and offsets."""
        os.makedirs(self.path, exist_ok=True)
        seen: set[int] = set()
        own: dict[str, Tensor] = {}
        for place, box in boxes.items():
            address = box.untyped_storage().data_ptr()
            own[self.name_of(*place)] = box.clone() if address in seen else box
            seen.add(address)
        safetensors.save_file(own, os.path.join(self.path, file), self.notes_on(boxes))

    def write_metadata(self, metadata: Metadata) -> None:
        """Makes what the ranks have written the checkpoint of the folder."""
        os.makedirs(self.path, exist_ok=True)
        metadata.write(self.path)
        self.remove_others(metadata)

    def remove_others(self, metadata: Metadata) -> None:
        """Removes the files of earlier saves."""
        kept = {part.file for entry in metadata.tensors.values() for part in entry.chunks}
        for name in os.listdir(self.path):
            if name.startswith(self.prefix) and name.endswith(_SUFFIX) and name not in kept:
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(self.path, name))


class FileSystemReader(StorageReader):
    """Reads checkpoints from a folder: our own, and PyTorch's.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._files: dict[str, safetensors.safe_open] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins anew, in another folder if one is given."""
        super().reset(checkpoint_id)
        self._files.clear()

    def read_metadata(self) -> Metadata:
        """Returns what is in the checkpoint.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is damaged.
        """
        if not os.path.exists(os.path.join(self.path, _metadata.FILE)):
            from rushlight.distributed.checkpoint import _torch_format

            if os.path.exists(os.path.join(self.path, _torch_format.FILE)):
                return _torch_format.read(self.path)
        return Metadata.read(self.path)

    def read_box(
        self, entry: TensorStorageMetadata, target: Tensor, offsets: tuple[int, ...]
    ) -> None:
        """See StorageReader.

        Raises:
            ValueError: if the parts there are do not cover the box.
        """
        missing = target.numel()
        for part in entry.chunks:
            begins = [max(a, b) for a, b in zip(offsets, part.offsets, strict=True)]
            ends = [
                min(a + n, b + m)
                for a, n, b, m in zip(offsets, target.shape, part.offsets, part.sizes, strict=True)
            ]
            if any(begin >= end for begin, end in zip(begins, ends, strict=True)):
                continue
            taken = self._tensor(part)[_slices(begins, ends, part.offsets)]
            target[_slices(begins, ends, offsets)].copy_(taken)
            missing -= taken.numel()
        if missing > 0:
            raise ValueError(
                f"load: the checkpoint in {self.path} lacks {missing} elements of a tensor of "
                f"shape {tuple(entry.size)}. It is damaged."
            )

    def _tensor(self, part: ChunkStorageMetadata) -> Any:
        if isinstance(part.place, str):
            if part.file not in self._files:
                path = os.path.join(self.path, part.file)
                self._files[part.file] = safetensors.safe_open(path)
            tensor = self._files[part.file].get_slice(part.place)
            shape = tensor.get_shape()
        else:
            from rushlight.distributed.checkpoint import _torch_format

            tensor = _torch_format.read_item(self.path, part.file, part.place)
            shape = list(tensor.shape) if isinstance(tensor, Tensor) else None
        if shape != list(part.sizes):
            raise ValueError(
                f"load: a part in {part.file} has shape {shape}, but {tuple(part.sizes)} was saved."
            )
        return tensor


def _slices(begins: Any, ends: Any, offsets: Any) -> tuple[slice, ...]:
    return tuple(slice(b - o, e - o) for b, e, o in zip(begins, ends, offsets, strict=True))


def whole(reader: StorageReader, entry: TensorStorageMetadata) -> Tensor:
    """Returns a tensor of the checkpoint."""
    target = rl.empty(entry.size, dtype=entry.properties.dtype)
    reader.read_box(entry, target, (0,) * len(entry.size))
    return target
