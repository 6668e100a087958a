"""The ranks that save or load together, and objects of state dicts by index."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.checkpoint.api import CheckpointException
from rushlight.distributed.checkpoint.metadata import MetadataIndex
from rushlight.distributed.tensor._api import local_of

__all__ = ["CheckpointException", "find_state_dict_object"]

T = TypeVar("T")
R = TypeVar("R")


class _DistWrapper:
    """The ranks that save or load together; one if there is no job.

    What one of them raises in a step, CheckpointException tells all.

    Args:
        group: the ranks; all of the job by default.
        use_dist: whether there may be others.
        coordinator_rank: the rank in the group that plans for all.
    """

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group = group
        self.use_dist = use_dist and dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank(group) if self.use_dist else 0
        self.coordinator_rank = coordinator_rank if self.use_dist else 0
        self.is_coordinator = self.rank == self.coordinator_rank

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """Returns what the function returns on each rank."""
        told, error = self._attempt(map_fun)
        every: list[Any] = [told]
        if self.use_dist:
            every *= dist.get_world_size(self.group)
            dist.all_gather_object(every, told, self.group)
        failures = {rank: text for rank, (_, text) in enumerate(every) if text is not None}
        if failures:
            raise CheckpointException(step, failures) from error
        return [value for value, _ in every]

    def broadcast(self, step: str, map_fun: Callable[[], T]) -> T:
        """Returns what the function returns on the coordinator, which alone calls it."""
        told: list[Any] = [None]
        error = None
        if self.is_coordinator:
            told[0], error = self._attempt(map_fun)
        if self.use_dist:
            dist.broadcast_object_list(told, group=self.group, group_src=self.coordinator_rank)
        value, failure = told[0]
        if failure is not None:
            raise CheckpointException(step, {self.coordinator_rank: failure}) from error
        return value

    def all_reduce(
        self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]
    ) -> R:
        """Returns what the coordinator makes of what all ranks give."""
        parts = self.all_gather(step, map_fun)
        return self.broadcast(step, lambda: reduce_fun(parts))

    def reduce_scatter(
        self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]
    ) -> R:
        """Returns this rank's part of what the coordinator makes of what all ranks give."""
        return self.all_reduce(step, map_fun, reduce_fun)[self.rank]

    def _attempt(
        self, function: Callable[[], Any]
    ) -> tuple[tuple[Any, str | None], Exception | None]:
        """What a function returns, or else the text of its error, and the error."""
        try:
            value = function()
            if self.use_dist:
                pickle.dumps(value)  # what cannot be sent is an error, too, of which all learn
            return (value, None), None
        except Exception as error:
            return (None, f"{type(error).__name__}: {error}"), error


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """Returns what a state dict has under an index: a value, or this rank's part of a tensor.

    Raises:
        ValueError: if there is nothing of that name, or a value that has no parts.
    """
    if index.fqn not in state_dict:
        raise ValueError(f"find_state_dict_object: there is no {index.fqn} in the state dict.")
    found = state_dict[index.fqn]
    if index.offset is not None and not isinstance(found, Tensor):
        raise ValueError(
            f"find_state_dict_object: {index.fqn} is a {type(found).__name__}, of which there is "
            f"no part at {tuple(index.offset)}."
        )
    return local_of(found)
