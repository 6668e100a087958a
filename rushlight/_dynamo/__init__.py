"""What libraries say to the insides of torch.compile: most of it changes nothing here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._dynamo import config as config
from rushlight._dynamo._explaining import explain as explain
from rushlight._dynamo.backends.registry import list_backends as list_backends
from rushlight._dynamo.backends.registry import lookup_backend as lookup_backend
from rushlight._dynamo.backends.registry import register_backend as register_backend
from rushlight._dynamo.eval_frame import OptimizedModule as OptimizedModule
from rushlight._dynamo.eval_frame import is_dynamo_supported as is_dynamo_supported
from rushlight.compiler import allow_in_graph as allow_in_graph
from rushlight.compiler import assume_constant_result as assume_constant_result
from rushlight.compiler import disable as disable
from rushlight.compiler import is_compiling as is_compiling
from rushlight.compiler import reset as reset


def optimize(
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    **options: Any,
) -> Callable[[Any], Any]:
    """Returns the decorator that torch.compile is with the same options.

    Args:
        backend: see torch.compile.
        nopython: its fullgraph.
        dynamic: see torch.compile.
        disable: whether programs run as they are.
        options: accepted for PyTorch's sake.

    Example:
        >>> torch._dynamo.optimize("eager")(torch.neg)(torch.ones(2))
        tensor([-1., -1.])
    """
    return lambda model: rl.compile(
        model, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable
    )


def mark_dynamic(t: Tensor, index: int | tuple[int, ...], **limits: Any) -> None:
    """Tells a compiler that a size changes; here all may."""


maybe_mark_dynamic = mark_static = mark_unbacked = mark_dynamic
reset_code_caches = reset


def mark_static_address(t: Tensor, guard: bool = True) -> None:
    """Tells a compiler that a tensor stays where it is."""


def graph_break(msg: str = "") -> None:
    """Tells a compiler where to end a graph; here programs have one graph, or run without."""
