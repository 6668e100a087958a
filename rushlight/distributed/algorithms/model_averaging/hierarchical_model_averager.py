"""Averages of parameters over groups of processes that hold each other, the larger the rarer.

The scheme is hierarchical SGD: Wang et al., arXiv:2010.12998 (2020).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from rushlight import distributed as dist
from rushlight.distributed.algorithms.model_averaging.averagers import ModelAverager
from rushlight.distributed.algorithms.model_averaging.utils import (
    average_parameters_or_parameter_groups,
)
from rushlight.nn import Parameter

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """Averages parameters over small groups of processes often, and over large ones rarely.

    In a step that several periods divide, only the last of them counts: its group holds the others.
    All processes make one, since that makes groups.

    Args:
        period_group_size_dict: sizes of groups by their periods in steps, from the smallest period
            to the largest; the last size is that of process_group.
        warmup_steps: before this step nothing is done, because gradients are averaged.
        process_group: the processes; None for all.

    Raises:
        ValueError: if there are no periods, one is not positive, a size does not divide the number
            of processes, the last one is not that number, or warmup_steps is negative.

    Example:
        >>> import rushlight.distributed as dist
        >>> from rushlight.distributed.algorithms.model_averaging import hierarchical_model_averager
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> model = torch.nn.Linear(2, 1)
        >>> averager = hierarchical_model_averager.HierarchicalModelAverager({4: 1}, 100)
        >>> for _ in range(3):
        ...     # forward, backward, optimizer.step()
        ...     averager.average_parameters(model.parameters())
        >>> averager.step
        3
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        period_group_size_dict: Mapping[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: Any = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        if min(period_group_size_dict) < 1:
            raise ValueError(
                "The minimum period in arg ``period_group_size_dict`` must be a positive value."
            )
        if 1 in period_group_size_dict:
            warnings.warn(
                "HierarchicalModelAverager: period 1 sends as much as averaging gradients does. "
                "Use DistributedDataParallel alone.",
                stacklevel=2,
            )
        world_size = dist.get_world_size(self.process_group)
        *_, last = period_group_size_dict.values()
        if last != world_size:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {last} must be equal to the "
                f"size of arg ``process_group`` {world_size}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.period_process_group_dict = {
            period: self.process_group
            if size == world_size
            else dist.new_subgroups(size, self.process_group)[0]
            for period, size in period_group_size_dict.items()
        }
        self.warmup_steps = warmup_steps

    def average_parameters(self, params: Iterable[Parameter] | Iterable[dict[str, Any]]) -> None:
        """Counts a step, and averages the parameters that have gradients if it is time.

        Args:
            params: the parameters, or the groups of an optimizer.
        """
        due = [
            group
            for period, group in self.period_process_group_dict.items()
            if self.step % period == 0
        ]
        if due and self.step >= self.warmup_steps:
            average_parameters_or_parameter_groups(params, due[-1])
        self.step += 1
