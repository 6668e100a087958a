"""Proxies: what a program is called with to be recorded instead of run.

A Proxy stands for the result of a node. Operators, methods, attributes and functions that meet one
add a node to its tracer's graph and return the Proxy of that. TracerBase owns how this is done.
"""

from __future__ import annotations

import dis
import enum
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import rushlight as rl
from rushlight import _C
from rushlight._op_overload import OpOverload, OpOverloadPacket
from rushlight._overridable import function_of
from rushlight.fx import traceback as node_meta
from rushlight.fx._code import magic_methods, reflectable_magic_methods
from rushlight.fx._naming import target_to_name
from rushlight.fx.graph import Graph
from rushlight.fx.node import CONSTANTS, Argument, Node, Target, map_aggregate

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """Raised where a program needs a value that is known only when the graph runs."""


class TracerBase:
    """What Proxies need of a tracer: a graph, and how values become arguments of its nodes.

    Attributes:
        graph: where nodes are added.
        record_stack_traces: whether nodes note where the program made them.
        trace_asserts: has no effect.
        check_mutable_operations: whether functions that write to an argument are refused.
    """

    graph: Graph

    record_stack_traces: bool = False
    trace_asserts: bool = False
    check_mutable_operations: bool = False
    module_stack: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Adds a node to the graph; override it to look at nodes as they are made."""
        if kind == "call_function" and isinstance(target, str):
            raise AssertionError(f"create_node: {target!r} is not callable.")
        if self.check_mutable_operations and kind == "call_function":
            self._refuse_writing(target, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        modules = getattr(self, "module_stack", None)
        if modules:
            node.meta["nn_module_stack"] = dict(modules)
        node_meta.note(node)
        return node

    def _refuse_writing(self, target: Any, kwargs: dict[str, Argument]) -> None:
        name = getattr(target, "__name__", "")
        writes = name.endswith("_") and not name.endswith("__")
        if kwargs.get("out") is not None or (writes and hasattr(rl.Tensor, name)):
            raise RuntimeError(
                f"Tried to trace mutable operation {name}. The tracer refuses these, by its "
                "check_mutable_operations."
            )

    def proxy(self, node: Node) -> Proxy:
        """Returns a Proxy for the result of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Adds a node for a call with values of the program.

        Args:
            kind: the op of the node.
            target: the function, method or path.
            args: values by place, Proxies among them.
            kwargs: values by name.
            name: what the node is to be called.
            type_expr: the annotation of its result.
            proxy_factory_fn: makes the Proxy; by default proxy does.

        Returns:
            The Proxy of the node.
        """
        node = self.create_node(
            kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr
        )
        made = proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _program_stack()
        return made

    def create_arg(self, a: Any) -> Argument:
        """Returns a value of the program as an argument of nodes.

        Raises:
            NotImplementedError: if it is of a kind that graphs cannot hold.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if isinstance(a, (*CONSTANTS, enum.Enum)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        def refuse_nodes(part: Any) -> Any:
            if isinstance(part, Node):
                raise RuntimeError(
                    "Keys for dictionaries used as an argument cannot contain a Node. Got key: "
                    f"{key}"
                )
            return part

        return map_aggregate(self.create_arg(key), refuse_nodes)

    # What a program may ask of a value, which is not known yet

    def to_bool(self, obj: Proxy) -> bool:
        """Called for the truth of a Proxy, which if and while ask for."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called for the items of a Proxy, unless their number shows, as in a, b = proxy."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. How many items there are is known "
            "only when the graph runs: take them by proxy[i], or put the loop into a function and "
            "call torch.fx.wrap on it."
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for the keys of a Proxy, which ** asks for."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that exists, for a Proxy that is made by hand."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphAppendingTracer) and other.graph is self.graph

    def __hash__(self) -> int:
        return id(self.graph)


class Proxy:
    """Stands for the result of a node while a program is recorded.

    Args:
        node: the node.
        tracer: who records; without it, nodes are added to the node's graph.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> y = torch.relu(x * 2).sum(dim=0)
        >>> list(graph.nodes)
        [x, mul, relu, sum_1]
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k.startswith("__") and k.endswith("__"):  # protocols that Python asks for
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        import copy

        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__ = {key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()}
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = _unpacked_by(sys._getframe(1))
        if count is None:
            return self.tracer.iter(self)
        return iter([operator.getitem(self, i) for i in range(count)])  # pyright: ignore[reportArgumentType, reportCallIssue]

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", abs, (self,), {})

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """Returns what the tracer makes of the keys."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not isinstance(orig_method, (OpOverload, OpOverloadPacket)):
            orig_method = function_of(orig_method)
        kwargs = kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find(value: Any) -> Any:
            if isinstance(value, Proxy):
                tracers[value.tracer] = None
            return value

        map_aggregate((args, kwargs), find)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace "
                f"operations {orig_method}"
            )
        (tracer,) = tracers
        name = orig_method.__name__
        if _is_method_only(orig_method):
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=target_to_name(name)
        )


class Attribute(Proxy):
    """An attribute of a Proxy, of which there is a node only if it is not just called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The node of the attribute, made when it is asked for."""
        if self._node is None:
            arguments = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, arguments, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter whose shape is known.

    Args:
        tracer: who records.
        node: the node of the parameter.
        name: its path.
        param: the parameter.
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: rl.Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> rl.Size:
        """The parameter's sizes."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The number of its dims."""
        return self.param.ndim

    def size(self, dim: int | None = None) -> Any:
        """Returns its sizes, or that of a dim."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """Returns the number of its dims."""
        return self.param.dim()

    def numel(self) -> int:
        """Returns the number of its elements."""
        return self.param.numel()

    nelement = numel


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def record(self: Proxy, *args: Any) -> Proxy:
        values = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", function, values, {})

    return record


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(getattr(operator, _name), False))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator(getattr(operator, _name), True))
Proxy.__hash__ = object.__hash__


def _is_method_only(function: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor and not a function of the package as well."""
    name = function.__name__
    if all(getattr(cls, name, None) is not function for cls in (rl.Tensor, _C.TensorBase)):
        return False
    return getattr(sys.modules.get(function.__module__), name, None) is not function


def _unpacked_by(frame: Any) -> int | None:
    """How many items a caller takes out by an assignment like a, b = x."""
    code = frame.f_code
    at = frame.f_lasti
    for instruction in dis.get_instructions(code):
        if instruction.offset == at:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


def _program_stack() -> str:
    """The stack outside of this package, innermost last."""
    package = str(Path(rl.__file__).parent) + "/"
    frames = [f for f in traceback.extract_stack() if not f.filename.startswith(package)]
    return "".join(traceback.format_list(frames)).strip()
