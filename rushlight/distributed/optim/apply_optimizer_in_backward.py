"""Optimizers that step in backward, as soon as a gradient is there, and let go of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight import Tensor
from rushlight.nn import Module
from rushlight.optim import Optimizer

__all__ = ["_apply_optimizer_in_backward", "_get_in_backward_optimizers", "put_off"]

# Attributes of parameters, by which programs find the optimizers, their classes and settings.
_OPTIMIZERS = "_in_backward_optimizers"
_CLASSES, _SETTINGS = "_optimizer_classes", "_optimizer_kwargs"
_HOOK = "_steps_in_backward"


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer],
    params: Iterable[Tensor],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Gives each parameter an optimizer that steps in backward, and then sets its grad to None.

    Several calls for a parameter give it several optimizers, which step in this order. The
    gradients of all parameters never exist at the same time.

    Args:
        optimizer_class: of the optimizers, made as optimizer_class([param], **optimizer_kwargs).
        params: leaves that require gradients.
        optimizer_kwargs: the settings.
        register_hook: whether they step by themselves; else _get_in_backward_optimizers gives them.

    Example:
        >>> from rushlight.distributed.optim import _apply_optimizer_in_backward
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> _apply_optimizer_in_backward(torch.optim.SGD, [weight], {"lr": 0.5})
        >>> weight.sum().backward()
        >>> weight.tolist(), weight.grad
        ([0.5, 0.5], None)
    """
    for param in params:
        made = {
            _OPTIMIZERS: optimizer_class([param], **optimizer_kwargs),
            _CLASSES: optimizer_class,
            _SETTINGS: optimizer_kwargs,
        }
        for name, value in made.items():
            vars(param).setdefault(name, []).append(value)
        if register_hook and _HOOK not in vars(param):
            setattr(param, _HOOK, param.register_post_accumulate_grad_hook(step))


def step(param: Tensor) -> None:
    """Lets the optimizers of a parameter step."""
    for optimizer in vars(param)[_OPTIMIZERS]:
        optimizer.step()
    param.grad = None


def put_off(params: Iterable[Tensor]) -> list[Tensor]:
    """Returns those whose optimizers would step in backward, and now wait for `step` to be called.

    What gathers gradients over processes lets them step when that is done.
    """
    found = [param for param in params if _HOOK in vars(param)]
    for param in found:
        vars(param)[_HOOK].remove()
    return found


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """Returns the optimizers that the parameters of a module were given.

    Example:
        >>> from rushlight.distributed import optim
        >>> net = torch.nn.Linear(2, 1)
        >>> optim._apply_optimizer_in_backward(torch.optim.SGD, net.parameters(), {"lr": 0.5})
        >>> [type(optimizer).__name__ for optimizer in optim._get_in_backward_optimizers(net)]
        ['SGD', 'SGD']
    """
    found = (vars(param).get(_OPTIMIZERS, []) for param in module.parameters())
    return [optimizer for optimizers in found for optimizer in optimizers]
