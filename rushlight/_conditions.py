"""Conditions that a program states, and the errors where they do not hold: torch._check and kin."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@overridable
def _assert(condition: Any, message: str) -> None:
    """Fails with a message unless a condition holds; a step of a graph where it is traced."""
    if not condition:
        raise AssertionError(message)


def _assert_async(
    input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value"
) -> None:
    """Fails unless a tensor's one element is true; a GPU is waited for."""
    if not input.item():
        raise RuntimeError(assert_msg)


def _check_with(
    error_type: type[Exception],
    cond: bool,
    message: Callable[[], object] | None = None,
) -> None:
    """Raises an error of this type unless a condition holds.

    Args:
        error_type: a class.
        cond: a bool; for a tensor there is _check_tensor_all.
        message: gives the text of the error.

    Raises:
        TypeError: if cond is no bool, or message cannot be called.
    """
    if not isinstance(cond, bool):
        raise TypeError(
            f"cond must be a bool, but got {type(cond)}. For a tensor use _check_tensor_all."
        )
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a RuntimeError unless a condition holds.

    Args:
        cond: a bool.
        message: gives the text of the error.

    Example:
        >>> torch._check(2 > 1, lambda: "what a compiler may rely on")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises an IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raises a NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(
    i: int, message: Callable[[], object] | None = None, *, max: int | None = None
) -> None:
    """Raises a RuntimeError unless a number may be a size, and at most `max`."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], object] | None = None
) -> None:
    """Raises an error of this type unless all elements are True.

    Args:
        error_type: a class.
        cond: a tensor of bool; a GPU is waited for.
        message: gives the text of the error.

    Raises:
        TypeError: if cond is no such tensor.
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != rl.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], object] | None = None) -> None:
    """Raises a RuntimeError unless all elements are True; see _check_tensor_all_with."""
    _check_tensor_all_with(RuntimeError, cond, message)
