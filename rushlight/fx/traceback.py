"""What tracers note in the meta of the nodes that they make: marks of the program, and where from.

Nothing is noted outside of preserve_node_meta.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from rushlight.fx.node import Node

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

# What is handed on to nodes; the rest, such as shapes, is of one node alone.
_HANDED_ON = (
    "nn_module_stack",
    "stack_trace",
    "torch_fn",
    "source_fn_stack",
    "original_aten",
    "recompute",
    "ac_graph_id",
    "has_backward_hook",
    "from_node",
    "quantization_tag",
    "custom",
    "partitioner_tag",
)

current_meta: dict[str, Any] = {}
_is_preserving = False


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Lets tracers note what is current in the nodes that they make, for a block.

    Args:
        enable: False changes nothing.

    Example:
        >>> from rushlight import fx
        >>> from rushlight.fx.traceback import annotate, preserve_node_meta
        >>> def program(x):
        ...     with annotate({"stage": 1}):
        ...         return x.sin()
        >>> with preserve_node_meta():
        ...     graph = fx.symbolic_trace(program).graph
        >>> graph.find_nodes(op="call_method", target="sin")[0].meta["custom"]
        {'stage': 1}
    """
    global _is_preserving, current_meta
    before = _is_preserving, current_meta
    _is_preserving = _is_preserving or enable
    current_meta = dict(current_meta)
    try:
        yield
    finally:
        _is_preserving, current_meta = before


def has_preserved_node_meta() -> bool:
    """Returns whether preserve_node_meta is on."""
    return _is_preserving


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Marks the nodes that a block makes: meta["custom"] has what is given here and around.

    Args:
        annotation_dict: marks by name.
    """
    global current_meta
    before = current_meta
    marks = {**before.get("custom", {}), **annotation_dict}
    current_meta = {**before, "custom": marks}
    try:
        yield
    finally:
        current_meta = before


def annotate_fn(
    annotation_dict: dict[str, Any],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that runs a function inside annotate.

    Args:
        annotation_dict: marks by name.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def marked(*args: P.args, **kwargs: P.kwargs) -> R:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return marked

    return decorate


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Hands the meta of a node on to what a block makes of it; Interpreter does so.

    Args:
        node: the node that runs.
        pass_name: accepted.
    """
    global current_meta
    before = current_meta
    if _is_preserving:
        current_meta = dict(node.meta)
    try:
        yield
    finally:
        current_meta = before


def get_current_meta() -> dict[str, Any]:
    """Returns what is current."""
    return current_meta


def set_stack_trace(stack: list[str]) -> None:
    """Sets the "stack_trace" of the nodes that are made from now on.

    Args:
        stack: what format_stack returns.
    """
    if _is_preserving and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Returns the current stack trace, or the calls that are running if there is none."""
    if _is_preserving:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def note(node: Node) -> None:
    """Gives a new node what is current."""
    if _is_preserving:
        for key in _HANDED_ON:
            if key in current_meta:
                node.meta.setdefault(key, current_meta[key])
