"""The marks of TorchScript, which leave functions and modules as they are.

Much code for PyTorch carries them, to be faster there. Here ops run as they are called and there is
no other form of a program, so nothing is traced, saved or loaded: keep a state_dict instead.
"""

from __future__ import annotations

from typing import Final as Final

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
]


class ScriptFunction:
    """What no function is; programs ask isinstance."""


class ScriptModule:
    """What no module is; programs ask isinstance."""


def script(obj: T, *args: Any, **options: Any) -> T:
    """Returns the function or module as it is.

    Example:
        >>> @torch.jit.script
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> twice(torch.ones(2))
        tensor([2., 2.])
    """
    return obj


def script_if_tracing(fn: T) -> T:
    """Returns the function as it is."""
    return fn


def trace(func: T, *args: Any, **options: Any) -> T:
    """Returns the function or module as it is, whatever it was to be traced with."""
    return func


def trace_module(mod: T, *args: Any, **options: Any) -> T:
    """Returns the module as it is, whatever it was to be traced with."""
    return mod


def export(fn: T) -> T:
    """Returns the function as it is."""
    return fn


def unused(fn: T) -> T:
    """Returns the function as it is."""
    return fn


def ignore(drop: bool | Callable[..., Any] = False, **options: Any) -> Any:
    """Returns the function as it is; called without one, a decorator that does.

    Example:
        >>> @torch.jit.ignore(drop=True)
        ... def shown(x):
        ...     return str(x)
        >>> shown(3)
        '3'
    """
    return drop if callable(drop) else unused


def _overload_method(fn: T) -> T:
    """Returns the method as it is; the declaration of another form of it comes to nothing."""
    return fn


def annotate(the_type: Any, the_value: T) -> T:
    """Returns the value; the type is for readers."""
    return the_value


def is_scripting() -> bool:
    """Returns False: nothing is compiled."""
    return False


def is_tracing() -> bool:
    """Returns False: nothing is traced."""
    return False
