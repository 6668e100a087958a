"""Programs as graphs, for the back ends of torch.compile that take them.

Invariant: a graph only runs for arguments that are like those of its recording. A program that
leaves the ops on its way, to decide by elements of tensors, has no graph and runs as it is.
"""

from __future__ import annotations

import copy
from contextvars import ContextVar

from rushlight import (
    _C,
    Tensor,
    get_autocast_dtype,
    is_autocast_enabled,
    is_grad_enabled,
    nn,
    strided,
)
from rushlight._dynamo.backends.registry import run_as_it_is
from rushlight._dynamo.exc import Unsupported
from rushlight.export._program import record_program
from rushlight.export._recording import RefusedError
from rushlight.fx._code import CodeGen, Identity
from rushlight.utils._pytree import tensor_leaves, tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rushlight._dynamo.backends.registry import BackEnd

_refuses_functions = ContextVar("refuses_functions", default=False)


class Graphs:
    """A function or module that runs by what a back end makes of its graphs.

    Args:
        function: what is compiled.
        back_end: gets each graph, a GraphModule whose arguments are the tensors among the
            function's, one after the other, and whose result is a flat tuple.
        fullgraph: whether a program without a graph raises.
    """

    def __init__(
        self, function: Callable[..., Any], back_end: BackEnd, fullgraph: bool = False
    ) -> None:
        self._function = function
        self._back_end = back_end
        self._fullgraph = fullgraph
        self._compiled: dict[Any, Callable[[list[Any]], Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        key = (repr(spec), *map(_describe, leaves), *self._modes())
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(args, kwargs)
        if compiled is self._function:
            return self._function(*args, **kwargs)
        return compiled([leaf for leaf in leaves if isinstance(leaf, Tensor)])

    def _modes(self) -> tuple[Any, ...]:
        """What a recording depends on besides the arguments."""
        modules = self._function.modules() if isinstance(self._function, nn.Module) else ()
        training = tuple(module.training for module in modules)
        autocast = get_autocast_dtype("cpu") if is_autocast_enabled("cpu") else None
        return training, autocast, is_grad_enabled()

    def _compile(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
        refusing = _refuses_functions.set(self._loses_backward(args, kwargs))
        try:
            program = record_program(self._function, args, kwargs, _refuse_read, is_checked=False)
        except RefusedError as error:
            if self._fullgraph:
                raise Unsupported(f"torch.compile with fullgraph=True: {error}") from error
            return self._function
        finally:
            _refuses_functions.reset(refusing)
        if self._back_end is run_as_it_is:  # what the program says of gradients stays, too
            return self._function
        calling = program.calling
        module = program.module()
        graph = copy.deepcopy(program.graph)
        graph.set_codegen(CodeGen())
        module.graph = graph
        inputs = tensor_leaves((args, kwargs))
        compiled = self._back_end(module, inputs)
        return lambda tensors: tree_unflatten(list(compiled(*tensors)), calling.out_spec)

    def _loses_backward(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Whether a graph would be differentiated in another way than an autograd.Function is."""
        if not is_grad_enabled() or self._back_end is run_as_it_is:
            return False
        params = self._function.parameters() if isinstance(self._function, nn.Module) else ()
        leaves = (*tree_flatten((args, kwargs))[0], *params)
        return any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves)


def _describe(leaf: Any) -> Any:
    """A key that two arguments share only if a program cannot tell them apart by it."""
    if isinstance(leaf, Tensor):
        strides = leaf.stride() if leaf.layout is strided else None
        kind = (type(leaf), leaf.layout, leaf.dtype, leaf.device)
        return (*kind, leaf.shape, strides, leaf.requires_grad)
    if isinstance(leaf, (float, complex)):
        return type(leaf), repr(leaf)  # of two zeros and of NaN, == says the wrong thing
    try:
        hash(leaf)
    except TypeError:
        return Identity(leaf)
    return type(leaf), leaf


def _refuse_function(cls: type[Any]) -> None:
    if _refuses_functions.get():
        raise RefusedError(
            f"{cls.__name__} is an autograd.Function, whose backward a graph of ops does not have. "
            "Use the back end inductor, or let the program run without a graph."
        )


_C._watch_functions(_refuse_function)


def _refuse_read(how: str, site: str) -> None:
    raise RefusedError(
        f"{site} reads elements of a tensor that depends on the inputs, by {how}. A graph has no "
        "place for that. Use ops such as torch.where, or let the program run without a graph."
    )
