"""States of optimizers read by the layout of the model that they belong to."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.checkpoint import _tree
from rushlight.distributed.checkpoint.metadata import TensorStorageMetadata
from rushlight.distributed.checkpoint.planner import LoadPlanner
from rushlight.distributed.checkpoint.state_dict_loader import load
from rushlight.distributed.checkpoint.storage import StorageReader
from rushlight.distributed.tensor import DTensor

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict: dict[str, Any],
    optimizer_key: str,
    storage_reader: StorageReader,
    planner: LoadPlanner | None = None,
) -> dict[str, Any]:
    """Returns the state of an optimizer in a checkpoint, cut as the model's parameters are.

    All ranks call it; each reads its own parts.

    Args:
        model_state_dict: state of the model; what its DTensors say of layouts is used.
        optimizer_key: the key under which FSDP.optim_state_dict's result was saved.
        storage_reader: where the checkpoint is.
        planner: see load.

    Returns:
        {optimizer_key: state}, for FSDP.optim_state_dict_to_load. Tensors as large as their
        DTensor parameter are DTensors too, all others whole.

    Raises:
        CheckpointException: if the checkpoint is damaged.
    """
    metadata = storage_reader.read_metadata()
    paths = metadata.planner_data or {}
    flat: dict[str, Any] = {}
    for key, entry in metadata.state_dict_metadata.items():
        if key.startswith(f"{optimizer_key}."):
            flat[key] = None
            if isinstance(entry, TensorStorageMetadata):
                path = paths.get(key, ())
                param = model_state_dict.get(str(path[2])) if len(path) > 2 else None
                flat[key] = _like(param, entry.properties.dtype, entry.size)
    load(flat, storage_reader=storage_reader, planner=planner)
    return _tree.nested(flat, paths)


def _like(param: Any, dtype: rl.dtype, shape: tuple[int, ...]) -> Tensor:
    if isinstance(param, DTensor) and tuple(param.shape) == shape:
        return rl.zeros_like(param, dtype=dtype, requires_grad=False)
    return rl.empty(shape, dtype=dtype)
