"""The nodes of graphs: what is called, with which arguments, and who uses the result.

Owns the links between nodes: a node's arguments and its users say the same, as they change only
together. Graph owns their order.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import rushlight as rl
from rushlight._quantized import QuantizedDType
from rushlight.fx._naming import qualified_name
from rushlight.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph
    from rushlight.fx.operator_schemas import ArgsKwargsPair

F = TypeVar("F", bound=Callable[..., Any])

Target: TypeAlias = Callable[..., Any] | str
Argument: TypeAlias = Any  # a Node, a constant, or lists, tuples, dicts and slices of them

__all__ = [
    "Argument",
    "Node",
    "Target",
    "base_types",
    "has_side_effect",
    "map_aggregate",
    "map_arg",
]

base_types = (
    str,
    int,
    float,
    bool,
    complex,
    rl.dtype,
    rl.Tensor,
    rl.device,
    rl.memory_format,
    rl.layout,
    QuantizedDType,
)
CONSTANTS = (*base_types, type(None), EllipsisType)
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

_side_effects: set[Callable[..., Any]] = {rl._assert, rl.manual_seed}


def has_side_effect(fn: F) -> F:
    """Marks a function that eliminate_dead_code keeps although nothing uses its result.

    Example:
        >>> @torch.fx.has_side_effect
        ... def show(x):
        ...     print(x)
    """
    _side_effects.add(fn)
    return fn


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Returns arguments with all nodes replaced by what a function makes of them.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> torch.fx.map_arg([x, (1, x)], lambda node: node.name.upper())
        ['X', (1, 'X')]
    """
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Returns arguments with everything in their lists, tuples, dicts and slices replaced.

    Args:
        a: the arguments.
        fn: gets what is no collection.
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


class Node:
    """One step of a graph.

    Attributes:
        graph: the graph it is in.
        name: unique in the graph; the variable of the result in generated code.
        op: "placeholder" (an input), "get_attr" (a parameter or buffer), "call_function",
            "call_module", "call_method" or "output".
        target: what op is about: the input's name, the attribute's or module's path, the function,
            or the method's name.
        users: the nodes that use the result, as a dict that keeps their order.
        type: the annotation of the result, if there is one.
        meta: what passes note about the node.
    """

    _prev: Node
    _next: Node

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any | None = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"Node: op is {op!r}. It must be one of {', '.join(OPS)}.")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node: target is {target!r}. That of call_function must be callable.")
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(f"Node: target is {target!r}. That of {op} must be a str.")
        self.graph = graph
        self.name = name
        self.op = op
        self.target: Any = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._set_arguments(args, kwargs)

    # Arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """The arguments by place; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set_arguments(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set_arguments(self._args, kwargs)

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that this one uses, each once.

        Example:
            >>> graph = torch.fx.symbolic_trace(lambda x, y: torch.stack([x, y, x])).graph
            >>> graph.find_nodes(op="call_function")[0].all_input_nodes
            [x, y]
        """
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces an argument by its place."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts an argument before that of a place."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(
                f"insert_arg: idx is {idx}. It must be from 0 to {len(self.args)}, the number of "
                "arguments."
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces or adds an argument by its name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Uses another node wherever this one used a certain node."""
        self._map_inputs(lambda node: new_input if node is old_input else node)

    def _map_inputs(self, fn: Callable[[Node], Argument]) -> None:
        self._set_arguments(map_arg(self._args, fn), map_arg(self._kwargs, fn))

    def normalized_arguments(
        self,
        root: rl.nn.Module,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """Returns the arguments of a call with defaults filled in, or None where none are known.

        Args:
            root: the module that paths of modules begin at.
            arg_types: types of args, which decide where several forms of an op could be meant.
            kwarg_types: the same of kwargs.
            normalize_to_only_use_kwargs: gives all arguments by name.

        Raises:
            RuntimeError: if several forms of an op could be meant.
        """
        from rushlight.fx.operator_schemas import normalize_function, normalize_module

        args, kwargs, only = self.args, self.kwargs, normalize_to_only_use_kwargs
        if self.op == "call_function":
            return normalize_function(self.target, args, kwargs, arg_types, kwarg_types, only)
        if self.op == "call_module":
            return normalize_module(root, self.target, args, kwargs, only)
        return None

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Lets all users of this node use another one.

        Args:
            replace_with: the other node.
            delete_user_cb: says of each user whether it is to change.
            propagate_meta: whether replace_with, which must have none, gets this node's meta.

        Returns:
            The users that changed.

        Example:
            >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
            >>> relu = traced.graph.find_nodes(op="call_function", target=torch.relu)[0]
            >>> with traced.graph.inserting_after(relu):
            ...     tanh = traced.graph.call_function(torch.tanh, relu.args)
            >>> relu.replace_all_uses_with(tanh)
            [add]
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "replace_all_uses_with: propagate_meta needs a node without meta, but "
                    f"{replace_with} has {list(replace_with.meta)}."
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # Place in the graph

    @property
    def next(self) -> Node:
        """The node after this one; after the last comes the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first comes the graph's root."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves a node of the same graph to the place before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is not self:
            x._remove_from_list()
            before = self._prev
            before._next, x._prev = x, before
            x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves a node of the same graph to the place after this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # Properties

    @property
    def stack_trace(self) -> str | None:
        """Where in the program it was recorded, if the tracer noted that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Returns whether it matters although nothing uses its result.

        Inputs and outputs do, functions marked by has_side_effect, functions and methods that
        write in place or into out=, and those that draw random numbers.

        Args:
            impure_random: whether drawing random numbers counts.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError(
                    "is_impure: the graph of a call_module needs an owning_module."
                )
            return getattr(module.get_submodule(self.target), "_is_impure", False)
        if self.op not in ("call_function", "call_method"):
            return False
        if self.target in _side_effects or self.kwargs.get("out") is not None:
            return True
        name = self.target if isinstance(self.target, str) else self.target.__name__
        if name in _RANDOM:
            return impure_random
        return name in _WRITING or (name.endswith("_") and not name.endswith("__"))

    # Printing

    def __repr__(self) -> str:
        return self.name

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Returns the node as a line of text.

        Args:
            placeholder_names: gets the name of an input, which then has no line.
            maybe_return_typename: gets the type of what the graph returns.
            include_tensor_metadata: whether to show dtype and shape, where ShapeProp noted them.

        Example:
            >>> graph = torch.fx.symbolic_trace(lambda x: x.relu()).graph
            >>> graph.find_nodes(op="call_method")[0].format_node()
            '%relu : [num_users=1] = call_method[target=relu](args = (%x,), kwargs = {})'
        """
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        kind = f"{type_name(self.type)} " if self.type else ""
        if include_tensor_metadata and "tensor_meta" in self.meta:
            noted = self.meta["tensor_meta"]
            kind = f"{noted.dtype}{list(noted.shape)} " if hasattr(noted, "shape") else kind
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                annotation = f" : {type_name(self.type)}" if self.type else ""
                placeholder_names.append(self.target + annotation)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self.target}]"
        arguments = (
            f"(args = {format_argument(self.args)}, kwargs = {format_argument(self.kwargs)})"
        )
        return f"{head}[target={self._pretty_target()}]{arguments}"

    def _pretty_target(self) -> str:
        """The target as text; of a function its qualified name."""
        if isinstance(self.target, str):
            return self.target
        name = qualified_name(self.target)
        return f"builtins.{name}" if name in vars(builtins) else name


# Ops that draw random numbers, so that leaving one out changes those that come after it.
_RANDOM = {"rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm"}
_RANDOM |= {"bernoulli", "poisson", "multinomial", "normal", "binomial"}

# Functions of operator that write, besides those whose names end in _.
_WRITING = {"setitem", "delitem", "__setitem__", "__delitem__", "setattr"}
_WRITING |= {f"i{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")}
_WRITING |= {f"i{name}" for name in ("matmul", "and", "or", "xor", "lshift", "rshift")}


def format_argument(argument: Argument) -> str:
    """Arguments as format_node shows them, with % before nodes."""
    if isinstance(argument, Node):
        return f"%{argument.name}"
    if isinstance(argument, tuple):
        inside = ", ".join(map(format_argument, argument))
        return f"({inside},)" if len(argument) == 1 else f"({inside})"
    if isinstance(argument, list):
        return f"[{', '.join(map(format_argument, argument))}]"
    if isinstance(argument, dict):
        return "{" + ", ".join(f"{k}: {format_argument(v)}" for k, v in argument.items()) + "}"
    return str(argument)


def type_name(annotation: Any) -> str:
    """An annotation as code spells it: rushlight.Tensor."""
    if not isinstance(annotation, builtins.type):
        return str(annotation).replace("typing.", "")
    if annotation is rl.Tensor:
        return "rushlight.Tensor"
    if annotation.__module__ == "builtins":
        return annotation.__name__
    return f"{annotation.__module__}.{annotation.__qualname__}"
