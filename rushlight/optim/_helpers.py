"""What optimizers of other libraries import from torch.optim.optimizer beside the base class.

Rushlight's own need none of it: their steps take tensors of any kind, and are one pass each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.utils._foreach_utils import (
    _foreach_supported_types,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)

__all__ = [
    "DeviceDict",
    "DeviceDtypeDict",
    "StateDict",
    "_capturable_doc",
    "_default_to_fused_or_foreach",
    "_device_dtype_check_for_fused",
    "_differentiable_doc",
    "_disable_dynamo_if_unsupported",
    "_foreach_doc",
    "_fused_doc",
    "_get_capturable_supported_devices",
    "_get_scalar_dtype",
    "_get_value",
    "_maximize_doc",
    "_params_doc",
    "_stack_if_compiling",
    "_to_scalar",
    "_use_grad_for_differentiable",
    "_view_as_real",
]

StateDict = dict[str, Any]
DeviceDict = dict[rl.device | None, Tensor]
DeviceDtypeDict = dict[tuple[rl.device, rl.dtype] | None, Tensor]

# Texts that optimizers put into their docstrings, as items of the list of arguments.
_params_doc = """params (iterable): the parameters, (name, parameter) pairs, or dicts of groups."""
_foreach_doc = """foreach (bool, optional): whether a step works on lists of tensors. By default it
            does on GPUs."""
_fused_doc = """fused (bool, optional): whether a step is one pass over memory."""
_capturable_doc = """capturable (bool, optional): whether steps can be part of a CUDA graph
            (default: False)."""
_differentiable_doc = """differentiable (bool, optional): whether autograd records the steps
            (default: False)."""
_maximize_doc = """maximize (bool, optional): whether to go up instead of down (default: False)."""


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method of an optimizer that is recorded only if that is differentiable."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with rl.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that changes nothing: torch.compile runs every step here."""
    return lambda function: function


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Returns whether a fused step is to be taken, and whether one on lists of tensors."""

    def are_on(kinds: list[str], param: Tensor | None) -> bool:
        return param is None or (
            type(param) in _foreach_supported_types and param.device.type in kinds
        )

    if differentiable:
        return False, False
    kinds = _get_fused_kernels_supported_devices()
    fused = use_fused and all(
        are_on(kinds, p) and (p is None or p.is_floating_point()) for p in params
    )
    kinds = _get_foreach_kernels_supported_devices()
    return fused, not fused and all(are_on(kinds, p) for p in params)


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Raises RuntimeError for a parameter that fused steps do not take."""
    kinds = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        kinds.remove("cuda")
    if p.device.type not in kinds or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported "
            f"devices: {kinds} but {p.dtype} and {p.device.type}"
        )


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Returns the kinds of devices that have graphs."""
    return ["cuda"]


def _get_scalar_dtype(is_fused: bool | None = None) -> rl.dtype:
    """Returns the dtype of the count of steps."""
    is_double = not is_fused and rl.get_default_dtype() == rl.float64
    return rl.float64 if is_double else rl.float32


def _get_value(x: Any) -> Any:
    """Returns a tensor of one element as a number."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """Returns x: programs run as they are under torch.compile."""
    return x


def _to_scalar(x: Any) -> Any:
    """Returns a tensor of one element with no dims, anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replaces, in lists, complex parameters and what belongs to them by views as real pairs."""
    for i, param in enumerate(params):
        if param.is_complex():
            for each in (params, *state_and_grads):
                each[i] = rl.view_as_real(each[i])
