"""When parameters are averaged over processes, and how."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from rushlight.distributed.algorithms.model_averaging.utils import (
    average_parameters_or_parameter_groups,
)
from rushlight.distributed.groups import default_group
from rushlight.nn import Parameter

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters over processes in some of the steps of a training.

    Args:
        process_group: the processes; None for all.
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = default_group() if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Called after each step of the optimizer."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every so many steps.

    Args:
        period: how many steps.
        warmup_steps: before this step nothing is done, because gradients are averaged.
        process_group: the processes; None for all.

    Raises:
        ValueError: if period is not positive, or warmup_steps negative.

    Example:
        >>> import rushlight.distributed as dist
        >>> from rushlight.distributed.algorithms.model_averaging import averagers
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> model = torch.nn.Linear(2, 1)
        >>> averager = averagers.PeriodicModelAverager(period=4, warmup_steps=100)
        >>> for _ in range(3):
        ...     # forward, backward, optimizer.step()
        ...     averager.average_parameters(model.parameters())
        >>> averager.step
        3
        >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "PeriodicModelAverager: period 1 sends as much as averaging gradients does. Use "
                "DistributedDataParallel alone.",
                stacklevel=2,
            )
        self.period = period
        self.warmup_steps = warmup_steps

    def average_parameters(self, params: Iterable[Parameter] | Iterable[dict[str, Any]]) -> None:
        """Counts a step, and averages the parameters that have gradients if it is time.

        Args:
            params: the parameters, or the groups of an optimizer.
        """
        passed = self.step - self.warmup_steps
        if passed >= 0 and passed % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
