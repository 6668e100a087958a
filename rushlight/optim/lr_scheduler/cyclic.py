"""Schedules that go up and down: cycles, restarts, and the one-cycle policy.

Owns the curves; when they are computed is scheduler.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from rushlight.optim.lr_scheduler.scheduler import (
    LRScheduler,
    Rate,
    check_optimizer,
    for_groups,
    load_functions,
    set_lr,
    state_of_function,
)
from rushlight.optim.optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """A schedule that moves momentum, or Adam's beta1, against the learning rate."""

    use_beta1: bool

    def _take_momentums(self, optimizer: Optimizer, base: Any, largest: Any, start: bool) -> None:
        """Checks that there is a momentum and writes its bounds to the groups."""
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                f"{type(self).__name__}: optimizer must support momentum or beta1 with "
                "`cycle_momentum` option enabled. Pass cycle_momentum=False."
            )
        self.use_beta1 = "betas" in optimizer.defaults
        if start:
            for group, low, high in zip(optimizer.param_groups, base, largest, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """Learning rates that go up from base_lr to max_lr and down again, over and over.

    The height of cycle c at iteration i is max_lr - base_lr for "triangular", divided by 2**(c - 1)
    for "triangular2", and times gamma**i for "exp_range". Step it after each batch.

    Source: Smith, Cyclical learning rates for training neural networks (2017).

    Args:
        optimizer: whose learning rates are scheduled.
        base_lr: the least rate, or a list of one for each group.
        max_lr: the largest rate, likewise.
        step_size_up: iterations of the way up.
        step_size_down: iterations of the way down; None for as many.
        mode: "triangular", "triangular2" or "exp_range".
        gamma: factor of "exp_range".
        scale_fn: function that replaces the mode: the factor of the height.
        scale_mode: whether scale_fn is of the "cycle" or of the "iterations".
        cycle_momentum: move momentum against the rate.
        base_momentum: the least momentum, or a list of one for each group.
        max_momentum: the largest momentum, likewise.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.5, 1.5, step_size_up=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.5, 1.0, 1.5, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                set_lr(group, lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"CyclicLR: mode is invalid and scale_fn is None: {mode!r}. "
                "It must be 'triangular', 'triangular2' or 'exp_range'."
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
            self._take_momentums(
                optimizer, self.base_momentums, self.max_momentums, last_epoch == -1
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Returns the factor of the height in a cycle, or at an iteration.

        Args:
            x: what scale_mode says: the number of the cycle, from 1, or that of the iteration.
        """
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        ratio = self.step_ratio
        height = place / ratio if place <= ratio else (place - 1) / (ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state; scale_fn has one only if it is an object, not a function."""
        state = super().state_dict()
        state["_scale_fn_custom"] = state_of_function(self._scale_fn_custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state of another scheduler; a scale_fn that is a function stays."""
        others = {name: value for name, value in state_dict.items() if name != "_scale_fn_custom"}
        super().load_state_dict(others)
        load_functions([self._scale_fn_custom], [state_dict["_scale_fn_custom"]])


class CosineAnnealingWarmRestarts(LRScheduler):
    """Learning rates that fall along half a cosine and jump back to the top when they are down.

        lr = eta_min + (base_lr - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2

    with T_cur epochs since the last restart, of T_i until the next; T_i is T_0 first, and
    multiplied by T_mult at each restart. step takes an epoch, which may be a fraction.

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (2017).

    Args:
        optimizer: whose learning rates are scheduled.
        T_0: epochs until the first restart.
        T_mult: factor of the epochs between restarts.
        eta_min: the least rate.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base_lr - self.eta_min) * height for base_lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Sets the learning rates of the next epoch.

        Args:
            epoch: number of epochs so far, for instance epoch + batch / batches.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_by(self.get_lr)

    def _jump(self, epoch: float) -> None:
        """Finds the place of an epoch among the restarts."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            mult = self.T_mult
            restarts = int(math.log(epoch / self.T_0 * (mult - 1) + 1, mult))
            self.T_cur = epoch - self.T_0 * (mult**restarts - 1) / (mult - 1)
            self.T_i = self.T_0 * mult**restarts


class OneCycleLR(_WithMomentum):
    """Learning rates that rise from max_lr / div_factor to max_lr, and fall to almost nothing.

    It falls to max_lr / div_factor / final_div_factor, in one go or, with three_phase, first as it
    rose. Momentum goes the other way. Step it after each batch, total_steps - 1 times at most.

    Source: Smith and Topin, Super-convergence: very fast training of neural networks using large
    learning rates (2018), in the two phases of fast.ai unless three_phase.

    Args:
        optimizer: whose learning rates are scheduled.
        max_lr: the largest rate, or a list of one for each group.
        total_steps: number of all steps; None for epochs * steps_per_epoch.
        epochs: number of epochs.
        steps_per_epoch: steps of each.
        pct_start: share of the steps in which the rates rise.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move momentum against the rate.
        base_momentum: the least momentum, or a list of one for each group.
        max_momentum: the largest momentum, likewise.
        div_factor: largest rate by first rate.
        final_div_factor: first rate by last rate.
        three_phase: fall as it rose, and then further.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, 5, pct_start=0.4)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.04, 1.0, 0.75, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "OneCycleLR: You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            total_steps = _positive("epochs", epochs) * _positive(
                "steps_per_epoch", steps_per_epoch
            )
        self.total_steps = _positive("total_steps", total_steps)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._take_momentums(
                optimizer,
                for_groups("base_momentum", optimizer, base_momentum),
                for_groups("max_momentum", optimizer, max_momentum),
                last_epoch == -1,
            )
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR: Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start, phase = 0.0, self._schedule_phases[0]
        for phase in self._schedule_phases:
            if step <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:
                start = phase["end_step"]
        share = (step - start) / (phase["end_step"] - start)
        result = []
        for group in self.optimizer.param_groups:
            first, last = group[phase["start_lr"]], group[phase["end_lr"]]
            result.append(self._between(first, last, share))
            if self.cycle_momentum:
                first, last = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(first, last, share))
        return result


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(total_steps: int, share: float, three_phase: bool) -> list[dict[str, Any]]:
    """Returns the phases in order: the step at which each ends, and which options it joins."""

    def phase(end_step: float, rates: str, momentums: str) -> dict[str, Any]:
        (start_lr, end_lr), (start, end) = rates.split(), momentums.split()
        return {
            "end_step": end_step,
            "start_lr": f"{start_lr}_lr",
            "end_lr": f"{end_lr}_lr",
            "start_momentum": f"{start}_momentum",
            "end_momentum": f"{end}_momentum",
        }

    rise = phase(float(share * total_steps) - 1, "initial max", "max base")
    if not three_phase:
        return [rise, phase(total_steps - 1, "max min", "base max")]
    return [
        rise,
        phase(float(2 * share * total_steps) - 2, "max initial", "base max"),
        phase(total_steps - 1, "initial min", "max max"),
    ]
