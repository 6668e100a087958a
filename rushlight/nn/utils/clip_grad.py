"""Limits for gradients, in place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

import rushlight as rl
from rushlight import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    return [tensor.grad for tensor in tensors if tensor.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Returns the norm of all elements of some tensors, as if they were one vector.

    Args:
        tensors: one or more tensors.
        norm_type: order of the norm; inf, or "inf", for the largest magnitude.
        error_if_nonfinite: whether a norm that is nan or inf is an error.
        foreach: no effect; there is one implementation.

    Returns:
        A tensor of shape ().

    Raises:
        RuntimeError: with error_if_nonfinite, if the norm is not finite.

    Example:
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])]).item()
        5.0
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return rl.tensor(0.0)
    with rl.no_grad():
        norms = rl._foreach_norm(tensors, norm_type)
        device = norms[0].device
        if any(norm.device != device for norm in norms):
            norms = [norm.to(device) for norm in norms]
        total = rl.stack(norms).norm(norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. Pass error_if_nonfinite=False to scale by it anyway."
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales gradients by max_norm / total_norm where that is below 1.

    Args:
        parameters: tensors whose gradients to scale.
        max_norm: largest norm allowed.
        total_norm: their norm, as get_total_norm returns it.
        foreach: no effect; there is one implementation.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grads_with_norm_(w, 10.0, torch.tensor(5.0))
        >>> w.grad.tolist()
        [3.0, 4.0]
    """
    _scale(_gradients(parameters), max_norm, total_norm)


def _scale(gradients: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    # 1e-6 keeps gradients of norm 0 finite.
    factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    # Where asking costs no wait, gradients that are small enough are not even read.
    is_read = factor.device.type == "cpu" and not rl._C._is_wrapper(factor)
    if is_read and factor.item() == 1:
        return
    with rl.no_grad():
        for grad in gradients:
            if grad.device != factor.device:
                factor = factor.to(grad.device)
            grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients so that their norm, taken together, is at most max_norm.

    Args:
        parameters: tensors whose gradients to scale (Pascanu et al. 2013, algorithm 1).
        max_norm: largest norm allowed.
        norm_type: order of the norm; inf, or "inf", for the largest magnitude.
        error_if_nonfinite: whether a norm that is nan or inf is an error.
        foreach: no effect; there is one implementation.

    Returns:
        The norm before scaling.

    Raises:
        RuntimeError: with error_if_nonfinite, if the norm is not finite.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([30.0, 40.0])
        >>> torch.nn.utils.clip_grad_norm_(w, max_norm=5.0).item()
        50.0
        >>> round(w.grad.norm().item(), 3)
        5.0
    """
    gradients = _gradients(parameters)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    _scale(gradients, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Does what clip_grad_norm_ does, under its old name."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limits every element of the gradients to [-clip_value, clip_value].

    Args:
        parameters: tensors whose gradients to limit.
        clip_value: largest magnitude allowed.
        foreach: no effect; there is one implementation.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([-3.0, 0.5])
        >>> torch.nn.utils.clip_grad_value_(w, 1.0)
        >>> w.grad.tolist()
        [-1.0, 0.5]
    """
    with rl.no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-clip_value, clip_value)
