"""Exported programs as modules again, which call each other as the exported ones did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import getitem
from typing import Any

from rushlight.export._program import Program, install
from rushlight.export.exported_program import ExportedProgram
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, install_at
from rushlight.fx.node import Node, map_arg

__all__ = ["InterpreterModule", "UnflattenedModule", "unflatten"]


class InterpreterModule(GraphModule):
    """A module of an unflattened program: runs the steps of a call of the exported one."""


class UnflattenedModule(InterpreterModule):
    """What torch.export.unflatten returns: the whole of a program, with its parts below."""


def unflatten(module: ExportedProgram) -> UnflattenedModule:
    """Returns a program as modules under the paths of those that were exported.

    Each runs the steps that the forward of the exported one ran, so it can be replaced by another
    that takes and returns as much. It takes the values that its steps need, in the order in which
    they need them, and returns those that others need. A module that was called several times has
    others beside it, called path@1 and so on, for calls that took other steps. Parameters and
    buffers are shared, not copied. What a module calls that is not below it is among its own steps.

    Args:
        module: the program.

    Returns:
        A module that takes the arguments that the exported one took.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> again = torch.export.unflatten(torch.export.export(net, (torch.ones(1, 2),)))
        >>> [name for name, _ in again.named_children()], list(again.state_dict())
        (['0', '1'], ['0.weight', '0.bias'])
        >>> again.set_submodule("1", torch.nn.Sigmoid())
        >>> bool((again(torch.ones(1, 2)) == net[0](torch.ones(1, 2)).sigmoid()).all())
        True
    """
    return _Unflattening(module._program).whole()


@dataclass
class _Call:
    """A call of the module at a path: its steps, and the calls that are among them."""

    name: str
    path: str
    steps: list[Node | _Call] = field(default_factory=list)

    def nodes(self) -> Iterator[Node]:
        for step in self.steps:
            yield from (step,) if isinstance(step, Node) else step.nodes()


@dataclass
class _Part:
    """The module that does what a call did, and the values that it takes and returns."""

    name: str
    inputs: list[Node]
    outputs: list[Node]


def _calls(graph: Graph) -> _Call:
    """The calls that made the nodes of a graph."""
    running = [_Call("", "")]
    modules: Mapping[str, tuple[str, str]] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        # What was added later, to compute sizes, is where it stands.
        modules = node.meta.get("nn_module_stack", modules)
        depth = 1
        for name, (path, _) in modules.items():
            if depth < len(running) and running[depth].name == name:
                depth += 1
                continue
            del running[depth:]
            if path.startswith(_prefix(running[-1].path)):
                call = _Call(name, path)
                running[-1].steps.append(call)
                running.append(call)
                depth += 1
        del running[depth:]
        running[-1].steps.append(node)
    return running[0]


def _prefix(path: str) -> str:
    """How the paths of what is below a module begin."""
    return f"{path}." if path else ""


class _Unflattening:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._names: dict[tuple[str, str], str] = {}  # of modules, by path and steps
        self._modules: dict[str, GraphModule] = {}

    def whole(self) -> UnflattenedModule:
        old, graph = self._program.graph, Graph()
        values = {node: graph.node_copy(node) for node in old.find_nodes(op="placeholder")}
        targets = self._write(_calls(old), graph, values)
        result = old.output_node()
        self._add(result, "", graph, values, targets)
        graph.set_codegen(old._codegen)
        made: Any = UnflattenedModule(targets, graph, "UnflattenedModule")
        # Modules that were called from above their parents stand in them all the same.
        for name in sorted(self._modules, key=lambda name: name.count(".")):
            install_at(made, name, self._modules[name])
        for path, tensor in self._program.tensors.items():
            install(made, path, tensor, path not in self._program.temporary)
        return made.train(self._program.training)

    def _part(self, call: _Call) -> _Part:
        """Makes the module of a call, unless there is one for the same steps."""
        own = dict.fromkeys(call.nodes())
        needed = dict.fromkeys(used for node in own for used in node.all_input_nodes)
        inputs = [node for node in needed if node not in own and not self._is_in(call.path, node)]
        outputs = [node for node in own if any(user not in own for user in node.users)]
        graph = Graph()
        values = {node: graph.placeholder(f"input_{i + 1}") for i, node in enumerate(inputs)}
        targets = self._write(call, graph, values)
        results = [values[node] for node in outputs]
        graph.output(results[0] if len(results) == 1 else tuple(results))
        key = call.path, str(graph)
        if key not in self._names:
            count = sum(path == call.path for path, _ in self._names)
            self._names[key] = name = f"{call.path}@{count}" if count else call.path
            self._modules[name] = InterpreterModule(targets, graph, "InterpreterModule")
        return _Part(self._names[key], inputs, outputs)

    def _write(self, call: _Call, graph: Graph, values: dict[Node, Node]) -> dict[str, Any]:
        """Writes the steps of a call into a graph; returns the attributes that it uses."""
        targets: dict[str, Any] = {}
        for step in call.steps:
            if isinstance(step, Node):
                self._add(step, call.path, graph, values, targets)
                continue
            part = self._part(step)
            target = part.name.removeprefix(_prefix(call.path))
            targets[target] = self._modules[part.name]
            for node in part.inputs:
                self._look_up(node, call.path, graph, values, targets)
            made = graph.call_module(target, tuple(values[node] for node in part.inputs))
            for place, node in enumerate(part.outputs):
                is_only = len(part.outputs) == 1
                values[node] = made if is_only else graph.call_function(getitem, (made, place))
        return targets

    def _add(
        self, node: Node, path: str, graph: Graph, values: dict[Node, Node], targets: dict[str, Any]
    ) -> None:
        """Adds a step to the graph of the module at a path."""
        for used in node.all_input_nodes:
            self._look_up(used, path, graph, values, targets)
        args, kwargs = (map_arg(given, values.__getitem__) for given in (node.args, node.kwargs))
        values[node] = graph.create_node(node.op, node.target, args, kwargs)
        values[node].meta = dict(node.meta)

    def _look_up(
        self, node: Node, path: str, graph: Graph, values: dict[Node, Node], targets: dict[str, Any]
    ) -> None:
        """Sees to it that a value that a step uses is in the graph of the module at a path."""
        if node in values:
            return
        target = self._path_in(path, node)
        assert target is not None, node
        values[node] = graph.get_attr(target)
        targets[target] = self._program.tensors[node.target]

    def _path_in(self, path: str, node: Node) -> str | None:
        """Where the module at a path has the tensor of a get_attr; None where it has it not."""
        tensors, prefix = self._program.tensors, _prefix(path)
        if node.target.startswith(prefix):
            return node.target.removeprefix(prefix)
        same = (at for at, tensor in tensors.items() if tensor is tensors[node.target])
        return next((at.removeprefix(prefix) for at in same if at.startswith(prefix)), None)

    def _is_in(self, path: str, node: Node) -> bool:
        return node.op == "get_attr" and self._path_in(path, node) is not None
