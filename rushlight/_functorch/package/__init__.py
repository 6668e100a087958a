"""The package functorch, from before torch.func: the same transforms, and modules as functions.

torch.func.functional_call and stack_module_state took the place of what is made here.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

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
from rushlight.fx.experimental.proxy_tensor import make_fx

Tensors = tuple[Tensor, ...]

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
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
    "make_fx",
    "vjp",
    "vmap",
]


class FunctionalModuleWithBuffers(nn.Module):
    """A module as a function of its parameters, its buffers and what it is called with."""

    stateless_model: nn.Module

    def __init__(self, stateless_model: nn.Module) -> None:
        super().__init__()
        # An attribute and no child: the parameters are arguments, and not of this module.
        self.__dict__["stateless_model"] = stateless_model

    @classmethod
    def _create_from(
        cls, model: nn.Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
        own = copy.deepcopy(model)
        if disable_autograd_tracking:
            own.requires_grad_(False)
        return cls(own), tuple(own.parameters()), tuple(own.buffers())

    def forward(
        self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        """Calls the module with these parameters and buffers, in the order of its own."""
        model = self.stateless_model
        new = [
            dict(zip(dict(model.named_parameters()), params, strict=True)),
            dict(zip(dict(model.named_buffers()), buffers, strict=True)),
        ]
        return functional_call(model, new, args, kwargs)


class FunctionalModule(nn.Module):
    """A module without buffers as a function of its parameters and what it is called with."""

    def __init__(self, function: FunctionalModuleWithBuffers) -> None:
        super().__init__()
        self.function = function

    @classmethod
    def _create_from(
        cls, model: nn.Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModule, Tensors]:
        function, params, _ = FunctionalModuleWithBuffers._create_from(
            model, disable_autograd_tracking
        )
        return cls(function), params

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Calls the module with these parameters, in the order of its own."""
        return self.function(params, (), *args, **kwargs)


def make_functional(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, Tensors]:
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
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """Returns a function (params, buffers, *args, **kwargs), the parameters and the buffers.

    Args:
        model: the module, which is copied.
        disable_autograd_tracking: whether the parameters shall not require gradients.
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[nn.Module],
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """Returns what make_functional_with_buffers does, with the tensors of all models stacked.

    Args:
        models: of the same class, shapes and training mode.

    Raises:
        RuntimeError: if there are none, or they differ in class or training mode.
    """
    params, buffers = stack_module_state(models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(each.detach() for each in params.values()), tuple(buffers.values())
