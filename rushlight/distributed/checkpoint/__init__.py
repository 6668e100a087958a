"""Checkpoints of tensors that are spread over ranks, which any number of ranks can read.

docs/fsdp.md tells how. Planners (planner.py, default_planner.py) say who writes and reads what;
storage (storage.py, filesystem.py) does it. State dicts of models and optimizers are in
state_dict.py, files for other programs in hf_storage.py, conversions in format_utils.py.
"""

from __future__ import annotations

from rushlight import _later
from rushlight.distributed.checkpoint.api import CheckpointException
from rushlight.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from rushlight.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from rushlight.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from rushlight.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from rushlight.distributed.checkpoint.state_dict_loader import load, load_state_dict
from rushlight.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from rushlight.distributed.checkpoint.storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "TensorStorageMetadata",
    "WriteItem",
    "async_save",
    "load",
    "load_sharded_optimizer_state_dict",
    "load_state_dict",
    "save",
    "save_state_dict",
]

for _public in (CheckpointException, async_save, load, save):
    _public.__module__ = __name__


__getattr__ = _later.imports(
    __name__,
    ("default_planner", "format_utils", "hf_storage", "staging", "state_dict", "stateful"),
    {"hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter"},
)
