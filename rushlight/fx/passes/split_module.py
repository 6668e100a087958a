"""Splitting a graph: a module of several parts, each with a graph of its own."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

from rushlight import nn
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, value_at
from rushlight.fx.node import Node, map_arg

__all__ = ["Partition", "split_module"]


class Partition:
    """A part: its graph and what goes in and out.

    Attributes:
        name: its own.
        submod_name: that of its module, submod_ and the name unless given.
        inputs: the nodes of the whole that it gets.
        outputs: those of its nodes that others use.
        dependencies: the parts that come before it.
        dependents: the parts that come after it.
    """

    def __init__(self, name: str, submod_name: str | None = None) -> None:
        self.name = name
        self.submod_name = submod_name or f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n "
            f"outputs: {list(self.outputs)},\n dependencies: {list(self.dependencies)},\n "
            f"dependents: {list(self.dependents)}"
        )


def split_module(
    m: GraphModule,
    root_m: nn.Module,
    split_callback: Callable[[Node], int | str],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool = False,
    partition_affix: str | None = None,
) -> GraphModule:
    """Returns a module that does the same by parts: GraphModules named submod_0 and so on.

    Args:
        m: what is split.
        root_m: where its parameters and submodules are found.
        split_callback: says of each call in which part it is to be.
        qualname_map: gets the paths of submodules in root_m by their new ones.
        keep_original_order: whether the parts come in the order of their first nodes; without it,
            a part comes as soon as all that it needs is there.
        partition_affix: stands in the names, before the number.

    Raises:
        RuntimeError: if parts need each other in a circle.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x * 2) + 1)
        >>> parts = torch.fx.passes.split_module.split_module(
        ...     traced, traced, lambda node: int(node.name == "add"))
        >>> print(parts.code.strip())
        def forward(self, x):
            submod_0 = self.submod_0(x);  x = None
            submod_1 = self.submod_1(submod_0);  submod_0 = None
            return submod_1
    """
    parts = _divide(m.graph, split_callback, partition_affix)
    home = link(m.graph, parts, with_attributes=True)
    names = list(parts) if keep_original_order else _in_order(parts)
    return Assembly(m, root_m, parts, home, qualname_map).build(names)


def _divide(
    graph: Graph, split_callback: Callable[[Node], int | str], affix: str | None
) -> dict[str, Partition]:
    parts: dict[str, Partition] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(split_callback(node))
        name = name if affix is None else f"{affix}_{name}"
        parts.setdefault(name, Partition(name)).node_names.append(node.name)
    return parts


def link(
    graph: Graph, parts: dict[str, Partition], with_attributes: bool = False
) -> dict[str, Partition]:
    """Notes what parts use of each other; returns the part of each node.

    Args:
        graph: of the whole.
        parts: by name.
        with_attributes: whether parameters and buffers are inputs of the parts, too.
    """
    home = {name: part for part in parts.values() for name in part.node_names}
    for node in graph.nodes:
        for used in node.all_input_nodes:
            if with_attributes or used.op != "get_attr":
                _link(home.get(used.name), home.get(node.name), used)
    return home


def _link(maker: Partition | None, user: Partition | None, value: Node) -> None:
    """Notes that a part, or the whole, uses a value."""
    if maker is user:
        return
    if maker is not None:
        maker.outputs[value] = None
    if user is not None:
        user.inputs[value] = None
        if maker is not None:
            user.dependencies[maker.name] = None
            maker.dependents[user.name] = None


def _in_order(parts: dict[str, Partition]) -> list[str]:
    """The names of the parts, each after those that it needs."""
    missing = {name: len(part.dependencies) for name, part in parts.items()}
    ready = [name for name, count in missing.items() if count == 0]
    order: list[str] = []
    while ready:
        name = ready.pop(0)
        order.append(name)
        for user in parts[name].dependents:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    if len(order) < len(parts):
        raise RuntimeError("cycle exists between partitions!")
    return order


class Assembly:
    """Writes the graphs of the parts, and the one that calls them.

    Args:
        m: what is split.
        root: where its parameters and submodules are found.
        parts: the parts, linked.
        home: the part of each node.
        qualname_map: gets the paths of attributes in root by their new ones.
        keeps_paths: whether attributes have their old paths in the parts, or flat names.
        returns_tuples: whether a part returns a tuple even of one result.
    """

    def __init__(
        self,
        m: GraphModule,
        root: nn.Module,
        parts: dict[str, Partition],
        home: dict[str, Partition],
        qualname_map: dict[str, str] | None,
        keeps_paths: bool = False,
        returns_tuples: bool = False,
    ) -> None:
        self._m = m
        self._root = root
        self._parts = parts
        self._home = home
        self._qualname_map = qualname_map
        self._keeps_paths = keeps_paths
        self._returns_tuples = returns_tuples
        self._graph = Graph()
        self._values: dict[Node, Node] = {}  # of the whole, in the graph that calls the parts
        self._modules: dict[str, Any] = {}

    def build(self, names: list[str], kind: type[GraphModule] = GraphModule) -> GraphModule:
        """Returns the whole, which calls the parts in this order."""
        for part in self._parts.values():
            for used in part.inputs:
                made = part.graph.placeholder(used.name, used.type)
                made.meta = used.meta.copy()
                part.environment[used] = made
        for node in self._m.graph.nodes:
            if node.name in self._home:
                self._copy(node, self._home[node.name])
            elif node.op == "placeholder":
                self._values[node] = self._graph.node_copy(node)
            elif node.op == "get_attr" and self._is_read(node):
                self._values[node] = self._graph.node_copy(node)
                self._modules[node.target] = value_at(self._root, node.target)
        for name in names:
            self._call(self._parts[name])
        for output in self._m.graph.find_nodes(op="output"):
            result = map_arg(output.args[0], lambda node: self._values[node])
            self._graph.output(result, output.type).meta = output.meta.copy()
        return kind(self._modules, self._graph, type(self._m).__name__)

    def _is_read(self, attribute: Node) -> bool:
        """Whether the whole reads an attribute, to return it or to give it to a part."""
        is_given = any(attribute in part.inputs for part in self._parts.values())
        return is_given or any(user.op == "output" for user in attribute.users)

    def _copy(self, node: Node, part: Partition) -> None:
        """Adds a node to its part."""
        for used in node.all_input_nodes:
            if used.op == "get_attr" and used not in part.environment:
                target = self._install(part, used.target)
                part.environment[used] = part.graph.get_attr(target, used.type)
        copied = part.graph.node_copy(node, lambda used: part.environment[used])
        if node.op == "call_module":
            copied.target = self._install(part, node.target)
        part.environment[node] = copied

    def _install(self, part: Partition, path: str) -> str:
        """Gives a part what is at a path of the root; returns its path there."""
        target = path if self._keeps_paths else path.replace(".", "_")
        part.targets[target] = value_at(self._root, path)
        if self._qualname_map is not None:
            self._qualname_map[f"{part.submod_name}.{target}"] = path
        return target

    def _call(self, part: Partition) -> None:
        """Ends a part and adds its call to the whole."""
        outputs = list(part.outputs)
        made = [part.environment[node] for node in outputs]
        is_single = len(made) == 1 and not self._returns_tuples
        part.graph.output(made[0] if is_single else tuple(made))
        self._modules[part.submod_name] = GraphModule(part.targets, part.graph)
        arguments = tuple(self._values[node] for node in part.inputs)
        call = self._graph.call_module(part.submod_name, arguments)
        if is_single:
            self._values[outputs[0]] = call
            return
        for place, node in enumerate(outputs):
            self._values[node] = self._graph.call_function(getitem, (call, place))
