"""load where programs look for it, and its older form."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.distributed.checkpoint._saving import DefaultLoadPlanner, load
from rushlight.distributed.checkpoint.filesystem import StorageReader

__all__ = ["load", "load_state_dict"]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultLoadPlanner | None = None,
) -> None:
    """Fills a state dict from a checkpoint: load's older name, which is deprecated.

    Args:
        state_dict, storage_reader, process_group, no_dist, planner: see load.
        coordinator_rank: accepted for PyTorch's sake.
    """
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use "
        "`load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultLoadPlanner | None = None,
) -> None:
    load(
        state_dict,
        storage_reader=storage_reader,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
    )
