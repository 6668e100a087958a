"""save, async_save, and the older form of save.

All ranks tell the coordinator what they have, its planner says who writes what, and when all have
written, it writes what the checkpoint is.
"""

from __future__ import annotations

import enum
import os
import threading
import warnings
import weakref
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from rushlight import distributed as dist
from rushlight.distributed.checkpoint.default_planner import DefaultSavePlanner
from rushlight.distributed.checkpoint.filesystem import FileSystemWriter
from rushlight.distributed.checkpoint.metadata import Metadata
from rushlight.distributed.checkpoint.planner import SavePlan, SavePlanner
from rushlight.distributed.checkpoint.staging import AsyncStager, BlockingAsyncStager
from rushlight.distributed.checkpoint.stateful import states_of
from rushlight.distributed.checkpoint.storage import StorageWriter, WriteResult
from rushlight.distributed.checkpoint.utils import _DistWrapper

__all__ = [
    "AsyncCheckpointerType",
    "AsyncSaveResponse",
    "async_save",
    "save",
    "save_state_dict",
]


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Writes a state dict, whose DTensors each rank has parts of. All ranks call it.

    Args:
        state_dict: tensors, and what JSON can tell, nested; or objects with state_dict.
        checkpoint_id: the folder, or another place that storage_writer writes to.
        storage_writer: a FileSystemWriter for the folder by default.
        planner: decides who writes what; a DefaultSavePlanner by default.
        process_group: the ranks that save together; all by default.
        no_dist: whether this process saves alone.
        use_collectives: accepted for PyTorch's sake.

    Returns:
        What the checkpoint holds.

    Raises:
        CheckpointException: on all ranks, if one could not do its part.
        RuntimeError: if there is neither a place nor a writer.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> model = torch.nn.Linear(2, 1)
        >>> with tempfile.TemporaryDirectory() as path:
        ...     saved = dcp.save({"model": model, "step": 3}, checkpoint_id=path)
        ...     state = {"model": model, "step": 0}
        ...     dcp.load(state, checkpoint_id=path)
        >>> sorted(saved.state_dict_metadata), state["step"]
        (['model.bias', 'model.weight', 'step'], 3)
    """
    if _last is not None:
        _last.join()
    writer = _writer(storage_writer, checkpoint_id)
    if checkpoint_id is not None:
        writer.reset(checkpoint_id)
    return _save_state_dict(state_dict, writer, process_group, no_dist=no_dist, planner=planner)


def _writer(storage_writer: Any, checkpoint_id: Any) -> StorageWriter:
    if storage_writer is None:
        if checkpoint_id is None:
            raise RuntimeError("save: needs a checkpoint_id, the folder, or a storage_writer.")
        return FileSystemWriter(checkpoint_id)
    if not hasattr(storage_writer, "write_data"):
        raise TypeError(
            f"save: storage_writer is a {type(storage_writer).__name__}. Give a StorageWriter, "
            "such as FileSystemWriter."
        )
    return storage_writer


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultSavePlanner()
    metadata = Metadata({})

    def local_step() -> SavePlan:
        storage_meta = storage_writer.storage_meta()
        planner.set_up_planner(
            state_dict=states_of(state_dict, "save"),
            storage_meta=storage_meta,
            is_coordinator=ranks.is_coordinator,
        )
        storage_writer.set_up_storage_writer(ranks.is_coordinator)
        return storage_writer.prepare_local_plan(planner.create_local_plan())

    def global_step(plans: list[SavePlan]) -> list[SavePlan]:
        nonlocal metadata
        plans, metadata = planner.create_global_plan(plans)
        return storage_writer.prepare_global_plan(plans)

    def write() -> list[WriteResult]:
        return storage_writer.write_data(planner.finish_plan(plan), planner).wait()

    def finish(results: list[list[WriteResult]]) -> Metadata:
        storage_writer.finish(metadata, results)
        return metadata

    plan = ranks.reduce_scatter("save", local_step, global_step)
    return ranks.all_reduce("save", write, finish)


# Those of async_save, with which the collectives of the program do not mix.
_groups: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_last: threading.Thread | None = None  # that saves; each waits for the one before


class AsyncCheckpointerType(enum.Enum):
    """Where async_save writes: PyTorch's values. Here it is a thread, whatever they say."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What async_save returns if the copy is not made yet.

    Args:
        staging_completion: until the copy is made.
        upload_completion: until the checkpoint is written.
    """

    staging_completion: Future[Any]
    upload_completion: Future[Metadata]


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """Copies a state dict, and writes the copy while the program goes on. All ranks call it.

    Saves are written one after the other, in the order of the calls.

    Args:
        state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist: see save.
        async_stager: makes the copy; the storage_writer if it has the methods of an AsyncStager, or
            else a BlockingAsyncStager.
        async_checkpointer_type, use_collectives: accepted for PyTorch's sake.

    Returns:
        A future, whose result() is what save returns. Wait for it before the job ends. If the
        stager returns a future, too, an AsyncSaveResponse of both.
    """
    global _last
    writer = _writer(storage_writer, checkpoint_id)
    if async_stager is None:
        async_stager = writer if isinstance(writer, AsyncStager) else BlockingAsyncStager()
    staged = async_stager.stage(states_of(state_dict, "save"))
    if not no_dist and dist.is_available() and dist.is_initialized():
        group = process_group or dist.group.WORLD
        if group not in _groups:
            members = dist.get_process_group_ranks(group)
            _groups[group] = dist.new_group(
                members, use_local_synchronization=True, group_desc="checkpoint"
            )
        process_group = _groups[group]
    saved: Future[Metadata] = Future()
    saved.set_running_or_notify_cancel()  # other ranks would wait for one that is cancelled
    before = _last

    def finish() -> None:
        if before is not None:
            before.join()
        try:
            if checkpoint_id is not None:
                writer.reset(checkpoint_id)
            copied = staged.result() if isinstance(staged, Future) else staged
            saved.set_result(
                _save_state_dict(copied, writer, process_group, no_dist=no_dist, planner=planner)
            )
        except BaseException as error:
            saved.set_exception(error)

    _last = threading.Thread(target=finish, name="checkpoint")
    _last.start()
    if isinstance(staged, Future):
        return AsyncSaveResponse(staged, saved)
    if async_stager.should_synchronize_after_execute:
        async_stager.synchronize_staging()
    return saved


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """Writes a state dict and returns what save does: its older name, which is deprecated.

    Args:
        state_dict, storage_writer, process_group, no_dist, planner: see save.
        coordinator_rank: the rank in the group that plans for all.
    """
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions. Please use "
        "`save` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save_state_dict(
        state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner
    )
