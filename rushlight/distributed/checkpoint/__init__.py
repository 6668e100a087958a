"""Checkpoints of tensors that are spread over ranks, which any number of ranks can read.

docs/fsdp.md tells how. save and load are in _saving.py, files in filesystem.py, state dicts of
models and optimizers in state_dict.py, files for other programs in hf_storage.py, conversions in
format_utils.py.
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
from rushlight.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from rushlight.distributed.checkpoint.state_dict_loader import load_state_dict
from rushlight.distributed.checkpoint.state_dict_saver import save_state_dict

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
    "load_sharded_optimizer_state_dict",
    "load_state_dict",
    "save",
    "save_state_dict",
]

for _public in (CheckpointException, async_save, load, save):
    _public.__module__ = __name__


__getattr__ = _later.imports(
    __name__, ("default_planner", "format_utils", "hf_storage", "state_dict", "stateful")
)
