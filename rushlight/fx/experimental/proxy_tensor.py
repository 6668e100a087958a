"""make_fx: graphs of the ops below autograd that a function runs, gradients among them.

A mode of utils._python_dispatch notes each op as a node. A tensor is known by its object, and where
the core made another handle of it, by the memory that it looks into; all tensors are kept until the
end, so that no memory is used twice.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._op_overload import OpOverload
from rushlight._tag import Tag
from rushlight._wrapper import DisableTorchDispatch
from rushlight.fx import traceback
from rushlight.fx._tree_code import TreeCodeGen
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.nn import Module, Parameter
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
)

__all__ = [
    "ProxyTorchDispatchMode",
    "disable_proxy_modes_tracing",
    "get_proxy_mode",
    "make_fx",
]

_TRACING_MODES = ("real", "fake", "symbolic")


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Notes each op of this thread as a node of a graph, and runs it.

    Args:
        root: gets the tensors that the graph uses and that no op made.
        graph: where the nodes go.
        decomposition_table: functions to call in place of operators; what they call is noted.
    """

    def __init__(
        self,
        root: Module,
        graph: Graph,
        decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    ) -> None:
        self.root = root
        self.graph = graph
        self.table = dict(decomposition_table or {})
        self._by_object: dict[int, Node] = {}
        self._by_memory: dict[Any, Node] = {}
        self._kept: list[Any] = []
        self._known: set[int] = set()  # addresses of numbers that are the same in each run

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Notes an op; one that meets tensors of other classes is theirs to take apart."""
        kwargs = kwargs or {}
        if types:
            return NotImplemented
        if func in self.table:
            with self:
                result = self.table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is rl.ops.aten._local_scalar_dense.default:
            if _storages(args) & self._known:
                return func(*args)
            raise RuntimeError(
                "make_fx: the function asks for the number in a tensor, by item(), float(), an if "
                "or the like. A graph computes with tensors. Keep the number in a tensor, choose "
                "by torch.where, or pass it as an argument."
            )
        is_literal = func is rl.ops.aten.lift_fresh.default
        if is_literal:  # the program may write into what it made
            func = rl.ops.aten.lift_fresh_copy.default
        noted = pytree.tree_map(self._noted, (args, kwargs))
        name = getattr(func, "_opname", None) or getattr(func, "__name__", "op")
        node = self.graph.create_node("call_function", func, *noted, name=name)
        traceback.note(node)
        result = func(*args, **kwargs)
        self._note_result(result, node)
        if is_literal:
            self._known |= _storages(result)
        elif self._known:
            self._learn(func, (args, kwargs), result)
        self._known.discard(0)
        return result

    def _learn(self, func: Any, given: Any, result: Any) -> None:
        """Tells what is computed of literals alone from what depends on the run."""
        read = _storages(given)
        is_op = isinstance(func, OpOverload)
        if is_op and read and read <= self._known and Tag.nondeterministic_seeded not in func.tags:
            self._known |= _storages(result)
        elif not is_op or func._schema.is_mutable:
            self._known -= read

    def note(self, tensor: Tensor, node: Node) -> None:
        """Says which node a tensor is the value of."""
        self._kept.append(tensor)
        self._by_object[id(tensor)] = node
        memory = _memory(tensor)
        if memory is not None:
            self._by_memory[memory] = node
        node.meta["tensor_meta"] = _meta_of(tensor)

    def node_of(self, tensor: Tensor) -> Node:
        """Returns the node whose value a tensor is; a new one for a tensor that no op made."""
        found = self._by_object.get(id(tensor))
        if found is None:
            memory = _memory(tensor)
            found = None if memory is None else self._by_memory.get(memory)
        return self._constant(tensor) if found is None else found

    def _noted(self, value: Any) -> Any:
        return self.node_of(value) if isinstance(value, Tensor) else value

    def _note_result(self, result: Any, node: Node) -> None:
        if isinstance(result, Tensor):
            self.note(result, node)
        elif isinstance(result, (tuple, list)):
            for place, item in enumerate(result):
                if isinstance(item, Tensor):
                    part = self.graph.create_node(
                        "call_function", operator.getitem, (node, place), name="getitem"
                    )
                    self.note(item, part)

    def _constant(self, tensor: Tensor) -> Node:
        kind = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
        number = 0
        while hasattr(self.root, f"{kind}{number}"):
            number += 1
        name = f"{kind}{number}"
        if isinstance(tensor, Parameter):
            self.root.register_parameter(name, tensor)
        else:
            setattr(self.root, name, tensor)
        node = self.graph.create_node("get_attr", name, name=name)
        self.note(tensor, node)
        return node


def _memory(tensor: Tensor) -> Any:
    """What tells handles of one tensor from others: where it lies and how; None for none."""
    with DisableTorchDispatch():
        if _C._is_wrapper(tensor) or tensor._layout or not tensor.numel():
            return None
        address = tensor.data_ptr()
        if not address:
            return None
        return address, tensor.dtype, tuple(tensor.shape), tensor.stride()


def _storages(value: Any) -> set[int]:
    """Where the memory of each tensor in a nested value begins, 0 for one that has none."""
    tensors = [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]
    with DisableTorchDispatch():
        return {0 if _memory(t) is None else t.untyped_storage().data_ptr() for t in tensors}


def _meta_of(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tuple(tensor.shape), "dtype": tensor.dtype, "stride": tensor.stride()}


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
) -> Callable[..., GraphModule]:
    """Returns a function that runs `f` and returns a graph of the ops that ran.

    The ops are those below autograd, so the graph of a function that computes gradients has their
    ops too. Sizes are those of the run, and so are the numbers in tensors that the function made of
    Python's and computes from those alone. Tensors that are no arguments become attributes of the
    module.

    Args:
        f: the function; its arguments may be nested, its tensors become the graph's inputs.
        decomposition_table: functions to call in place of operators, by torch.ops.aten's names; one
            that returns NotImplemented leaves the call as it is.
        tracing_mode: "real"; "fake" and "symbolic" do the same, with the sizes of the arguments.
        _allow_non_fake_inputs: has no effect, like the arguments after it.

    Raises:
        ValueError: another tracing mode.
        RuntimeError: the function asks for the number in a tensor that depends on its arguments, on
            tensors from outside or on chance.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> square = make_fx(torch.func.grad(lambda x: (x * x).sum()))(torch.ones(3))
        >>> square(torch.arange(3.0))
        tensor([0., 2., 4.])
        >>> [node.name for node in square.graph.nodes if node.op == "placeholder"]
        ['x_1']
    """
    if tracing_mode not in _TRACING_MODES:
        raise ValueError(
            f"make_fx: tracing_mode must be one of {_TRACING_MODES}, not {tracing_mode!r}."
        )

    @wraps(f)
    def traced(*args: Any) -> GraphModule:
        return _trace(f, args, decomposition_table)

    return traced


def _trace(f: Callable[..., Any], args: tuple[Any, ...], table: Any) -> GraphModule:
    names = _parameter_names(f, len(args))
    leaves, in_spec = pytree.tree_flatten(args)
    is_flat = len(leaves) == len(args) and all(a is b for a, b in zip(leaves, args, strict=True))
    root, graph = Module(), Graph()
    mode = ProxyTorchDispatchMode(root, graph, table)
    inputs: list[Any] = []
    leaf_names = names if is_flat else [f"arg{place}" for place in range(len(leaves))]
    for name, leaf in zip(leaf_names, leaves, strict=True):
        node = graph.create_node("placeholder", f"{name}_1", name=f"{name}_1")
        value = leaf
        if type(leaf) is Tensor:  # a handle of its own, as the same tensor may be passed twice
            with DisableTorchDispatch():
                value = leaf.detach().requires_grad_(leaf.requires_grad)
        if isinstance(value, Tensor):
            mode.note(value, node)
        inputs.append(value)
    with mode:
        result = f(*pytree.tree_unflatten(inputs, in_spec))
    outputs, out_spec = pytree.tree_flatten(result)
    noted = [mode._noted(output) for output in outputs]
    is_single = len(noted) == 1 and outputs[0] is result
    if is_flat and is_single:
        graph.output(noted[0])
        return GraphModule(root, graph, _class_name(f))
    graph.output(noted)
    graph.set_codegen(TreeCodeGen(names, in_spec, out_spec))
    return GraphModule(root, graph, _class_name(f))


def _class_name(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    return name if name.isidentifier() else "GraphModule"


def _parameter_names(f: Callable[..., Any], count: int) -> list[str]:
    """A name for each argument that is passed: the parameter's, as far as they are told."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [named[place] if place < len(named) else f"arg{place}" for place in range(count)]


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """Returns the mode that notes this thread's ops as nodes, None if none does.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import get_proxy_mode
        >>> get_proxy_mode() is None
        True
    """
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, ProxyTorchDispatchMode):
            return mode
    return None


@contextmanager
def disable_proxy_modes_tracing(enable_current: bool = False) -> Iterator[None]:
    """Lets ops of a with block run without becoming nodes; other modes do not see them either."""
    with _disable_current_modes():
        yield
