"""A branch as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.compiler import is_recording
from rushlight.utils import _pytree

__all__ = ["cond"]


def cond(
    pred: Tensor | bool | float,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """Returns what one of two functions makes of the operands.

    Args:
        pred: whether it is the first one; a tensor has one element.
        true_fn, false_fn: take the operands.
        operands: tensors, or what holds them.

    Raises:
        RuntimeError: if pred has several elements; in a recording, in make_fx and where vmap makes
            pred differ between samples, if the results of the functions are not alike, or one of
            them writes to an operand.

    Example:
        >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(2),))
        tensor([0., 0.])
    """
    if isinstance(pred, Tensor):
        if pred.numel() != 1:
            raise RuntimeError(
                f"Expected pred to be bool or single-element tensor, but got {pred}."
            )
        if is_recording.get() or _is_traced() or _is_batched(pred):
            return _one_of_both(pred.reshape(()) != 0, true_fn, false_fn, operands)
    return (true_fn if pred else false_fn)(*operands)


def _is_traced() -> bool:
    """Whether make_fx writes down the ops."""
    if not _C._dispatch_modes():
        return False
    from rushlight.fx.experimental.proxy_tensor import get_proxy_mode

    return get_proxy_mode() is not None


def _is_batched(pred: Tensor) -> bool:
    """Whether a tensor stands for the samples of a vmap."""
    while (lift := _C._lift_of(pred)) is not None:
        if lift[0] == "batch":
            return True
        pred = lift[2]
    return False


def _one_of_both(
    pred: Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any],
) -> Any:
    """Runs both functions and returns the elements of one's results."""
    given = _pytree.tensor_leaves(operands)
    versions = [tensor._version for tensor in given]
    (chosen, structure), (other, other_structure) = (
        _pytree.tree_flatten(function(*operands)) for function in (true_fn, false_fn)
    )
    if [tensor._version for tensor in given] != versions:
        raise RuntimeError(
            "cond: a branch writes to an operand. Both branches run here, in a recording or in "
            "vmap, so that they may not. Return the new value instead."
        )
    if structure != other_structure or [*map(_kind, chosen)] != [*map(_kind, other)]:
        raise RuntimeError(
            f"cond: the branches return {[*map(_kind, chosen)]} and {[*map(_kind, other)]}. Where "
            "both run, in a recording or in vmap, their results must be alike."
        )
    results = [
        rl.where(pred, a, b) if isinstance(a, Tensor) else a
        for a, b in zip(chosen, other, strict=True)
    ]
    return _pytree.tree_unflatten(results, structure)


def _kind(result: Any) -> Any:
    """What the results of both branches must have in common."""
    return (tuple(result.shape), result.dtype) if isinstance(result, Tensor) else result
