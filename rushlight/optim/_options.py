"""What the optimizers share: checks of their options, and closures.

Owns no state; the base class is optimizer.py, the step of a whole group _fused.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl
from rushlight import Tensor


def run_closure(closure: Callable[[], Any] | None) -> Any:
    """Runs a step's closure with gradients on and returns the loss; None stays None."""
    if closure is None:
        return None
    with rl.enable_grad():
        return closure()


def _refuse_text(optimizer: str, name: str, value: Any) -> None:
    # Files of options easily hold "1e-3" where a number is meant: YAML reads it as text.
    if isinstance(value, str):
        raise TypeError(f"{optimizer}: {name} must be a number, got {value!r}. Use float({name}).")


def check_at_least_zero(optimizer: str, **values: Any) -> None:
    """Raises ValueError for an option that is negative or NaN."""
    for name, value in values.items():
        _refuse_text(optimizer, name, value)
        if not value >= 0:
            raise ValueError(f"{optimizer}: Invalid {name} value: {value}. It must be at least 0.")


def check_lr(optimizer: str, lr: Any) -> None:
    """Raises ValueError for a learning rate that is negative, NaN or more than one number."""
    _refuse_text(optimizer, "lr", lr)
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(
            f"{optimizer}: Tensor lr must be 1-element, but has shape {tuple(lr.shape)}"
        )
    if not lr >= 0:
        raise ValueError(f"{optimizer}: Invalid learning rate: {lr}. It must be at least 0.")


def check_betas(optimizer: str, betas: Any) -> None:
    """Raises ValueError for the decay of a running mean that is not in [0, 1)."""
    if not isinstance(betas, Iterable):
        raise TypeError(f"{optimizer}: betas must be a tuple of numbers, got {betas!r}.")
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(
                f"{optimizer}: Invalid beta parameter at index {i}: {beta}. "
                "It must be at least 0 and less than 1."
            )


def check_tensor_options(
    optimizer: str, are_numbers: bool | None, lr: Any, betas: tuple[Any, Any]
) -> None:
    """Raises ValueError where options are tensors that PyTorch takes as numbers alone."""
    tensors = [isinstance(option, Tensor) for option in (lr, *betas)]
    if tensors[1] != tensors[2]:
        raise ValueError(f"{optimizer}: betas must be either both floats or both Tensors")
    if are_numbers and any(tensors):
        raise ValueError(
            f"{optimizer}: lr or betas as a Tensor is not supported for capturable=False and "
            "foreach=True"
        )


def check_implementation(
    optimizer: str, foreach: bool | None, fused: bool | None, differentiable: bool
) -> None:
    """Checks PyTorch's choice of implementation.

    There is one implementation here, fused over the whole group, so `foreach` and `fused` change
    nothing; only contradictions are refused.
    """
    if fused and differentiable:
        raise RuntimeError(f"{optimizer}: `fused` does not support `differentiable`")
    if foreach and fused:
        raise RuntimeError(f"{optimizer}: `fused` and `foreach` cannot be `True` together.")


def refuse_scaling(function: str, grad_scale: Any, found_inf: Any) -> None:
    if grad_scale is not None or found_inf is not None:
        raise NotImplementedError(
            f"{function}: grad_scale and found_inf are not supported by the function. Divide the "
            "gradients by the scale before, or use the optimizer's class with a GradScaler."
        )


def check_counts(function: str, state_steps: Iterable[Any]) -> None:
    """Checks that the counts of steps which a function is given are tensors."""
    if not all(isinstance(step, Tensor) for step in state_steps):
        raise RuntimeError(
            f"{function}: API has changed, `state_steps` argument must contain a list of singleton "
            "tensors"
        )
