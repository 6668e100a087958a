"""Running graphs node by node: Interpreter computes, Transformer records a new graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import nn
from rushlight.fx._code import last_uses
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Argument, Node, Target, map_aggregate, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.traceback import (
    has_preserved_node_meta,
    preserve_node_meta,
    set_current_meta,
)

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule node by node; override a method to do something else with a kind of node.

    Args:
        module: what is run.
        garbage_collect_values: whether values are dropped after their last use.
        graph: what is run in place of the module's graph.

    Attributes:
        env: the values of the nodes that have run.

    Example:
        >>> class WithTanh(torch.fx.Interpreter):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(
        ...             torch.tanh if target is torch.relu else target, args, kwargs)
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> WithTanh(traced).run(torch.zeros(2))
        tensor([1., 1.])
    """

    def __init__(
        self,
        module: nn.Module,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(list(self.graph.nodes))

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Returns what the graph returns for some arguments.

        Args:
            args: by place, one for each input.
            initial_env: values of nodes that are not to be run.
            enable_io_processing: whether the graph's CodeGen sees the arguments and the result.

        Raises:
            Exception: what a node raises, with the node in its text.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _say_where(error, node)
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Does run with a list of arguments, which it empties so that they can be freed.

        Raises:
            RuntimeError: if there are more or fewer than inputs; the list stays as it is.
        """
        inputs = self.graph.find_nodes(op="placeholder")
        if not any(str(node.target).startswith("*") for node in inputs):
            if len(args_list) > len(inputs):
                raise RuntimeError(
                    f"boxed_run: got extra arguments: {len(args_list)} for {len(inputs)} inputs."
                )
            missing = [node.name for node in inputs[len(args_list) :] if not node.args]
            if missing:
                raise RuntimeError(f"boxed_run: missing arguments: {missing}.")
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Returns the value of a node, by the method that has the name of its op."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        run = getattr(self, n.op)
        if not has_preserved_node_meta():
            return run(n.target, args, kwargs)
        with set_current_meta(n):
            return run(n.target, args, kwargs)

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns the next argument, or the default of an input."""
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        missing = object()
        value = next(self.args_iter, missing)
        if value is not missing:
            return value
        if not args:
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            )
        return args[0]

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns a parameter, buffer or other attribute of the module."""
        return self.fetch_attr(target)  # pyright: ignore[reportArgumentType]

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns what a function returns."""
        return target(*args, **kwargs)  # pyright: ignore[reportCallIssue]

    def call_method(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns what a method of the first argument returns."""
        receiver, *rest = args
        return getattr(receiver, target)(*rest, **kwargs)  # pyright: ignore[reportArgumentType]

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns what a submodule returns."""
        return self.fetch_attr(target)(*args, **kwargs)  # pyright: ignore[reportArgumentType]

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Returns what is at a path below the module.

        Raises:
            RuntimeError: if there is nothing.
        """
        found: Any = self.module
        path = target.split(".")
        for place, name in enumerate(path):
            if not hasattr(found, name):
                raise RuntimeError(
                    f"Node referenced nonexistent target {'.'.join(path[: place + 1])}"
                )
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments of a node with values for nodes."""
        args = self.map_nodes_to_values(n.args, n)
        return args, self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Returns arguments of a node with values for nodes."""

        def load(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[used]

        return map_arg(args, load)


def _say_where(error: Exception, node: Node) -> None:
    """Adds the node that failed to an error's text."""
    where = f"\n\nWhile executing {node.format_node()}"
    if node.stack_trace:
        where += f"\nOriginal traceback:\n{node.stack_trace}"
    if isinstance(error, KeyError) or not error.args or not isinstance(error.args[0], str):
        error.add_note(where.strip())
    else:
        error.args = (error.args[0] + where, *error.args[1:])


class _TransformerTracer(Tracer):
    """Records what a Transformer does: all modules are leaves, attributes those of the old one."""

    def __init__(self, graph: Graph, module: nn.Module) -> None:
        super().__init__()
        self.graph = graph
        self.root = module
        self._paths = {child: name for name, child in module.named_modules()}
        self._tensor_paths = {}
        self._note_tensors(module)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes a new GraphModule from one; override a method to change a kind of node.

    The methods get and return Proxies. What they call with them is recorded.

    Args:
        module: what is transformed.

    Example:
        >>> class NegInstead(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return -args[0] if target is torch.relu else super().call_function(
        ...             target, args, kwargs)
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> NegInstead(traced).transform()(torch.ones(2))
        tensor([0., 0.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def run_node(self, n: Node) -> Any:
        """Records a node; calls of functions that wrap marked remain calls of these."""
        value = super().run_node(n)
        if isinstance(value, Proxy) and value.node.target == n.target and "is_wrapped" in n.meta:
            value.node.meta["is_wrapped"] = True
        return value

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Proxy:
        """Adds the input to the new graph."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Adds the attribute to the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Adds the call of a submodule to the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Adds the call of a function to the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Returns the new module, which shares its submodules and parameters with the old one."""
        with preserve_node_meta():
            result = super().run(enable_io_processing=False)
        outputs = self.graph.find_nodes(op="output")
        if outputs:
            made = map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x)
            self.new_graph.output(made, outputs[0].type)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
