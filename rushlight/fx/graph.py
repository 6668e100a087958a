"""Graphs: programs as lists of nodes, in the order in which they run.

Owns the order and the names of nodes, and the ways to make, move and drop them. Invariant: a node
of the list has arguments from the same graph; lint checks that they come before it.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight.fx._code import (
    CodeGen,
    PythonCode,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from rushlight.fx._naming import Namespace, target_to_name
from rushlight.fx.node import Argument, Node, Target, map_aggregate, map_arg

if TYPE_CHECKING:
    from rushlight.fx.graph_module import GraphModule

TransformCode = Callable[[list[str]], list[str]]

__all__ = [
    "CodeGen",
    "Graph",
    "Namespace",
    "PythonCode",
    "inplace_methods",
    "magic_methods",
    "reflectable_magic_methods",
]


class _NodeList:
    """The nodes of a graph; those that are added during a walk are met, erased ones are not."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._count

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node: Node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_NodeList(self.graph, "_prev" if self.direction == "_next" else "_next"))


class Graph:
    """A program: inputs, calls of functions, methods and modules, and an output.

    Args:
        owning_module: the GraphModule that runs it.
        tracer_cls: the class of the tracer that recorded it.
        tracer_extras: what that tracer wants to know again.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> doubled = graph.call_function(torch.mul, (x, 2))
        >>> _ = graph.output(doubled)
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %mul : [num_users=1] = call_function[target=rushlight.mul](args = (%x, 2), kwargs = {})
            return mul
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._namespace = Namespace()
        self._count = 0
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend

    @property
    def nodes(self) -> _NodeList:
        """The nodes in their order."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """Returns the node of the output."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Returns the nodes with an op and, if it is given, a target.

        Args:
            op: "call_function", for one.
            target: the function, method or path; not needed for "output".
            sort: has no effect; they come in the order of the graph.
        """
        nodes = (node for node in self.nodes if node.op == op)
        return [node for node in nodes if target is None or node.target == target]

    # Making nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Adds a node at the place where nodes are added: the end, unless inserting_before says so.

        Args:
            op: what it does; see Node.
            target: the function, method or path.
            args: arguments by place.
            kwargs: arguments by name.
            name: what it is to be called; without it, after its target.
            type_expr: the annotation of its result.

        Returns:
            The node.
        """
        candidate = target_to_name(target) if name is None else name
        unique = self._namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args or (), kwargs or {}, type_expr)
        self._namespace.associate_name_with_obj(unique, node)
        self._insert(node)
        self._count += 1
        return node

    def placeholder(
        self, name: str, type_expr: Any | None = None, default_value: Any = ...
    ) -> Node:
        """Adds an input.

        Args:
            name: of the parameter of forward.
            type_expr: its annotation.
            default_value: its default; Ellipsis is none.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """Adds a node for a parameter, buffer or other attribute of the module, by its path.

        Warns if the graph is that of a module which has nothing there.
        """
        node = self.create_node("get_attr", qualified_name, type_expr=type_expr)
        if self.owning_module is not None:
            try:
                _check_path(self.owning_module, node)
            except RuntimeError as error:
                warnings.warn(
                    "Attempted to insert a get_attr Node with no underlying reference in the "
                    f"owning GraphModule: {error}. Add it to the module first.",
                    stacklevel=2,
                )
        return node

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Adds the call of a submodule, by its path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Adds the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
        name: str | None = None,
    ) -> Node:
        """Adds the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """Adds the return of a result, which may be a collection of nodes."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node
    ) -> Node:
        """Adds a copy of a node of another graph.

        Args:
            node: what is copied.
            arg_transform: gives for each of its arguments the one in this graph.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Argument | None:
        """Adds copies of all nodes of a graph but its output.

        Args:
            g: the other graph.
            val_map: nodes of g that stand for nodes here; it gets those that are copied.
            return_output_node: whether to return the output's node of g as well.

        Returns:
            What g's output is here, or None.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        copied = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        copied._codegen = copy.deepcopy(self._codegen, memo)
        memo[id(self)] = copied
        nodes: dict[Node, Node] = {}
        result = copied.graph_copy(self, nodes, return_output_node=True)
        if result is not None:
            output = copied.output(result[0], result[1].type)
            output.meta = copy.copy(result[1].meta)
            nodes[result[1]] = output
        memo.update({id(node): other for node, other in nodes.items()})
        return copied

    def __reduce__(self) -> Any:
        places = {node: place for place, node in enumerate(self.nodes)}

        def to_places(argument: Any) -> Any:
            return map_arg(argument, lambda node: _Place(places[node]))

        rows = [
            (
                (node.op, node.target, to_places(node.args), to_places(node.kwargs)),
                (node.name, node.type),
                {key: value for key, value in node.meta.items() if key == "is_wrapped"},
            )
            for node in self.nodes
        ]
        return _from_rows, (rows, self._tracer_cls, self._codegen)

    # Changing the order

    def inserting_before(self, n: Node | None = None) -> contextlib.ExitStack:
        """Adds nodes before a node, in a with block or from now on; before all if it is None.

        Example:
            >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x))
            >>> relu = traced.graph.find_nodes(op="call_function")[0]
            >>> with traced.graph.inserting_before(relu):
            ...     relu.args = (traced.graph.call_function(torch.neg, relu.args),)
            >>> _ = traced.recompile()
            >>> traced(torch.tensor([-1.0, 2.0]))
            tensor([1., 0.])
        """
        return self._inserting(self._own(n).append if n is None else self._own(n).prepend)

    def inserting_after(self, n: Node | None = None) -> contextlib.ExitStack:
        """Adds nodes right after a node, in the same ways; at the end if it is None."""
        return self._inserting(self._own(n).prepend if n is None else self._own(n).append)

    def _own(self, n: Node | None) -> Node:
        if n is not None and n.graph is not self:
            raise AssertionError(f"inserting_before: {n} is not in this graph.")
        return self._root if n is None else n

    def _inserting(self, insert: Callable[[Node], None]) -> contextlib.ExitStack:
        undo = contextlib.ExitStack()
        undo.callback(setattr, self, "_insert", self._insert)
        self._insert = insert
        return undo

    def erase_node(self, to_erase: Node) -> None:
        """Drops a node that nothing uses.

        Raises:
            RuntimeError: if something does.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            raise RuntimeError(f"erase_node: {to_erase} was erased before.")
        to_erase._remove_from_list()
        to_erase._erased = True
        self._count -= 1
        to_erase.args, to_erase.kwargs = (), {}

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Drops the nodes whose results nothing uses, unless they do something else as well.

        Args:
            is_impure_node: says of a node whether it is to stay; Node.is_impure by default.

        Returns:
            Whether there were any.

        Example:
            >>> def f(x):
            ...     unused = x + 1
            ...     return x * 2
            >>> graph = torch.fx.symbolic_trace(f).graph
            >>> graph.eliminate_dead_code()
            True
            >>> list(graph.nodes)
            [x, mul, output]
        """
        self.lint()
        stays = is_impure_node or Node.is_impure
        dead = 0
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
                dead += 1
        return dead > 0

    # Code and text

    def set_codegen(self, codegen: CodeGen) -> None:
        """Lets another CodeGen write the code."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[TransformCode | None], TransformCode]
    ) -> contextlib.ExitStack:
        """Lets a function change the lines of the body, in a with block or from now on.

        Args:
            make_transformer: returns that function for the one there was before, which is None at
                first. It gets the lines as a list and returns another.

        Example:
            >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x))
            >>> with traced.graph.on_generate_code(lambda _: lambda lines: ["# relu\\n", *lines]):
            ...     _ = traced.recompile()
            >>> traced.code.splitlines()[3]
            '    # relu'
        """
        codegen = self._codegen
        undo = contextlib.ExitStack()
        undo.callback(setattr, codegen, "_transform", codegen._transform)
        codegen._transform = make_transformer(codegen._transform)
        return undo

    def process_inputs(self, *args: Any) -> Any:
        """Returns the inputs of the placeholders for the arguments of forward."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Returns the result of forward for that of the output."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str) -> PythonCode:
        """Returns the graph as code.

        Args:
            root_module: what the code calls the module: "self".

        Example:
            >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
            >>> print(graph.python_code("self").src.strip())
            def forward(self, x):
                relu = rushlight.relu(x);  x = None
                add = relu + 1;  relu = None
                return add
        """
        return self._codegen._gen_python_code(list(self.nodes), root_module)

    def __str__(self) -> str:
        placeholders: list[str] = []
        returns = [""]
        lines = [node.format_node(None, returns) for node in self.nodes]
        head = f"graph({', '.join(placeholders)}){returns[0]}:"
        return head + "".join(f"\n    {line}" for line in lines if line is not None)

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [
            (node.op, node.name, node._pretty_target(), str(node.args), str(node.kwargs))
            for node in self.nodes
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, tuple("-" * width for width in widths), *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())

    def lint(self) -> None:
        """Checks the graph: nodes use nodes of this graph before them, and names and paths exist.

        Raises:
            RuntimeError: if one does not.
        """
        defined: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but "
                        "was used as an argument! If you are copying nodes from another graph, "
                        "make sure to use ``arg_transform`` on node_copy() to remap values\n"
                        f"{self}"
                    )
                if used not in defined:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            defined.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                _check_path(self.owning_module, node)


class _Place(int):
    """Stands for a node in a pickle."""


def _from_rows(rows: list[tuple[Any, ...]], tracer_cls: type | None, codegen: CodeGen) -> Graph:
    """A graph from its pickle."""
    graph = Graph(tracer_cls=tracer_cls)
    graph._codegen = codegen
    nodes: list[Node] = []

    def to_nodes(argument: Any) -> Any:
        return map_aggregate(argument, lambda x: nodes[x] if isinstance(x, _Place) else x)

    for (op, target, args, kwargs), names, meta in rows:
        node = graph.create_node(op, target, to_nodes(args), to_nodes(kwargs), *names)
        node.meta.update(meta)
        nodes.append(node)
    return graph


def _check_path(module: rl.nn.Module, node: Node) -> None:
    """Fails when a module has nothing at a node's path."""
    found: Any = module
    path = node.target.split(".")
    for place, name in enumerate(path):
        owner, found = found, getattr(found, name, None)
        if found is None:
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {name} of "
                f"{'.'.join(path[:place]) or type(owner).__name__}"
            )
    if node.op == "call_module" and not isinstance(found, rl.nn.Module):
        raise RuntimeError(
            f"Node {node} target {node.target} does not refer to a module, but to "
            f"{type(found).__name__}."
        )
