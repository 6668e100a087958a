"""save and async_save where programs look for them, and the older form of save."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.distributed.checkpoint._saving import DefaultSavePlanner, async_save, save
from rushlight.distributed.checkpoint.filesystem import StorageWriter
from rushlight.distributed.checkpoint.metadata import Metadata

__all__ = ["async_save", "save", "save_state_dict"]


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultSavePlanner | None = None,
) -> Metadata:
    """Writes a state dict and returns what save does: its older name, which is deprecated.

    Args:
        state_dict, storage_writer, process_group, no_dist, planner: see save.
        coordinator_rank: accepted for PyTorch's sake.
    """
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions. Please use "
        "`save` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _save_state_dict(
        state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner
    )


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultSavePlanner | None = None,
) -> Metadata:
    return save(
        state_dict,
        storage_writer=storage_writer,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
    )
