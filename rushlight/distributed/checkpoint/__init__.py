"""Checkpoints of tensors that are spread over ranks, which any number of ranks can read.

docs/fsdp.md tells how. save and load are in _saving.py, files in filesystem.py, state dicts of
models and optimizers in state_dict.py, files for other programs in hf_storage.py.
"""

from __future__ import annotations

from rushlight import _later
from rushlight.distributed.checkpoint._saving import (
    CheckpointException,
    DefaultLoadPlanner,
    DefaultSavePlanner,
    async_save,
    load,
    save,
)
from rushlight.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    StorageReader,
    StorageWriter,
)
from rushlight.distributed.checkpoint.metadata import Metadata

__all__ = [
    "CheckpointException",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "StorageReader",
    "StorageWriter",
    "async_save",
    "load",
    "save",
]

for _public in (CheckpointException, async_save, load, save):
    _public.__module__ = __name__


__getattr__ = _later.imports(__name__, ("default_planner", "hf_storage", "state_dict", "stateful"))
