"""Numbers of unknown value, which are always known here: SymInt, and functions of such numbers."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SymInt:
    """A size that is no one number: that of a ragged dim; other sizes are always known, as int."""

    __slots__ = ()
    _is_symbolic_size = True  # torch.Size takes it


class SymFloat:
    """A float of unknown value in a traced program; there is none here."""


class SymBool:
    """A bool of unknown value in a traced program; there is none here."""


def sym_int(a: float) -> int:
    """Returns a number without its fraction.

    Example:
        >>> torch.sym_int(-2.7)
        -2
    """
    return math.trunc(a)


def sym_float(a: float) -> float:
    """Returns a number as a float."""
    return float(a)


def sym_not(a: bool) -> bool:
    """Returns whether a is not true."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Returns t where b, else f.

    Raises:
        AssertionError: if b is no bool, or t and f are of different types.
    """
    assert isinstance(b, bool), f"expected SymBool or bool, got {type(b)}"
    assert type(t) is type(f), f"type mismatch: {type(t)} vs {type(f)}"
    return t if b else f


def sym_max(a: float, b: float) -> float:
    """Returns the larger of two numbers, a float if one of them is.

    Example:
        >>> torch.sym_max(3, 2.0)
        3.0
    """
    return _same_type(max(a, b), a, b)


def sym_min(a: float, b: float) -> float:
    """Returns the smaller of two numbers, a float if one of them is."""
    return _same_type(min(a, b), a, b)


def _same_type(value: float, *numbers: float) -> float:
    return float(value) if any(isinstance(number, float) for number in numbers) else value


def sym_sqrt(a: float) -> float:
    """Returns the square root of a number."""
    return math.sqrt(a)


def sym_sum(*args: Any) -> Any:
    """Returns the sum of numbers, or of a list of them."""
    return sum(args[0]) if len(args) == 1 and not isinstance(args[0], (int, float)) else sum(args)
