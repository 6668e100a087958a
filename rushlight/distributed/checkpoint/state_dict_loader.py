"""load, and its older form.

All ranks tell the coordinator what they need, its planner may change it, and each reads by itself,
so the number of ranks may differ from the one that saved.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import rushlight as rl
from rushlight.distributed.checkpoint.default_planner import DefaultLoadPlanner
from rushlight.distributed.checkpoint.filesystem import FileSystemReader
from rushlight.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from rushlight.distributed.checkpoint.stateful import Stateful, states_of
from rushlight.distributed.checkpoint.storage import StorageReader
from rushlight.distributed.checkpoint.utils import _DistWrapper

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fills a state dict from a checkpoint, in place. All ranks call it; each reads its parts.

    Args:
        state_dict: what is wanted: tensors are overwritten, other values replaced, objects with
            load_state_dict get theirs. DTensors may lie otherwise than those that were saved.
        checkpoint_id: the folder, or another place that storage_reader reads from.
        storage_reader: a FileSystemReader for the folder by default.
        planner: decides who reads what; a DefaultLoadPlanner by default.
        process_group: the ranks that load together; all by default.
        no_dist: whether this process loads alone.

    Raises:
        CheckpointException: on all ranks, if for one there is no checkpoint, it is damaged or lacks
            a key, or a shape differs.
        RuntimeError: if there is neither a place nor a reader.
        TypeError: if state_dict is no dict.
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError("load: needs a checkpoint_id, the folder, or a storage_reader.")
        storage_reader = FileSystemReader(checkpoint_id)
    elif checkpoint_id is not None:
        storage_reader.reset(checkpoint_id)
    wanted = states_of(state_dict, "load")
    _load_state_dict(wanted, storage_reader, process_group, no_dist=no_dist, planner=planner)
    for key, value in wanted.items():
        target = state_dict.get(key)
        if isinstance(target, Stateful) and not isinstance(target, dict):
            target.load_state_dict(value)
        else:
            state_dict[key] = value


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """Fills a state dict from a checkpoint: load's older name, which is deprecated.

    Args:
        state_dict, storage_reader, process_group, no_dist, planner: see load.
        coordinator_rank: the rank in the group that plans for all.
    """
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use "
        "`load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultLoadPlanner()

    def local_step() -> LoadPlan:
        metadata = storage_reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def global_step(plans: list[LoadPlan]) -> list[LoadPlan]:
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    def read() -> None:
        storage_reader.read_data(planner.finish_plan(plan), planner).wait()

    with rl.no_grad():
        plan = ranks.reduce_scatter("load", local_step, global_step)
        ranks.all_gather("load", read)
