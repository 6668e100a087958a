"""The planners of save and load: of copies one is written, every rank reads what its parts need."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.checkpoint import _tree
from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict
from rushlight.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
    tiles,
    whole,
)
from rushlight.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from rushlight.distributed.checkpoint.planner_helpers import (
    _create_read_items,
    _create_write_items,
    narrowed,
)
from rushlight.distributed.checkpoint.utils import find_state_dict_object

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Divides what is saved: of copies the rank writes one that has least to write so far.

    Args:
        flatten_state_dict: whether what is in nested dicts and lists is saved one by one. Without
            it, those are values.
        flatten_sharded_tensors, dedup_replicated_tensors, enable_plan_caching: accepted for
            PyTorch's sake.
        dedup_save_to_lowest_rank: whether the first rank that has a copy writes it.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> class Half(dcp.DefaultSavePlanner):
        ...     def lookup_object(self, index):
        ...         found = super().lookup_object(index)
        ...         return found.half() if isinstance(found, torch.Tensor) else found
        >>> state = {"x": torch.tensor([1.0, 1e-9])}
        >>> with tempfile.TemporaryDirectory() as path:
        ...     _ = dcp.save(state, checkpoint_id=path, planner=Half())
        ...     dcp.load(state, checkpoint_id=path)
        >>> state["x"]
        tensor([1., 0.])
    """

    mappings: dict[str, tuple[str | int, ...]]

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Takes what is to be saved."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Returns what this rank has."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = replace(plan, planner_data=self.mappings) if self.flatten_state_dict else plan
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Returns what each rank writes, and what the checkpoint will be.

        Raises:
            ValueError: if ranks have different tensors under one key, or not the whole of one.
        """
        _check_that_ranks_agree(all_plans)
        plans, metadata = create_default_global_save_plan(self._dedup_save_plans(all_plans))
        if self.flatten_state_dict:
            paths = {k: path for plan in all_plans for k, path in plan.planner_data.items()}
            metadata = replace(metadata, planner_data=paths)
        _check_that_all_is_there(metadata)
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def _dedup_save_plans(self, all_plans: list[SavePlan]) -> list[SavePlan]:
        """The plans of all ranks, with everything in one of them."""
        return _without_copies(all_plans, self.dedup_save_to_lowest_rank)

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Returns what this rank writes."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Returns what an item writes."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Returns what is saved under an index: a value, or this rank's part of a tensor."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Returns an object as it is stored: a tensor as it is, a value as a file of save.

        Raises:
            TypeError: for objects that load would not make again.
        """
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        _tree.check_plain(object, write_item.index.fqn)
        data = io.BytesIO()
        rl.save(object, data)
        return data


class DefaultLoadPlanner(LoadPlanner):
    """Reads what the parts of a state dict need.

    Args:
        flatten_state_dict: whether what is in nested dicts and lists was saved one by one.
        flatten_sharded_tensors: accepted for PyTorch's sake.
        allow_partial_load: whether keys that the checkpoint lacks stay as they are.
    """

    original_state_dict: dict[str, Any]
    mappings: dict[str, tuple[str | int, ...]]

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict = {}
        self.mappings = {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Takes what is to be filled, with tensors in place of values that were tensors."""
        assert metadata is not None
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator
        for key, value in list(state_dict.items()):
            entry = metadata.state_dict_metadata.get(key)
            if isinstance(entry, TensorStorageMetadata) and not isinstance(value, Tensor):
                self._put(key, rl.empty(entry.size, dtype=entry.properties.dtype))

    def _put(self, key: str, value: Any) -> None:
        self.state_dict[key] = value
        if self.flatten_state_dict:
            _tree.replace_leaf(self.original_state_dict, self.mappings[key], value)

    def create_local_plan(self) -> LoadPlan:
        """Returns what this rank needs.

        Raises:
            RuntimeError: if the checkpoint lacks a key.
            ValueError: if a tensor has another shape.
        """
        return create_default_local_load_plan(
            self.state_dict, self.metadata, not self.allow_partial_load
        )

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Returns what each rank reads: what it needs."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Returns what this rank reads."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Takes the bytes of a value, which are a file of save."""
        self._put(read_item.dest_index.fqn, rl.load(value, map_location="cpu"))

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Returns the tensor that an item fills."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Is told that a tensor is filled."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """Returns this rank's part of the tensor under an index."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """Returns the box of a tensor that an item fills."""
        return narrowed(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Lets load put all that there is into an empty state dict.

    Args:
        keys: which parts of it; None for all.
        *args, **kwargs: see DefaultLoadPlanner.
    """

    def __init__(self, keys: Iterable[str] | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = None if keys is None else set(keys)

    def _wants(self, key: str) -> bool:
        """Whether a key, or what it is in, is among those that are wanted."""
        return self.keys is None or any(f"{key}.".startswith(f"{part}.") for part in self.keys)

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Makes the state dict, with tensors that are to be filled, nested as it was saved."""
        assert metadata is not None
        flat = {
            key: rl.empty(entry.size, dtype=entry.properties.dtype)
            if isinstance(entry, TensorStorageMetadata)
            else _tree.Placeholder()
            for key, entry in metadata.state_dict_metadata.items()
            if self._wants(key)
        }
        paths = metadata.planner_data if self.flatten_state_dict else None
        state_dict.update(_tree.nested(flat, paths or {}))
        super().set_up_planner(state_dict, metadata, is_coordinator)
        keys = {id(value): key for key, value in flat.items()}
        if self.flatten_state_dict:  # in parts of lists, places are not those that were saved
            self.mappings = {keys[id(v)]: self.mappings[k] for k, v in self.state_dict.items()}
            self.state_dict = flat


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Returns what this rank has of a state dict.

    Args:
        state_dict: values by key.
        is_coordinator: accepted for PyTorch's sake: of what all ranks have, create_global_plan
            leaves one.
    """
    return SavePlan(
        [item for key, value in state_dict.items() for item in _create_write_items(key, value)]
    )


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """Returns plans in which nothing is twice, and what the checkpoint will be.

    Args:
        all_plans: what each rank writes.
        rewrite_index_hints: whether items get the places of their parts.
    """
    entries: dict[str, STORAGE_TYPES] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            key, data = item.index.fqn, item.tensor_data
            if data is None:
                entries[key] = BytesStorageMetadata()
            else:
                entry = entries.setdefault(key, TensorStorageMetadata(data.properties, data.size))
                assert isinstance(entry, TensorStorageMetadata)
                if rewrite_index_hints:
                    item = replace(item, index=replace(item.index, index=len(entry.chunks)))
                entry.chunks.append(data.chunk)
            items.append(item)
        plans.append(replace(plan, items=items))
    return plans, Metadata(entries)


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """Returns what this rank needs to fill a state dict.

    Args:
        state_dict: values by key.
        metadata: what the checkpoint has.
        strict: whether it must have all keys.

    Raises:
        RuntimeError: if it lacks one.
        ValueError: if a tensor has another shape, or the checkpoint lacks some of it.
    """
    items: list[ReadItem] = []
    for key, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(key)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {key}.")
            continue
        if isinstance(entry, TensorStorageMetadata) and tuple(value.shape) != tuple(entry.size):
            raise ValueError(
                f"Size mismatch between saved {tuple(entry.size)} and current: "
                f"{tuple(value.shape)} for {key}"
            )
        items += _create_read_items(key, entry, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Returns what each rank reads: what it needs."""
    return all_plans


def _check_that_ranks_agree(plans: list[SavePlan]) -> None:
    """Checks that what ranks have under one key is of the same kind."""
    known: dict[str, str] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            key, data, kind = item.index.fqn, item.tensor_data, "no tensor"
            if data is not None:
                kind = f"{data.properties.dtype} of shape {tuple(data.size)}"
            other = known.setdefault(key, kind)
            if other != kind:
                raise ValueError(
                    f"save: {key} is {kind} on rank {rank}, but {other} on another. All ranks "
                    "save the same tensors."
                )


def _check_that_all_is_there(metadata: Metadata) -> None:
    """Checks that the parts of each tensor make it up."""
    for key, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, TensorStorageMetadata) and not tiles(entry.chunks, whole(entry.size)):
            raise ValueError(
                f"Failed to validate global plan: the parts of {key} overlap, or are not all of "
                f"its shape {tuple(entry.size)}."
            )


def _without_copies(plans: list[SavePlan], to_lowest_rank: bool) -> list[SavePlan]:
    """Leaves one of the items that several ranks have, where least is written so far."""
    holders: dict[MetadataIndex, list[int]] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(rank)
    sizes = {item.index: item.tensor_storage_size() or 1 for p in plans for item in p.items}
    loads = [0] * len(plans)
    owners: dict[MetadataIndex, int] = {}
    for index, ranks in holders.items():
        owner = ranks[0] if to_lowest_rank else min(ranks, key=lambda rank: loads[rank])
        loads[owner] += sizes[index]
        owners[index] = owner
    return [
        replace(plan, items=[item for item in plan.items if owners[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]
