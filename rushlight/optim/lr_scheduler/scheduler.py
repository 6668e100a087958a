"""The base class of learning-rate schedulers.

Owns when a scheduler computes and writes learning rates; the schedules are in the files beside it.
Invariant: all attributes but the optimizer are the state, under PyTorch's names.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import Tensor
from rushlight.optim.optimizer import Optimizer

Rate = float | Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)
_ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
    "opposite order: `optimizer.step()` before `lr_scheduler.step()`. Otherwise the first value of "
    "the learning rate schedule is skipped."
)
_GET_LR_WARNING = (
    "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
)


class LRScheduler:
    """Base class of schedulers: changes the learning rates of an optimizer after each epoch.

    A subclass defines get_lr, and may define _get_closed_form_lr, which computes the rates of
    self.last_epoch from self.base_lrs alone.

    Args:
        optimizer: whose groups' "lr" is changed.
        last_epoch: the epoch before the next one; -1 starts afresh.

    Raises:
        KeyError: last_epoch is not -1, and a group has no "initial_lr".

    Example:
        >>> class Halving(torch.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = Halving(optimizer)
        >>> optimizer.step(); scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _step_count: int
    _last_lr: list[Rate]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: param 'initial_lr' is not specified in "
                    f"param_groups[{i}] when resuming scheduler with last_epoch {last_epoch}. "
                    "Load the optimizer's state first, or start with last_epoch=-1."
                )
        self.base_lrs: list[Rate] = rates(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        if optimizer._opt_called is None:
            optimizer._opt_called = False
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the scheduler: everything but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state of another scheduler.

        Args:
            state_dict: what state_dict returned, here or in PyTorch.
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """Returns the learning rates that the last step set, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Computes the learning rates of self.last_epoch; every schedule defines it.

        Returns:
            One learning rate for each group.
        """
        raise NotImplementedError(f"{type(self).__name__} must define get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates of the next epoch.

        Args:
            epoch: deprecated; the epoch whose rates to set, by the closed form if there is one.
        """
        if self._step_count == 1 and self.optimizer._opt_called is False:
            warnings.warn(_ORDER_WARNING, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = getattr(self, "_get_closed_form_lr", None)
        self._set_by(self.get_lr if epoch is None or closed_form is None else closed_form)

    def _set_by(self, compute: Callable[[], list[Rate]]) -> None:
        """Sets the learning rates that a method of this scheduler returns."""
        self._get_lr_called_within_step = True
        try:
            values = compute()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_lr(group, value)
        self._last_lr = rates(self.optimizer)

    def _warn_outside_step(self) -> None:
        """Warns when get_lr is called by others than step: it may compute from the last rates."""
        if not self._get_lr_called_within_step:
            warnings.warn(_GET_LR_WARNING, UserWarning, stacklevel=3)


def warn_of_epoch() -> None:
    """Warns of a step that is given its epoch."""
    warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=3)


def check_optimizer(optimizer: Any) -> None:
    """Raises TypeError for what is not an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(value: Any) -> Any:
    """Returns the value, copied if it is a tensor, which steps change in place."""
    return value.clone() if isinstance(value, Tensor) else value


def rates(optimizer: Optimizer, name: str = "lr") -> list[Any]:
    """Returns an option of all groups."""
    return [copied(group[name]) for group in optimizer.param_groups]


def set_lr(group: dict[str, Any], lr: Any) -> None:
    """Sets the rate of a group; one that is a tensor stays that tensor."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(lr))
    else:
        group["lr"] = lr


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Returns a value for each group, from one for all or from a list of them.

    Raises:
        ValueError: there are more or fewer values than groups.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        value = [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {count}."
        )
    return [copied(each) for each in value]


def state_of_function(function: Any) -> dict[str, Any] | None:
    """Returns the attributes of a callable object, which are its state; None for a function."""
    if function is None or isinstance(function, types.FunctionType):
        return None
    return dict(function.__dict__)


def load_functions(functions: Iterable[Any], states: Iterable[dict[str, Any] | None]) -> None:
    """Gives callable objects their state back."""
    for function, state in zip(functions, states, strict=True):
        if state is not None:
            function.__dict__.update(state)
