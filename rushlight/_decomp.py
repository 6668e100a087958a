"""Forms of ops in terms of others, for compilers and graphs; ops run and are noted as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["core_aten_decompositions", "get_decompositions", "register_decomposition"]


def core_aten_decompositions() -> dict[Any, Callable[..., Any]]:
    """Returns a new table without entries, which make_fx and others take with those put into it."""
    return {}


def get_decompositions(
    aten_ops: Iterable[Any], type: str = "post_autograd"
) -> dict[Any, Callable[..., Any]]:
    """Returns a new table without entries.

    Args:
        aten_ops: the ops whose forms are wanted.
        type: which forms.

    Example:
        >>> from rushlight._decomp import get_decompositions
        >>> get_decompositions([torch.ops.aten.silu])
        {}
    """
    return core_aten_decompositions()


def register_decomposition(
    aten_op: Any, registry: Any = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[F], F]:
    """Makes a decorator that returns the function as it is: ops run in their own form.

    Args:
        aten_op: the ops that the function is a form of.
        registry: accepted for PyTorch's sake, like type and unsafe.
    """
    return lambda form: form
