"""Models that return what they compute on the way, made of their graphs (torch.fx).

A node is named by the path of the module that made it and, if that is not one of the layers
themselves, by the operation: "layer1.0.relu", "layer1.0.add". What comes again gets "_1", "_2".
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import fx, nn
from rushlight.fx.graph_module import install_at, value_at

__all__ = ["create_feature_extractor", "get_graph_node_names"]

_NUMBERED = re.compile(r"(.+)_[0-9]+")


class NodePathTracer(fx.Tracer):
    """A tracer that names nodes by paths of modules, in node_to_qualname.

    Args:
        leaf_modules: more classes of which calls are one node; those of vision.ops are anyway.
        kwargs: arguments of fx.Tracer.
    """

    def __init__(self, leaf_modules: Iterable[type] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.leaf_modules = tuple(leaf_modules)
        self.current_module_qualname = ""
        self.node_to_qualname: dict[fx.Node, str] = {}
        self._counts: dict[str, int] = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        is_from_ops = any(c.__module__.startswith("rushlight.vision.ops.") for c in type(m).__mro__)
        return (
            is_from_ops
            or isinstance(m, self.leaf_modules)
            or super().is_leaf_module(m, module_qualified_name)
        )

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        outer = self.current_module_qualname
        self.current_module_qualname = self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current_module_qualname = outer

    def create_proxy(self, kind: str, *args: Any, **kwargs: Any) -> fx.Proxy:
        proxy = super().create_proxy(kind, *args, **kwargs)
        path = self.current_module_qualname
        if kind != "call_module":
            path = f"{path}.{proxy.node.name}" if path else proxy.node.name
        # fx numbers names in the whole graph, here they are numbered within their module.
        numbered = _NUMBERED.fullmatch(path)
        path = numbered[1] if numbered else path
        count = self._counts.get(path, 0)
        self._counts[path] = count + 1
        self.node_to_qualname[proxy.node] = f"{path}_{count}" if count else path
        return proxy


class DualGraphModule(fx.GraphModule):
    """A module with a graph for training and one for evaluation, changed by train and eval.

    Args:
        root: the module whose parts it takes over.
        train_graph: what it does in training.
        eval_graph: what it does in evaluation.
        class_name: name of its class.
    """

    def __init__(
        self,
        root: nn.Module,
        train_graph: fx.Graph,
        eval_graph: fx.Graph,
        class_name: str = "GraphModule",
    ) -> None:
        super().__init__(root, train_graph, class_name)
        for node in eval_graph.nodes:
            if node.op in ("get_attr", "call_module"):
                install_at(self, str(node.target), value_at(root, str(node.target)))
        self.train_graph = train_graph
        self.eval_graph = eval_graph
        super().train()

    def train(self, mode: bool = True) -> DualGraphModule:
        if mode != self.training:
            self.graph = self.train_graph if mode else self.eval_graph
        return super().train(mode)


def _trace(
    model: nn.Module, mode: bool, options: dict[str, Any], concrete_args: dict[str, Any] | None
) -> NodePathTracer:
    """The tracer of a model in training or evaluation; its modules come back to their own mode."""
    modes = {module: module.training for module in model.modules()}
    tracer = NodePathTracer(**options)
    try:
        tracer.trace(model.train(mode), concrete_args=concrete_args)
    finally:
        for module, is_training in modes.items():
            module.training = is_training
    return tracer


def _warn_of_differences(train: list[str], evaluation: list[str]) -> None:
    def is_part(part: list[str], whole: list[str]) -> bool:
        rest = iter(whole)
        return all(name in rest for name in part)

    if train == evaluation:
        return
    if is_part(train, evaluation):
        message = (
            "NOTE: The nodes obtained by tracing the model in eval mode are a subsequence of those "
            "obtained in train mode. "
        )
    elif is_part(evaluation, train):
        message = (
            "NOTE: The nodes obtained by tracing the model in train mode are a subsequence of "
            "those obtained in eval mode. "
        )
    else:
        message = (
            "The nodes obtained by tracing the model in train mode are different to those obtained "
            "in eval mode. "
        )
    warnings.warn(
        f"{message}When choosing nodes for feature extraction, you may need to specify output "
        "nodes for train and eval mode separately.",
        stacklevel=4,
    )


def _trace_both(
    model: nn.Module,
    tracer_kwargs: dict[str, Any] | None,
    suppress_diff_warning: bool,
    concrete_args: dict[str, Any] | None,
) -> list[NodePathTracer]:
    """The tracers for training and evaluation."""
    tracers = [_trace(model, mode, tracer_kwargs or {}, concrete_args) for mode in (True, False)]
    if not suppress_diff_warning:
        _warn_of_differences(*(list(tracer.node_to_qualname.values()) for tracer in tracers))
    return tracers


def get_graph_node_names(
    model: nn.Module,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:
    """Returns the names of a model's nodes in training and in evaluation, in their order.

    Args:
        model: the model.
        tracer_kwargs: arguments of NodePathTracer, as leaf_modules.
        suppress_diff_warning: whether not to warn if the two are different.
        concrete_args: values of arguments that are to be no inputs, by name.

    Example:
        >>> names, _ = get_graph_node_names(torch.vision.models.resnet18())
        >>> names[:8]
        ['x', 'conv1', 'bn1', 'relu', 'maxpool', 'layer1.0.conv1', 'layer1.0.bn1', 'layer1.0.relu']
    """
    train, evaluation = _trace_both(model, tracer_kwargs, suppress_diff_warning, concrete_args)
    return list(train.node_to_qualname.values()), list(evaluation.node_to_qualname.values())


def create_feature_extractor(
    model: nn.Module,
    return_nodes: list[str] | dict[str, str] | None = None,
    train_return_nodes: list[str] | dict[str, str] | None = None,
    eval_return_nodes: list[str] | dict[str, str] | None = None,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> fx.GraphModule:
    """Returns a module that computes a model up to some nodes, and returns their results as a dict.

    It shares the model's parameters and layers, and leaves out those that the nodes do not need.
    It is in training or in evaluation as the model is.

    Args:
        model: the model.
        return_nodes: names of nodes or of modules, whose last node is meant; a dict tells the names
            in the result.
        train_return_nodes: the nodes in training, if they are others than in evaluation.
        eval_return_nodes: the nodes in evaluation.
        tracer_kwargs: arguments of NodePathTracer, as leaf_modules.
        suppress_diff_warning: whether not to warn if the graphs in training and evaluation are
            different.
        concrete_args: values of arguments that are to be no inputs, by name.

    Raises:
        ValueError: if there is no node of a name, or both or neither kinds of nodes are given.

    Example:
        >>> model = torch.vision.models.resnet18()
        >>> body = create_feature_extractor(model, {"layer1": "low", "layer3": "high"})
        >>> [(name, x.shape) for name, x in body(torch.zeros(2, 3, 64, 64)).items()]
        [('low', torch.Size([2, 64, 16, 16])), ('high', torch.Size([2, 256, 4, 4]))]
    """
    if return_nodes is None and train_return_nodes is None and eval_return_nodes is None:
        raise ValueError(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, "
            "should be specified"
        )
    if (train_return_nodes is None) != (eval_return_nodes is None):
        raise ValueError(
            "If any of `train_return_nodes` and `eval_return_nodes` are specified, then both "
            "should be specified"
        )
    if return_nodes is not None and train_return_nodes is not None:
        raise ValueError(
            "If `train_return_nodes` and `eval_return_nodes` are specified, then `return_nodes` "
            "should not be specified"
        )
    wanted = [train_return_nodes or return_nodes, eval_return_nodes or return_nodes]
    tracers = _trace_both(model, tracer_kwargs, suppress_diff_warning, concrete_args)
    for tracer, nodes in zip(tracers, wanted, strict=True):
        _return_nodes(tracer, nodes or [])
    train, evaluation = (tracer.graph for tracer in tracers)
    made = DualGraphModule(tracers[0].root, train, evaluation, type(model).__name__)
    return made.train(model.training)


def _return_nodes(tracer: NodePathTracer, wanted: list[str] | dict[str, str]) -> None:
    """Lets a graph return some nodes, under the names given, in the order it computes them."""
    named = wanted if isinstance(wanted, dict) else {name: name for name in wanted}
    found: dict[str, fx.Node] = {}
    for query in map(str, named):
        under = f"{query}."
        for node, path in tracer.node_to_qualname.items():
            if path == query or path.startswith(under):
                found[query] = node  # the last one counts
        if query not in found:
            raise ValueError(
                f"node: '{query}' is not present in model. Hint: use `get_graph_node_names` to "
                "make sure the `return_nodes` you specified are present. It may even be that you "
                "need to specify `train_return_nodes` and `eval_return_nodes` separately."
            )
    graph = tracer.graph
    for node in graph.find_nodes(op="output"):
        graph.erase_node(node)
    order = {node: i for i, node in enumerate(graph.nodes)}
    queries = sorted(found, key=lambda query: order[found[query]])
    graph.output({str(named[query]): found[query] for query in queries})
    fx.GraphModule(tracer.root, graph).graph.eliminate_dead_code()  # asks the modules for effects
