"""Marks of TorchScript that copies of PyTorch's own code import; they leave things as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rushlight.futures import Future
from rushlight.jit import Final, export, ignore, is_scripting, unused
from rushlight.jit.annotations import Any, List, Optional, Tuple, Union

T = TypeVar("T")

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final", "Future",
    "List", "Optional", "Tuple", "Union", "boolean_dispatch", "export", "ignore", "is_scripting",
    "unused",
]  # fmt: skip

# Annotations of sizes: a number stands for a list of that length.
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = List


def _unchanged(marked: T) -> T:
    return marked


_copy_to_script_wrapper = _overload = _overload_method = _unchanged


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """Returns a function that calls one of two, as an argument says.

    Args:
        arg_name: the name of the argument.
        arg_index: its position.
        default: what it is where it is not given.
        if_true: called where it is true, with all arguments.
        if_false: called where it is false.
        module_name: the function's module, or None.
        func_name: the function's name, or None.
    """

    def choose(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if given else if_false)(*args, **kwargs)

    choose.__doc__ = if_false.__doc__ or if_true.__doc__
    choose.__module__, choose.__name__ = module_name or __name__, func_name or choose.__name__
    return choose
