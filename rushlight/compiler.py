"""What programs say to torch.compile, which returns functions and modules as they are."""

from __future__ import annotations

from contextvars import ContextVar

from rushlight import compile as compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = [
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "reset",
]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns the function as it is; called without one, a decorator that does.

    Example:
        >>> @torch.compiler.disable
        ... def twice(x):
        ...     return 2 * x
        >>> twice(3)
        6
    """
    return allow_in_graph if fn is None else fn


_disable_dynamo = disable  # torch._disable_dynamo: the name that optimizers of libraries use


def allow_in_graph(fn: T) -> T:
    """Returns the function as it is."""
    return fn


def is_compiling() -> bool:
    """Returns whether the program is recorded: otherwise ops run as they are called."""
    return is_recording.get()


def is_dynamo_compiling() -> bool:
    """Returns False: ops run as they are called."""
    return False


def is_exporting() -> bool:
    """Returns whether the program is recorded, by torch.export, torch.jit.trace or torch.onnx."""
    return is_recording.get()


is_recording: ContextVar[bool] = ContextVar("is_recording", default=False)


def reset() -> None:
    """Forgets what was compiled, which is nothing."""


def cudagraph_mark_step_begin() -> None:
    """Tells where a step begins, which nothing needs."""
