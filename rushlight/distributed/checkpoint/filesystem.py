"""Checkpoints in a folder: a file of each rank, and one that says what is where.

Tensors are in the format of safetensors, which has no complex128: those are pairs of float64.
Values are in it as the bytes that the planner gives; the rest is JSON. Each save has files of other
names; the one that says where things are is replaced at the end, so that a folder holds a whole
checkpoint at any time.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.checkpoint import _json_format, _torch_format
from rushlight.distributed.checkpoint.metadata import (
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
    _StorageInfo,
)
from rushlight.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
)
from rushlight.distributed.checkpoint.planner_helpers import narrowed
from rushlight.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from rushlight.futures import Future
from rushlight.utils import safetensors

__all__ = ["FileSystemReader", "FileSystemWriter"]

_SUFFIX = ".safetensors"


class _InFolder:
    """What readers and writers of folders have in common."""

    path: Path

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Returns whether a place may be a folder: one that is there, or can be made below one."""
        path = Path(checkpoint_id)
        return "://" not in str(checkpoint_id) and any(p.exists() for p in (path, *path.parents))


class FileSystemWriter(_InFolder, StorageWriter):
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
        self.path = Path(path)
        self.overwrite = overwrite
        self.save_id = _new_id()

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins anew, in another folder if one is given."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)
        self.save_id = _new_id()

    def storage_meta(self) -> StorageMeta:
        """Returns the folder and the name of this save."""
        return StorageMeta(checkpoint_id=self.path, save_id=self.save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Gets ready."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Returns the plan.

        Raises:
            FileExistsError: if there is a checkpoint that is to stay.
        """
        if not self.overwrite and (self.path / _json_format.FILE).exists():
            raise FileExistsError(
                f"save: {self.path} holds a checkpoint, and overwrite is False. Choose another "
                "folder."
            )
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Returns the plans with what the files of each rank are called."""
        return [
            replace(plan, storage_data=f"{self.prefix}{self.save_id}-{rank}")
            for rank, plan in enumerate(plans)
        ]

    def file_of(self, plan: SavePlan, key: str) -> str:
        """Returns the name of the file in which a rank writes its part of a tensor, or a value."""
        return plan.storage_data + _SUFFIX

    def name_of(self, index: MetadataIndex) -> str:
        """Returns what something is called in its file."""
        return f"{index.fqn}@{','.join(map(str, index.offset or ()))}"

    def stored(self, tensor: Tensor) -> Tensor:
        """Returns a tensor as its file has it."""
        return rl.view_as_real(tensor) if tensor.dtype is rl.complex128 else tensor

    def notes_on(self, indices: Iterable[MetadataIndex]) -> dict[str, str] | None:
        """Returns what a file says about what it has, beside the names."""
        return None

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes the files of this rank."""
        self.path.mkdir(parents=True, exist_ok=True)
        files: dict[str, dict[MetadataIndex, Tensor]] = {}
        for item in plan.items:
            file = files.setdefault(self.file_of(plan, item.index.fqn), {})
            file[item.index] = self.stored(_on_cpu(planner.resolve_data(item)))
        results = []
        for file, tensors in files.items():
            own: dict[str, Tensor] = {}
            seen: set[int] = set()
            for index, tensor in tensors.items():
                name, address = self.name_of(index), tensor.untyped_storage().data_ptr()
                own[name] = tensor.clone() if address in seen else tensor
                seen.add(address)
                results.append(WriteResult(index, tensor.nbytes, _StorageInfo(file, name)))
            safetensors.save_file(own, self.path / file, self.notes_on(tensors))
        return done(results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Makes what the ranks have written the checkpoint of the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        metadata.storage_data = {r.index: r.storage_data for every in results for r in every}
        metadata.storage_meta = self.storage_meta()
        self.write_metadata(metadata)
        kept = {info.relative_path for info in metadata.storage_data.values()}
        for name in os.listdir(self.path):  # of earlier saves
            if name.startswith(self.prefix) and name.endswith(_SUFFIX) and name not in kept:
                with contextlib.suppress(OSError):
                    os.remove(self.path / name)
        self.save_id = _new_id()

    def write_metadata(self, metadata: Metadata) -> None:
        """Writes what is where."""
        _json_format.write(self.path, metadata)


class FileSystemReader(_InFolder, StorageReader):
    """Reads checkpoints from a folder: our own, and PyTorch's.

    Args:
        path: the folder.

    Attributes:
        storage_data: where everything is, by MetadataIndex; files by relative_path.
    """

    storage_data: dict[MetadataIndex, _StorageInfo]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.storage_data = {}
        self._files: dict[str, safetensors.safe_open] = {}
        self._pairs: set[str] = set()  # complex128 tensors

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins anew, in another folder if one is given."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)
        self.storage_data = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns what is in the checkpoint.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is damaged.
        """
        is_torch = (self.path / _torch_format.FILE).exists()
        if is_torch and not (self.path / _json_format.FILE).exists():
            return _torch_format.read(self.path)
        return _json_format.read(self.path)

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Takes where everything is."""
        self.storage_data = metadata.storage_data
        self._files.clear()
        self._pairs = {
            key
            for key, entry in metadata.state_dict_metadata.items()
            if isinstance(entry, TensorStorageMetadata) and entry.properties.dtype is rl.complex128
        }

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Returns the plan."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Returns the plans."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Gives the planner what each item reads.

        Raises:
            ValueError: if a file is damaged.
        """
        for item in plan.items:
            info = self.storage_data[item.storage_index]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, self._bytes(info))
            else:
                target = planner.resolve_tensor(item).detach()
                target.copy_(self._box(info, item))
                planner.commit_tensor(item, target)
        return done(None)

    def _file(self, info: _StorageInfo) -> safetensors.safe_open:
        if info.relative_path not in self._files:
            file = safetensors.safe_open(self.path / info.relative_path)
            self._files[info.relative_path] = file
        return self._files[info.relative_path]

    def _bytes(self, info: _StorageInfo) -> io.BytesIO:
        if not isinstance(info.place, str):
            return _torch_format.read_item(self.path / info.relative_path, info.place)
        data = self._file(info).get_tensor(info.place)
        return io.BytesIO(data.numpy().tobytes())

    def _box(self, info: _StorageInfo, item: ReadItem) -> Tensor:
        tensor: Any
        starts, lengths = item.storage_offsets, item.lengths
        in_pairs = isinstance(info.place, str) and item.storage_index.fqn in self._pairs
        if in_pairs:
            starts, lengths = rl.Size((*starts, 0)), rl.Size((*lengths, 2))
        if isinstance(info.place, str):
            tensor = self._file(info).get_slice(info.place)
            shape = tensor.get_shape()
        else:
            data = _torch_format.read_item(self.path / info.relative_path, info.place)
            tensor = rl.load(data, map_location="cpu", weights_only=True)
            shape = list(tensor.shape) if isinstance(tensor, Tensor) else []
        ends = [o + n for o, n in zip(starts, lengths, strict=True)]
        if len(shape) != len(ends) or any(end > n for end, n in zip(ends, shape, strict=True)):
            raise ValueError(
                f"load: a part in {info.relative_path} has shape {shape}, of which "
                f"{tuple(lengths)} at {tuple(starts)} is wanted. It is damaged."
            )
        box = narrowed(tensor, starts, lengths)
        return rl.view_as_complex(box) if in_pairs else box


def _new_id() -> str:
    return os.urandom(4).hex()


def _on_cpu(data: Tensor | io.BytesIO) -> Tensor:
    if isinstance(data, Tensor):
        return data.detach().cpu()
    return rl.frombuffer(bytearray(data.getbuffer()), dtype=rl.uint8)


def done(value: Any) -> Future[Any]:
    """A future whose value is there."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future
