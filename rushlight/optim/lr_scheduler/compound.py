"""Schedules made of other schedules, and the one that follows a measured quantity.

Owns their order and state; the schedules themselves are in the files beside it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Literal, SupportsFloat

from rushlight.optim.lr_scheduler.scheduler import (
    LRScheduler,
    check_optimizer,
    rates,
    set_lr,
    warn_of_epoch,
)
from rushlight.optim.optimizer import Optimizer


class _Compound(LRScheduler):
    """A scheduler that runs others on one optimizer."""

    _schedulers: Sequence[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    f"additional kwargs to be specified when calling `step`, but got one at index "
                    f"{i} in the given schedulers sequence."
                )
            optimizer = optimizer or scheduler.optimizer
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {i} has another one."
                )
        assert optimizer is not None
        self._schedulers, self.optimizer = schedulers, optimizer

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, with that of the schedulers."""
        states = [scheduler.state_dict() for scheduler in self._schedulers]
        return {**super().state_dict(), "_schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state of another scheduler made of the same ones.

        Args:
            state_dict: what state_dict returned, here or in PyTorch.
        """
        others = {name: value for name, value in state_dict.items() if name != "_schedulers"}
        super().load_state_dict(others)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Compound):
    """Schedules one after the other: each begins at its milestone as if training began there.

    Args:
        optimizer: whose learning rates are scheduled.
        schedulers: schedulers of that optimizer.
        milestones: epochs at which the second, the third, ... begins.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Raises:
        ValueError: there is not one milestone less than schedulers, or they have other optimizers.

    Example:
        >>> from rushlight.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> parts = [ConstantLR(optimizer, 0.1, total_iters=2), ExponentialLR(optimizer, 0.5)]
        >>> scheduler = SequentialLR(optimizer, parts, milestones=[2])
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Each of them has taken its first step; take it back, and let the one that is due do it.
        for group in optimizer.param_groups:
            set_lr(group, group["initial_lr"])
        _undo_first_step(self)
        first = schedulers[bisect_right(milestones, 0)]
        called, optimizer._opt_called = optimizer._opt_called, None  # none has been missed yet
        first._initial_step()
        optimizer._opt_called = called
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sets the learning rates of the next epoch, by the schedule that is due."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo_first_step(scheduler: LRScheduler) -> None:
    if isinstance(scheduler, _Compound):
        for part in scheduler._schedulers:
            _undo_first_step(part)
    else:
        scheduler.last_epoch -= 1


class ChainedScheduler(_Compound):
    """Schedules at the same time: each changes the rates that the one before it has set.

    Args:
        schedulers: schedulers of one optimizer.
        optimizer: that optimizer; None for the one of the schedulers.

    Raises:
        ValueError: the schedulers have several optimizers.

    Example:
        >>> from rushlight.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> parts = [ConstantLR(optimizer, 0.1, total_iters=2), ExponentialLR(optimizer, 0.5)]
        >>> scheduler = ChainedScheduler(parts)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.1, 0.05, 0.25, 0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = rates(self.optimizer)

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sets the learning rates of the next epoch, by all schedules in turn."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates(self.optimizer)


class ReduceLROnPlateau(LRScheduler):
    """Learning rates that are multiplied by a factor when a quantity has stopped to improve.

    Args:
        optimizer: whose learning rates are scheduled.
        mode: whether the quantity shall become small, "min", or large, "max".
        factor: what the rates are multiplied by; less than 1.
        patience: how many epochs without improvement are forgiven.
        threshold: by how much a value must be better than the best one.
        threshold_mode: whether that is relative to the best value, "rel", or a difference, "abs".
        cooldown: epochs after a change that count nothing.
        min_lr: least rate, or a list of one for each group.
        eps: a change of the rate by less is not made.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> rates = []
        >>> for loss in (3.0, 2.0, 2.0, 2.0, 1.0):
        ...     optimizer.step()
        ...     scheduler.step(loss)
        ...     rates.append(scheduler.get_last_lr()[0])
        >>> rates
        [1.0, 1.0, 1.0, 0.1, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: Factor should be < 1.0, but is {factor}")
        check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode {mode} is unknown! It is 'min' or 'max'.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: threshold mode {threshold_mode} is unknown! It is 'rel' or "
                "'abs'."
            )
        self.factor = factor
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if isinstance(min_lr, list | tuple):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = rates(optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, metrics: SupportsFloat, epoch: int | None = None
    ) -> None:
        """Takes note of the quantity after an epoch, and reduces the rates if it is time.

        Args:
            metrics: the quantity, such as the loss on the validation set.
            epoch: deprecated; the number of the epoch.
        """
        current = float(metrics)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = rates(self.optimizer)

    @property
    def in_cooldown(self) -> bool:
        """Whether the last change is so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def _reduce_lr(self, epoch: int) -> None:
        del epoch  # for programs that replace this method
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: The number of param groups in the `optimizer` "
                    f"({len(groups)}) differs from when `ReduceLROnPlateau` was initialized "
                    f"({len(self.min_lrs)}). Set `min_lrs` to one value for each group."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_lr(group, new)

    def _is_better(self, value: float, best: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            return sign * value > sign * best * (1.0 + sign * self.threshold)
        return sign * value > sign * best + self.threshold
