"""Checkpoints as safetensors files under the names of the tensors, which other programs read.

Where a part of a tensor begins stands in the texts of its file, as PyTorch writes it: either
framework reads what the other one saved.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
    _StorageInfo,
    entry_of,
)
from rushlight.distributed.checkpoint.planner import SavePlan
from rushlight.distributed.checkpoint.state_dict_loader import _load_state_dict
from rushlight.distributed.checkpoint.storage import WriteResult
from rushlight.utils import safetensors

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_OFFSETS = "DCP_SHARDING_INFO"
_SUFFIX = ".safetensors"


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors to safetensors files.

    Args:
        path: the folder, which is made; all ranks reach it.
        fqn_to_index_mapping: the number of each tensor's file, from 1; all in one by default.
        thread_count, thread_count_consolidation: accepted for PyTorch's sake.
        save_distributed: whether each rank writes files of its own parts. Without it, all tensors
            must be whole.
        enable_consolidation: whether the parts go to the folder `sharded`, and the first rank makes
            files of whole tensors of them.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as path:
        ...     writer = dcp.hf_storage.HuggingFaceStorageWriter(path)
        ...     _ = dcp.save({"x": torch.ones(2)}, storage_writer=writer)
        ...     torch.utils.safetensors.load_file(f"{path}/model-00001-of-00001.safetensors")
        {'x': tensor([1., 1.])}
    """

    prefix = "shard-"

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        self.whole_path = path if enable_consolidation else None
        super().__init__(os.path.join(path, "sharded") if enable_consolidation else path)
        self.files = fqn_to_index_mapping or {}
        self.is_distributed = save_distributed

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Returns the plans with what the files of each rank begin with.

        Raises:
            ValueError: if there are values, or parts of tensors that should be whole.
        """
        items = [item for plan in plans for item in plan.items]
        values = [item.index.fqn for item in items if item.tensor_data is None]
        if values:
            raise ValueError(
                f"HuggingFaceStorageWriter: {', '.join(values)} are no tensors. Such files have "
                "only tensors. Use FileSystemWriter."
            )
        if self.is_distributed:
            return [
                replace(plan, storage_data=f"{self.prefix}{rank + 1:05d}-")
                for rank, plan in enumerate(plans)
            ]
        for key, parts in Counter(item.index.fqn for item in items).items():
            if parts != 1:
                raise ValueError(
                    f"HuggingFaceStorageWriter: {key} is in {parts} parts. Pass "
                    "save_distributed=True."
                )
        return [replace(plan, storage_data="") for plan in plans]

    def file_of(self, plan: SavePlan, key: str) -> str:
        """Returns the name of the file in which a rank writes its part of a tensor."""
        return plan.storage_data + _file_name(self.files, key)

    def name_of(self, index: MetadataIndex) -> str:
        """Returns the name of the tensor."""
        return index.fqn

    def stored(self, tensor: Tensor) -> Tensor:
        """Returns the tensor: other programs would not know what pairs of numbers are."""
        return tensor

    def notes_on(self, indices: Iterable[MetadataIndex]) -> dict[str, str]:
        """Returns where the parts in a file begin."""
        offsets = {index.fqn: {"saved_offsets": list(index.offset or ())} for index in indices}
        return {_OFFSETS: json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}

    def write_metadata(self, metadata: Metadata) -> None:
        """Writes which file has which tensor, if each is in one."""
        if not self.is_distributed:
            files = {index.fqn: info.relative_path for index, info in metadata.storage_data.items()}
            _write_index(self.path, metadata, files)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Makes what the ranks have written the checkpoint of the folder."""
        super().finish(metadata, results)
        if self.whole_path is not None:
            consolidate(self.path, self.whole_path, self.files)


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the tensors of all safetensors files in a folder.

    Args:
        path: the folder.
        thread_count: accepted for PyTorch's sake.
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns what is in the files.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if one is damaged, or they are of several saves.
        """
        files = sorted(name for name in os.listdir(self.path) if name.endswith(_SUFFIX))
        if not files:
            raise FileNotFoundError(f"load: there are no {_SUFFIX} files in {self.path}.")
        tensors: dict[str, TensorStorageMetadata] = {}
        places: dict[MetadataIndex, _StorageInfo] = {}
        for name in files:
            file = safetensors.safe_open(os.path.join(self.path, name))
            begins = _offsets(file.metadata() or {}, name)
            for key in file.keys():  # noqa: SIM118, it is no dict
                tensor = file.get_tensor(key)
                shape = tuple(tensor.shape)
                begin = begins.get(key, (0,) * len(shape))
                entry = tensors.setdefault(key, entry_of(tensor.dtype, begin))
                if not len(entry.size) == len(begin) == len(shape):
                    raise ValueError(
                        f"load: {key} has parts of {len(begin)} and {len(shape)} dims."
                    )
                ends = (offset + length for offset, length in zip(begin, shape, strict=True))
                entry.size = rl.Size(map(max, entry.size, ends))
                entry.chunks.append(ChunkStorageMetadata(rl.Size(begin), tensor.shape))
                index = MetadataIndex(key, begin)
                if index in places:
                    raise ValueError(
                        f"load: {places[index].relative_path}, {name} have the same elements of "
                        f"{key}. Remove the files of all saves but one."
                    )
                places[index] = _StorageInfo(name, key)
        for key, entry in tensors.items():
            if sum(math.prod(part.sizes) for part in entry.chunks) > math.prod(entry.size):
                raise ValueError(
                    f"load: the files in {self.path} have elements of {key} twice. Remove the "
                    "files of all saves but one."
                )
        return Metadata(dict(tensors), None, places)


def consolidate(
    input_dir: str | os.PathLike[str], output_dir: str | os.PathLike[str], files: dict[str, int]
) -> None:
    """Writes the whole tensors of which a folder has parts to another folder.

    Args:
        input_dir: what a HuggingFaceStorageWriter has written.
        output_dir: which is made.
        files: the number of each tensor's file, from 1; one file for all if it is empty.
    """
    reader = HuggingFaceStorageReader(os.fspath(input_dir))
    tensors: dict[str, Tensor] = {}
    _load_state_dict(tensors, reader, no_dist=True, planner=_EmptyStateDictLoadPlanner())
    os.makedirs(output_dir, exist_ok=True)
    names = {key: _file_name(files, key) for key in tensors}
    for name in sorted(set(names.values())):
        own = {key: tensors[key] for key in names if names[key] == name}
        safetensors.save_file(own, os.path.join(output_dir, name), {"format": "pt"})
    _write_index(output_dir, reader.read_metadata(), names)


def _file_name(files: dict[str, int], key: str) -> str:
    if files and key not in files:
        raise ValueError(f"HuggingFaceStorageWriter: fqn_to_index_mapping has no file for {key}.")
    return f"model-{files.get(key, 1):05d}-of-{max(files.values(), default=1):05d}{_SUFFIX}"


def _write_index(folder: str | os.PathLike[str], metadata: Metadata, names: dict[str, str]) -> None:
    sizes = (
        math.prod(entry.size) * entry.properties.dtype.itemsize
        for entry in metadata.state_dict_metadata.values()
        if isinstance(entry, TensorStorageMetadata)
    )
    index = {"metadata": {"total_size": sum(sizes)}, "weight_map": names}
    with open(os.path.join(folder, f"model{_SUFFIX}.index.json"), "w") as file:
        json.dump(index, file, indent=2)


def _offsets(texts: dict[str, str], name: str) -> dict[str, tuple[int, ...]]:
    try:
        facts = json.loads(texts.get(_OFFSETS, "{}"))
        found = {key: tuple(fact["saved_offsets"]) for key, fact in facts.items()}
        if not all(type(n) is int and 0 <= n < 2**62 for begin in found.values() for n in begin):
            raise ValueError(f"{found!r} are no offsets")
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"load: cannot read {_OFFSETS} of {name}: {error}.") from None
    return found
