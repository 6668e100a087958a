"""Averages of a model's parameters: stochastic weight averaging and exponential moving averages.

Owns the averages, and the schedule that goes with the former.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import Module
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.optim.lr_scheduler.scheduler import LRScheduler, Rate, for_groups
from rushlight.optim.optimizer import Optimizer
from rushlight.utils._foreach_utils import (  # libraries take it from here
    _group_tensors_by_device_and_dtype as _group_tensors_by_device_and_dtype,
)

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Tensor | int], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Tensor | int], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Returns the function that moves an average towards a parameter: decay * a + (1 - decay) * p.

    Args:
        decay: share of the average that stays, in [0, 1].
    Returns:
        A function of (average, parameter, count) for AveragedModel.
    Example:
        >>> move = torch.optim.swa_utils.get_ema_avg_fn(0.75)
        >>> move(torch.tensor(0.0), torch.tensor(4.0), 1).item()
        1.0
    """
    _check_decay(decay)

    @rl.no_grad()
    def move(average: Tensor, param: Tensor, count: Tensor | int) -> Tensor:
        return decay * average + (1 - decay) * param

    return move


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Returns the function that moves averages in place: decay * a + (1 - decay) * p.

    Args:
        decay: share of the averages that stays, in [0, 1].
    Returns:
        A function of (averages, parameters, count) for AveragedModel.
    Example:
        >>> averages = [torch.tensor(0.0)]
        >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [torch.tensor(4.0)], 1)
        >>> averages[0].item()
        1.0
    """
    return _in_place(get_ema_avg_fn(decay), lambda count: 1 - decay)


def get_swa_avg_fn() -> Average:
    """Returns the function that adds a parameter to the mean of `count` earlier ones.

    Returns:
        A function of (average, parameter, count) for AveragedModel.
    Example:
        >>> move = torch.optim.swa_utils.get_swa_avg_fn()
        >>> move(torch.tensor(0.0), torch.tensor(4.0), 1).item()
        2.0
    """

    @rl.no_grad()
    def move(average: Tensor, param: Tensor, count: Tensor | int) -> Tensor:
        return average + (param - average) / (count + 1)

    return move


def get_swa_multi_avg_fn() -> Averages:
    """Returns the function that adds parameters to the means of `count` earlier ones, in place.

    Returns:
        A function of (averages, parameters, count) for AveragedModel.
    Example:
        >>> averages = [torch.tensor(0.0)]
        >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(averages, [torch.tensor(4.0)], 1)
        >>> averages[0].item()
        2.0
    """
    return _in_place(get_swa_avg_fn(), lambda count: 1 / (int(count) + 1))


def _in_place(move: Average, weight: Callable[[Any], float]) -> Averages:
    @rl.no_grad()
    def move_all(averages: list[Tensor], params: list[Tensor], count: Tensor | int) -> None:
        share = weight(count)
        for average, param in zip(averages, params, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(param, share)
            else:
                average.copy_(move(average, param, count))

    return move_all


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over time.

    The first update_parameters copies; later ones average, by default with equal weights.

    Source: Izmailov et al., Averaging weights leads to wider optima and better generalization
    (2018); exponential moving averages: Polyak and Juditsky (1992).

    Args:
        model: the model to average.
        device: where the averages live; None for where the model is.
        avg_fn: function of (average, parameter, count) that returns the new average.
        multi_avg_fn: function of (averages, parameters, count) that changes the averages.
        use_buffers: average buffers too; otherwise they are copied.

    Example:
        >>> model = torch.nn.Linear(1, 1)
        >>> averaged = torch.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = model.weight.data.fill_(value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.item()
        3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: int | str | rl.device | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError(
                "AveragedModel: Only one of avg_fn and multi_avg_fn should be provided"
            )
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", rl.tensor(0, dtype=rl.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the averaged model makes of its arguments."""
        return self.module(*args, **kwargs)

    @rl.no_grad()
    def update_parameters(self, model: Module) -> None:
        """Adds the parameters of the model to the averages.

        Args:
            model: the model that was copied, or one with the same parameters.
        """
        averages, params = list(self._averaged(self.module)), list(self._averaged(model))
        params = [param.to(average.device) for average, param in zip(averages, params, strict=True)]
        if self.n_averaged == 0:
            for average, param in zip(averages, params, strict=True):
                average.copy_(param)
        elif self.avg_fn is not None:
            for average, param in zip(averages, params, strict=True):
                average.copy_(self.avg_fn(average, param, self.n_averaged.to(average.device)))
        else:
            self._move_alike(averages, params, self.multi_avg_fn or get_swa_multi_avg_fn())
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.copy_(other)
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        if self.use_buffers:
            tensors = itertools.chain(model.parameters(), model.buffers())
        else:
            tensors = model.parameters()
        return (tensor.detach() for tensor in tensors)

    def _move_alike(self, averages: list[Tensor], params: list[Tensor], move: Averages) -> None:
        """Calls the function once for the tensors of each device and dtype."""
        alike: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for average, param in zip(averages, params, strict=True):
            lists = alike.setdefault((average.device, average.dtype), ([], []))
            lists[0].append(average)
            lists[1].append(param)
        for (device, _), lists in alike.items():
            move(*lists, self.n_averaged.to(device))


@rl.no_grad()
def update_bn(
    loader: Iterable[Any], model: Module, device: int | str | rl.device | None = None
) -> None:
    """Computes the running means and variances of all BatchNorm layers anew, in one pass over data.

    Args:
        loader: batches: tensors, or lists and tuples whose first element is one.
        model: the model, for instance an AveragedModel, whose own statistics mean nothing.
        device: where the batches are moved; None leaves them.
    Example:
        >>> model = torch.nn.BatchNorm1d(1)
        >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], model)
        >>> model.running_mean.item(), model.running_var.item()
        (2.0, 2.0)
    """
    momentums = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momentums[module] = module.momentum
    if not momentums:
        return
    was_training = model.training
    model.train()
    for module in momentums:
        module.momentum = None  # a plain mean of all batches
    for batch in loader:
        batch = batch[0] if isinstance(batch, list | tuple) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in momentums.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Learning rates that go to swa_lr within anneal_epochs and stay there.

    Source: Izmailov et al., Averaging weights leads to wider optima and better generalization
    (2018).

    Args:
        optimizer: whose learning rates are scheduled.
        swa_lr: the final rate, or a list of one for each group.
        anneal_epochs: epochs until it is reached.
        anneal_strategy: along "cos" or "linear".
        last_epoch: the epoch before the next one; -1 starts afresh.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
        >>> rates = []
        >>> for _ in range(4):
        ...     rates.append(scheduler.get_last_lr()[0])
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, lr in zip(
            optimizer.param_groups, for_groups("swa_lr", optimizer, swa_lr), strict=True
        ):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way to swa_lr is done."""
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * share)) / 2 if self._anneal_strategy == "cos" else share

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        result = []
        for group in self.optimizer.param_groups:
            last, final = group["lr"], group["swa_lr"]
            # Where the rate started, as it follows from the last one.
            first = final if before == 1 else (last - before * final) / (1 - before)
            result.append(final * now + first * (1 - now))
        return result
