"""Schedules that multiply the learning rate along a fixed curve.

Owns the curves; when they are computed is scheduler.py. get_lr multiplies the rates that are
there, so that schedules can be chained; _get_closed_form_lr computes from the first ones.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.optim.lr_scheduler.scheduler import (
    LRScheduler,
    Rate,
    load_functions,
    rates,
    state_of_function,
)
from rushlight.optim.optimizer import Optimizer

Factor = Callable[[int], float]


class _Chainable(LRScheduler):
    """A schedule of which each step multiplies the rates by a factor for all groups."""

    def _factor(self) -> float:
        """Returns the factor from the last epoch to this one."""
        raise NotImplementedError

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        factor = self._factor()
        return [lr * factor for lr in rates(self.optimizer)]


class _ByFunctions(LRScheduler):
    """A schedule that functions of the epoch define, one for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1
    ) -> None:
        count = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        if len(functions) != count:
            raise ValueError(
                f"{type(self).__name__}: Expected {count} lr_lambdas, but got {len(functions)}. "
                "There must be one for each group."
            )
        for function in functions:
            if not callable(function):
                raise TypeError(
                    f"{type(self).__name__}: lr_lambda should be a function, but got "
                    f"{type(function).__name__}"
                )
        self.lr_lambdas = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state; of lr_lambdas only objects have any, not functions."""
        states = [state_of_function(function) for function in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state of another scheduler; lr_lambdas that are functions stay."""
        others = {name: value for name, value in state_dict.items() if name != "lr_lambdas"}
        super().load_state_dict(others)
        load_functions(self.lr_lambdas, state_dict["lr_lambdas"])


class LambdaLR(_ByFunctions):
    """Learning rates that are the first ones times a function of the epoch.

    Args:
        optimizer: whose learning rates are scheduled.
        lr_lambda: function of the epoch, or a list of one for each group.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base_lr * function(self.last_epoch) for base_lr, function in pairs]


class MultiplicativeLR(_ByFunctions):
    """Learning rates that are multiplied by a function of the epoch after each.

    Args:
        optimizer: whose learning rates are scheduled.
        lr_lambda: function of the epoch, or a list of one for each group.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        last = rates(self.optimizer)
        if self._is_initial:
            return last
        pairs = zip(last, self.lr_lambdas, strict=True)
        return [lr * function(self.last_epoch) for lr, function in pairs]


class StepLR(_Chainable):
    """Learning rates that are multiplied by gamma every step_size epochs.

    Args:
        optimizer: whose learning rates are scheduled.
        step_size: epochs between changes.
        gamma: the factor.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.1, 0.1]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        is_due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self.gamma if is_due else 1.0

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base_lr * factor for base_lr in self.base_lrs]


class MultiStepLR(_Chainable):
    """Learning rates that are multiplied by gamma at each milestone.

    Args:
        optimizer: whose learning rates are scheduled.
        milestones: epochs, as often as their change shall be made.
        gamma: the factor.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3])
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.1, 0.1, 0.01]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones[self.last_epoch]

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base_lr * self.gamma**passed for base_lr in self.base_lrs]


class ConstantLR(_Chainable):
    """Learning rates times a factor for the first total_iters epochs.

    Args:
        optimizer: whose learning rates are scheduled.
        factor: the factor, in [0, 1].
        total_iters: epoch from which on the rates are whole.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(
                "ConstantLR: Constant multiplicative factor expected to be between 0 and 1, but "
                f"got {factor}"
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base_lr * factor for base_lr in self.base_lrs]


class LinearLR(_Chainable):
    """Learning rates times a factor that goes in equal steps from start_factor to end_factor.

    Args:
        optimizer: whose learning rates are scheduled.
        start_factor: the first factor, in (0, 1].
        end_factor: the last factor, in [0, 1].
        total_iters: number of steps between them.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, total_iters=3)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.25, 0.5, 0.75, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "LinearLR: Starting multiplicative factor expected to be greater than 0 and less "
                f"or equal to 1, but got {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                "LinearLR: Ending multiplicative factor expected to be between 0 and 1, but got "
                f"{end_factor}"
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _get_closed_form_lr(self) -> list[Rate]:
        rise = self.end_factor - self.start_factor
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base_lr * (self.start_factor + rise * share) for base_lr in self.base_lrs]


class ExponentialLR(_Chainable):
    """Learning rates that are multiplied by gamma after each epoch.

    Args:
        optimizer: whose learning rates are scheduled.
        gamma: the factor.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base_lr * self.gamma**self.last_epoch for base_lr in self.base_lrs]


class PolynomialLR(_Chainable):
    """Learning rates that fall to 0 as (1 - epoch / total_iters)**power.

    Args:
        optimizer: whose learning rates are scheduled.
        total_iters: epoch at which the rates are 0.
        power: power of the polynomial.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.75, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        left = 1.0 - self.last_epoch / self.total_iters
        return (left / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power

    def _get_closed_form_lr(self) -> list[Rate]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base_lr * left**self.power for base_lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Learning rates that fall along half a cosine, and rise again after T_max epochs.

        lr = eta_min + (base_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (2017),
    without the restarts.

    Args:
        optimizer: whose learning rates are scheduled.
        T_max: epochs from the largest rate to the least.
        eta_min: the least rate.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.75, 0.25, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        last = rates(self.optimizer)
        if self._is_initial:
            return last
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # From the bottom, where the ratio of heights is not defined.
            height = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(last, self.base_lrs, strict=True)
            return [lr + (base_lr - self.eta_min) * height for lr, base_lr in pairs]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [self.eta_min + (lr - self.eta_min) * ratio for lr in last]

    def _get_closed_form_lr(self) -> list[Rate]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base_lr - self.eta_min) * height for base_lr in self.base_lrs]
