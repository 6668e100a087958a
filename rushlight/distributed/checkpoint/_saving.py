"""save, async_save and load: who writes what, and who reads what.

All ranks tell each other what they have; of copies the rank writes one that has least to write so
far. Every rank reads by itself, only what its parts need, so the number of ranks may change.
"""

from __future__ import annotations

import copy
import os
import threading
import weakref
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight._checkpoint.plain_data import dtype_of
from rushlight.distributed.checkpoint import _tree
from rushlight.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    StorageReader,
    whole,
)
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
    entry_of,
)
from rushlight.distributed.checkpoint.planner import LoadPlanner, SavePlanner, refuse_steps
from rushlight.distributed.checkpoint.stateful import Stateful
from rushlight.distributed.tensor import DTensor

__all__ = [
    "CheckpointException",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "async_save",
    "load",
    "save",
]


class CheckpointException(RuntimeError):
    """Raised by save on all ranks when one could not do its part, and by load.

    Args:
        msg: what was to be done.
        failures: what went wrong, by rank.
    """

    def __init__(self, msg: str, failures: dict[int, str]) -> None:
        super().__init__(msg, failures)
        self.failures = failures

    def __str__(self) -> str:
        told = "; ".join(f"rank {rank}: {text}" for rank, text in self.failures.items())
        return f"{self.args[0]}: {told}"


class DefaultSavePlanner(SavePlanner):
    """How save divides the work.

    Args:
        flatten_state_dict, flatten_sharded_tensors, dedup_replicated_tensors,
            dedup_save_to_lowest_rank, enable_plan_caching: accepted for PyTorch's sake: of copies
            one is written, by the rank that has least to write.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        pass


class DefaultLoadPlanner(LoadPlanner):
    """How load reads.

    Args:
        flatten_state_dict, flatten_sharded_tensors: accepted for PyTorch's sake.
        allow_partial_load: whether keys that the checkpoint lacks stay as they are.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.allow_partial_load = allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Lets load put all that there is into an empty state dict.

    Args:
        keys: which parts of it; None for all.
    """

    def __init__(self, keys: Iterable[str] | None = None) -> None:
        super().__init__()
        self.keys = None if keys is None else set(keys)

    def wants(self, key: str) -> bool:
        """Returns whether a key, or what it is in, is among those that are wanted."""
        return self.keys is None or any(f"{key}.".startswith(f"{part}.") for part in self.keys)


class _Ranks:
    """The ranks that save together; one if there is no job."""

    def __init__(self, group: Any, no_dist: bool) -> None:
        self.group = group
        self.is_job = not no_dist and dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank(group) if self.is_job else 0
        self.size = dist.get_world_size(group) if self.is_job else 1

    def gather(self, value: Any) -> list[Any]:
        """Returns what all ranks give."""
        if not self.is_job:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, self.group)
        return values

    def agree(self, error: Exception | None) -> None:
        """Raises CheckpointException on all ranks if one has an error."""
        told = self.gather(None if error is None else f"{type(error).__name__}: {error}")
        failures = {rank: text for rank, text in enumerate(told) if text is not None}
        if failures:
            raise CheckpointException("save", failures) from error


def _states(state_dict: Any, function: str) -> dict[str, Any]:
    """A state dict with the states of objects in the place of the objects."""
    if not isinstance(state_dict, dict):
        raise TypeError(
            f"{function}: state_dict is a {type(state_dict).__name__}. Give a dict of tensors, "
            'values and objects that have a state, such as {"model": model}.'
        )
    return {
        key: value.state_dict()
        if isinstance(value, Stateful) and not isinstance(value, dict)
        else value
        for key, value in state_dict.items()
    }


def _box(tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """This rank's part of a tensor, and where it begins."""
    if not isinstance(tensor, DTensor):
        return tensor.detach(), (0,) * tensor.dim()
    if any(placement.is_partial() for placement in tensor.placements):
        raise ValueError(
            f"save: a DTensor with placements {tensor.placements} is not what it sums up to yet. "
            "Redistribute it first."
        )
    spec = tensor._spec
    return tensor._local_tensor.detach(), tuple(spec.offset(d) for d in range(tensor.dim()))


class _Plan:
    """What this rank has: the boxes of tensors, by key and offsets, and the other values."""

    def __init__(self, state_dict: dict[str, Any], copies: bool) -> None:
        self.boxes: dict[tuple[str, tuple[int, ...]], Tensor] = {}
        self.tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.values: dict[str, Any] = {}
        self.paths: dict[str, tuple[str | int, ...]] = {}
        states = _states(state_dict, "save")
        for path, value in _tree.leaves(states):
            key = ".".join(map(str, path))
            if key in self.tensors or key in self.values:
                raise ValueError(f"save: two values have the key {key}. Rename one.")
            if len(path) > 1:
                self.paths[key] = _tree.steps_of(states, path)
            if not isinstance(value, Tensor):
                _tree.encoded(value, key)
                self.values[key] = copy.deepcopy(value) if copies else value
                continue
            box, offsets = _box(value)
            if box.is_meta:
                raise ValueError(f"save: {key} is on meta, without elements to save.")
            self.tensors[key] = str(value.dtype), tuple(value.shape)
            if box.numel() or not value.numel():
                box = box.to("cpu", copy=True) if copies else box.cpu()
                self.boxes[key, offsets] = box

    def described(self) -> Any:
        """Returns what other ranks need to know."""
        boxes = {place: (tuple(box.shape), box.nbytes) for place, box in self.boxes.items()}
        return self.tensors, boxes, self.values, self.paths


def _divided(
    plans: list[Any], save: str, writer: FileSystemWriter
) -> tuple[Metadata, dict[Any, int]]:
    """What the checkpoint will be, and which rank writes which box."""
    tensors: dict[str, TensorStorageMetadata] = {}
    values: dict[str, Any] = {}
    paths: dict[str, tuple[str | int, ...]] = {}
    owners: dict[Any, int] = {}
    holders: dict[Any, list[int]] = {}
    for rank, (facts, boxes, others, ways) in enumerate(plans):
        for key, (dtype, shape) in facts.items():
            entry = tensors.setdefault(key, entry_of(dtype_of(dtype), shape))
            if (str(entry.properties.dtype), entry.size) != (dtype, shape):
                raise ValueError(
                    f"save: {key} is {dtype} of shape {shape} on rank {rank}, but "
                    f"{entry.properties.dtype} of shape {tuple(entry.size)} on another."
                )
        for place in boxes:
            holders.setdefault(place, []).append(rank)
        for key, value in others.items():
            values.setdefault(key, value)
        paths.update(ways)
    loads = [0] * len(plans)
    for place, ranks in holders.items():
        owner = min(ranks, key=lambda rank: loads[rank])
        shape, size = plans[owner][1][place]
        loads[owner] += size
        owners[place] = owner
        key, offsets = place
        file = writer.file_of(save, owner, key)
        box = rl.Size(offsets), rl.Size(shape)
        tensors[key].chunks.append(ChunkStorageMetadata(*box, file, writer.name_of(key, offsets)))
    return Metadata(tensors, values, paths), owners


class _Save:
    """One save, in two steps: begin, where all ranks plan, and finish, where they write."""

    def __init__(
        self,
        state_dict: dict[str, Any],
        checkpoint_id: Any,
        storage_writer: Any,
        ranks: _Ranks,
        copies: bool,
    ) -> None:
        if storage_writer is None and checkpoint_id is None:
            raise ValueError("save: needs a checkpoint_id, the folder, or a storage_writer.")
        if storage_writer is not None and not isinstance(storage_writer, FileSystemWriter):
            raise NotImplementedError(
                f"save: a {type(storage_writer).__name__} is not available. Use FileSystemWriter "
                "or HuggingFaceStorageWriter."
            )
        self.writer: FileSystemWriter = storage_writer or FileSystemWriter(checkpoint_id)
        if checkpoint_id is not None:
            self.writer.path = os.fspath(checkpoint_id)
        self.ranks = ranks
        error, told = None, None
        try:
            self.writer.check()
            self.plan = _Plan(state_dict, copies)
            told = self.plan.described()
        except Exception as raised:
            error = raised
        ranks.agree(error)
        names, plans = zip(*ranks.gather((os.urandom(4).hex(), told)), strict=True)
        self.name = names[0]
        self.metadata, self.owners = _divided(list(plans), self.name, self.writer)

    def finish(self, ranks: _Ranks) -> Metadata:
        """Writes this rank's files and, when all have, the metadata."""
        error = None
        try:
            self.writer.check_plan(self.metadata)
            files: dict[str, dict[Any, Tensor]] = {}
            for place, box in self.plan.boxes.items():
                if self.owners[place] == ranks.rank:
                    file = self.writer.file_of(self.name, ranks.rank, place[0])
                    files.setdefault(file, {})[place] = box
            for file, boxes in files.items():
                self.writer.write_tensors(file, boxes)
        except Exception as raised:
            error = raised
        ranks.agree(error)
        try:
            if ranks.rank == 0:
                self.writer.write_metadata(self.metadata)
        except Exception as raised:
            error = raised
        ranks.agree(error)
        return self.metadata


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Writes a state dict, whose DTensors each rank has parts of. All ranks call it.

    Args:
        state_dict: tensors, and what JSON can tell, nested; or objects with state_dict.
        checkpoint_id: the folder.
        storage_writer: a FileSystemWriter, in place of the folder.
        planner: accepted for PyTorch's sake, without methods of its own.
        process_group: the ranks that save together; all by default.
        no_dist: whether this process saves alone.
        use_collectives: accepted for PyTorch's sake.

    Returns:
        What the checkpoint holds.

    Raises:
        CheckpointException: on all ranks, if one could not write its part.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> model = torch.nn.Linear(2, 1)
        >>> with tempfile.TemporaryDirectory() as path:
        ...     saved = dcp.save({"model": model, "step": 3}, checkpoint_id=path)
        ...     state = {"model": model, "step": 0}
        ...     dcp.load(state, checkpoint_id=path)
        >>> sorted(saved.tensors), state["step"]
        (['model.bias', 'model.weight'], 3)
    """
    refuse_steps("save", planner)
    if _last is not None:
        _last.join()
    ranks = _Ranks(process_group, no_dist)
    return _Save(state_dict, checkpoint_id, storage_writer, ranks, False).finish(ranks)


# Those of async_save, with which the collectives of the program do not mix.
_groups: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_last: threading.Thread | None = None  # that saves; each waits for the one before


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    **options: Any,
) -> Future[Metadata]:
    """Copies a state dict, and writes the copy while the program goes on. All ranks call it.

    Saves are written one after the other, in the order of the calls.

    Args:
        state_dict, checkpoint_id, storage_writer, planner, process_group: see save.
        **options: accepted for PyTorch's sake.

    Returns:
        A future, whose result() is what save returns. Wait for it before the job ends.
    """
    global _last
    refuse_steps("save", planner)
    ranks = _Ranks(process_group, False)
    begun = _Save(state_dict, checkpoint_id, storage_writer, ranks, True)
    if ranks.is_job:
        group = process_group or dist.group.WORLD
        if group not in _groups:
            members = dist.get_process_group_ranks(group)
            _groups[group] = dist.new_group(
                members, use_local_synchronization=True, group_desc="checkpoint"
            )
        ranks = _Ranks(_groups[group], False)
    saved: Future[Metadata] = Future()
    saved.set_running_or_notify_cancel()  # other ranks would wait for one that is cancelled
    before = _last

    def finish() -> None:
        if before is not None:
            before.join()
        try:
            saved.set_result(begun.finish(ranks))
        except BaseException as error:
            saved.set_exception(error)

    _last = threading.Thread(target=finish, name="checkpoint")
    _last.start()
    return saved


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: Any = None,
    planner: DefaultLoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fills a state dict from a checkpoint, in place. Each rank reads what its parts need.

    Args:
        state_dict: what is wanted: tensors are overwritten, other values replaced, objects with
            load_state_dict get theirs. DTensors may lie otherwise than those that were saved.
        checkpoint_id: the folder.
        storage_reader: a StorageReader such as FileSystemReader, in place of the folder.
        planner: a DefaultLoadPlanner, without methods of its own.
        process_group, no_dist: accepted for PyTorch's sake; ranks do not wait for each other.

    Raises:
        CheckpointException: if there is no checkpoint, it is damaged or lacks a key, or a shape
            differs.
        TypeError: if state_dict is no dict.
    """
    if storage_reader is None and checkpoint_id is None:
        raise ValueError("load: needs a checkpoint_id, the folder, or a storage_reader.")
    if storage_reader is not None and not isinstance(storage_reader, StorageReader):
        raise NotImplementedError(
            f"load: a {type(storage_reader).__name__} is not available. Use FileSystemReader."
        )
    refuse_steps("load", planner)
    reader = storage_reader or FileSystemReader(os.fspath(checkpoint_id or ""))
    reader.reset(checkpoint_id)
    wanted = _states(state_dict, "load")
    try:
        with rl.no_grad():
            _fill(wanted, reader, planner or DefaultLoadPlanner())
    except Exception as error:
        rank = dist.get_rank() if dist.is_initialized() else 0
        raise CheckpointException("load", {rank: f"{type(error).__name__}: {error}"}) from error
    for key, value in wanted.items():
        target = state_dict.get(key)
        if isinstance(target, Stateful) and not isinstance(target, dict):
            target.load_state_dict(value)
        else:
            state_dict[key] = value


def _fill(wanted: dict[str, Any], reader: StorageReader, planner: DefaultLoadPlanner) -> None:
    metadata = reader.read_metadata()
    if isinstance(planner, _EmptyStateDictLoadPlanner):
        wanted.update(_everything(reader, metadata, planner))
        return
    for path, value in list(_tree.leaves(wanted)):
        key = ".".join(map(str, path))
        if key in metadata.values:
            _tree.replace_leaf(wanted, path, metadata.values[key])
        elif key in metadata.tensors:
            entry = metadata.tensors[key]
            if isinstance(value, Tensor):
                _read(reader, entry, value, key)
            else:
                _tree.replace_leaf(wanted, path, whole(reader, entry))
        elif not planner.allow_partial_load:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {key}.")


def _everything(
    reader: StorageReader, metadata: Metadata, planner: _EmptyStateDictLoadPlanner
) -> dict[str, Any]:
    tensors = {
        key: whole(reader, entry) for key, entry in metadata.tensors.items() if planner.wants(key)
    }
    values = {key: value for key, value in metadata.values.items() if planner.wants(key)}
    return _tree.nested({**tensors, **values}, metadata.planner_data)


def _read(reader: StorageReader, entry: TensorStorageMetadata, target: Tensor, key: str) -> None:
    if tuple(target.shape) != entry.size:
        raise ValueError(
            f"Size mismatch between saved {tuple(entry.size)} and current: "
            f"{tuple(target.shape)} for {key}"
        )
    box, offsets = _box(target)
    if box.is_meta:
        raise ValueError(f"load: {key} is on meta, without memory to fill. Call to_empty first.")
    reader.read_box(entry, box, offsets)
