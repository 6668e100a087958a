"""Compilers of graphs for aot_autograd: those that let a graph run as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rushlight import compile
from rushlight._functorch.aot_autograd import make_boxed_compiler
from rushlight.fx.graph_module import GraphModule

__all__ = ["memory_efficient_fusion", "nop", "print_compile"]

F = TypeVar("F", bound=Callable[..., Any])


@make_boxed_compiler
def nop(fx_g: GraphModule, _: Any) -> GraphModule:
    """Returns the graph as it is."""
    return fx_g


@make_boxed_compiler
def print_compile(fx_g: GraphModule, _: Any) -> GraphModule:
    """Prints the code of the graph and returns it as it is."""
    print(fx_g.code)
    return fx_g


def memory_efficient_fusion(fn: F, **options: Any) -> F:
    """Returns a function or module whose chains of ops run in one pass over memory.

    Args:
        fn: what torch.compile takes.
        options: accepted for PyTorch's sake.
    """
    return compile(fn)
