"""Checkpoints as safetensors files under the names of the tensors, which other programs read.

Where a part of a tensor begins stands in the texts of its file, as PyTorch writes it: either
framework reads what the other one saved.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable

import rushlight as rl
from rushlight.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    Place,
    whole,
)
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
    entry_is_whole,
    entry_of,
)
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

    def file_of(self, save: str, rank: int, key: str) -> str:
        """Returns the name of the file in which a rank writes its part of a tensor."""
        name = _file_name(self.files, key)
        return f"{self.prefix}{rank + 1:05d}-{name}" if self.is_distributed else name

    def name_of(self, key: str, offsets: tuple[int, ...]) -> str:
        """Returns the name of the tensor."""
        return key

    def notes_on(self, places: Iterable[Place]) -> dict[str, str]:
        """Returns where the parts in a file begin."""
        offsets = {key: {"saved_offsets": list(begin)} for key, begin in places}
        return {_OFFSETS: json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}

    def check_plan(self, metadata: Metadata) -> None:
        """See FileSystemWriter."""
        if metadata.values:
            raise ValueError(
                f"HuggingFaceStorageWriter: {', '.join(metadata.values)} are no tensors. Such "
                "files have only tensors. Use FileSystemWriter."
            )
        if not self.is_distributed:
            for key, entry in metadata.tensors.items():
                if len(entry.chunks) != 1:
                    raise ValueError(
                        f"HuggingFaceStorageWriter: {key} is in {len(entry.chunks)} parts. Pass "
                        "save_distributed=True."
                    )

    def write_metadata(self, metadata: Metadata) -> None:
        """Writes which file has which tensor, if each is in one."""
        self.remove_others(metadata)
        if self.whole_path is not None:
            consolidate(self.path, self.whole_path, self.files)
        elif not self.is_distributed:
            files = {key: entry.chunks[0].file for key, entry in metadata.tensors.items()}
            _write_index(self.path, metadata, files)


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the tensors of all safetensors files in a folder.

    Args:
        path: the folder.
        thread_count: accepted for PyTorch's sake.
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)

    def read_metadata(self) -> Metadata:
        """Returns what is in the files.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if one is damaged, or they are of several saves.
        """
        files = sorted(name for name in os.listdir(self.path) if name.endswith(_SUFFIX))
        if not files:
            raise FileNotFoundError(f"load: there are no {_SUFFIX} files in {self.path}.")
        tensors: dict[str, TensorStorageMetadata] = {}
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
                entry.chunks.append(ChunkStorageMetadata(rl.Size(begin), tensor.shape, name, key))
        for key, entry in tensors.items():
            entry_is_whole(entry)
            if sum(math.prod(part.sizes) for part in entry.chunks) > math.prod(entry.size):
                raise ValueError(
                    f"load: {', '.join(part.file for part in entry.chunks)} have the same elements "
                    f"of {key}. Remove the files of all saves but one."
                )
        return Metadata(tensors, {})


def consolidate(input_dir: str, output_dir: str, files: dict[str, int]) -> None:
    """Writes the whole tensors of which a folder has parts to another folder.

    Args:
        input_dir: what a HuggingFaceStorageWriter has written.
        output_dir: which is made.
        files: the number of each tensor's file, from 1; one file for all if it is empty.
    """
    reader = HuggingFaceStorageReader(input_dir)
    metadata = reader.read_metadata()
    os.makedirs(output_dir, exist_ok=True)
    names = {key: _file_name(files, key) for key in metadata.tensors}
    for name in sorted(set(names.values())):
        own = {key: whole(reader, metadata.tensors[key]) for key in names if names[key] == name}
        safetensors.save_file(own, os.path.join(output_dir, name), {"format": "pt"})
    _write_index(output_dir, metadata, names)


def _file_name(files: dict[str, int], key: str) -> str:
    if files and key not in files:
        raise ValueError(f"HuggingFaceStorageWriter: fqn_to_index_mapping has no file for {key}.")
    return f"model-{files.get(key, 1):05d}-of-{max(files.values(), default=1):05d}{_SUFFIX}"


def _write_index(folder: str, metadata: Metadata, names: dict[str, str]) -> None:
    sizes = (
        math.prod(entry.size) * entry.properties.dtype.itemsize
        for entry in metadata.tensors.values()
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
