"""The step that leaves each process its part."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.callable import length_of

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Who divides a pipe, in the order in which the parts are divided again."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th item, where n processes read the pipe; a loader with workers says so.

    Args:
        source_datapipe: the pipe that is read.
        sharding_group_filter: the only group that counts; None for all.
    """

    def __init__(self, source_datapipe: Any, sharding_group_filter: int | None = None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: int = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Says how many parts there are, and which one this is.

        Args:
            num_of_instances: how many there are.
            instance_id: the number of this one.
            sharding_group: who divides; each group divides the parts of those of lower numbers.

        Raises:
            RuntimeError: if DEFAULT and another group divide the same pipe.
        """
        if not 0 <= instance_id < num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than "
                f"num_of_instances({num_of_instances})"
            )
        others = self.groups.keys() - {sharding_group}
        if others and SHARDING_PRIORITIES.DEFAULT in (sharding_group, *others):
            raise RuntimeError("The DEFAULT group cannot divide a pipe together with other groups.")
        self.groups[sharding_group] = num_of_instances, instance_id
        self.num_of_instances, self.instance_id = 1, 0
        for group, (count, place) in sorted(self.groups.items()):
            if self.sharding_group_filter in (None, group):
                self.instance_id += self.num_of_instances * place
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self.source_datapipe, self.instance_id, None, self.num_of_instances)

    def __len__(self) -> int:
        count = length_of(self, self.source_datapipe)
        return len(range(self.instance_id, count, self.num_of_instances))
