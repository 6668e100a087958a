"""The package functorch, from before torch.func: the same transforms, and modules as functions.

torch.func.functional_call and stack_module_state took the place of what is made here.
"""

from __future__ import annotations

import copy

from rushlight import Tensor, nn
from rushlight.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Tensors = tuple[Tensor, ...]

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def make_functional(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[Callable[..., Any], Tensors]:
    """Returns a function (params, *args, **kwargs) that a module computes, and its parameters.

    Args:
        model: the module, which is copied.
        disable_autograd_tracking: whether the parameters shall not require gradients.

    Raises:
        ValueError: if it has buffers.

    Example:
        >>> from rushlight._functorch.package import make_functional
        >>> function, params = make_functional(torch.nn.Linear(2, 1))
        >>> function([torch.ones(1, 2), torch.ones(1)], torch.ones(2))
        tensor([3.])
    """
    if any(True for _ in model.buffers()):
        raise ValueError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    function, params, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return lambda params, *args, **kwargs: function(params, (), *args, **kwargs), params


def make_functional_with_buffers(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[Callable[..., Any], Tensors, Tensors]:
    """Returns a function (params, buffers, *args, **kwargs), the parameters and the buffers.

    Args:
        model: the module, which is copied.
        disable_autograd_tracking: whether the parameters shall not require gradients.
    """
    own = copy.deepcopy(model)
    if disable_autograd_tracking:
        own.requires_grad_(False)
    params, buffers = dict(own.named_parameters()), dict(own.named_buffers())

    def function(
        new_params: Sequence[Tensor], new_buffers: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        new = [
            dict(zip(params, new_params, strict=True)),
            dict(zip(buffers, new_buffers, strict=True)),
        ]
        return functional_call(own, new, args, kwargs)

    return function, tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[nn.Module],
) -> tuple[Callable[..., Any], Tensors, Tensors]:
    """Returns what make_functional_with_buffers does, with the tensors of all models stacked.

    Args:
        models: of the same class, shapes and training mode.

    Raises:
        RuntimeError: if there are none, or they differ in class or training mode.
    """
    params, buffers = stack_module_state(models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(each.detach() for each in params.values()), tuple(buffers.values())
