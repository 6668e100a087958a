"""Fusion on a graph: layers with the norms, relus and sums after them, as a back end says."""

from __future__ import annotations

from typing import Any

from rushlight import fx, nn
from rushlight.ao.quantization.backend_config.backend_config import BackendConfig
from rushlight.ao.quantization.fuse_modules import fuse_known_modules
from rushlight.ao.quantization.fx._matching import Match, Patterns, call_name, leaves

__all__ = ["fuse_graph"]

_AS_LAYERS: dict[str, Any] = {"relu": nn.ReLU, "tanh": nn.Tanh}


def fuse_graph(root: fx.GraphModule, is_qat: bool, backend: BackendConfig) -> None:
    """Replaces the patterns that have a fuser; their first layer's node stays, with its name."""
    patterns = Patterns.of(backend, lambda config: config.fuser_method is not None)
    calls: dict[Any, int] = {}
    for node in root.graph.nodes:
        if node.op == "call_module":
            calls[node.target] = calls.get(node.target, 0) + 1
    gone: set[fx.Node] = set()
    for node in reversed(list(root.graph.nodes)):
        match = None if node in gone else patterns.find(node, root)
        if match is not None and all(
            calls.get(n.target, 1) == 1 or _is_stateless(n, root) for n in match.inside()
        ):
            gone.update(match.inside())
            _fuse(root, match, is_qat)
    root.delete_all_unused_submodules()
    root.recompile()


def _is_stateless(node: fx.Node, root: fx.GraphModule) -> bool:
    """Whether another call of a node's layer would not notice that it was fused here, too."""
    return node.op == "call_module" and not root.get_submodule(str(node.target)).state_dict()


def _fuse(root: fx.GraphModule, match: Match, is_qat: bool) -> None:
    first, last, config = match.root, match.last, match.config
    layers = _layers(root, match.nodes, match.extra_inputs)
    if config._pattern_complex_format is None:
        parts = leaves(layers)[::-1]
        methods = {tuple(type(part) for part in parts): config.fuser_method}
        fused = fuse_known_modules(parts, is_qat, methods)[0]
    else:
        method: Any = config.fuser_method
        fused = method(is_qat, *layers)
    root.set_submodule(str(first.target), fused)
    if first is last:
        return
    if match.extra_inputs:  # which may come after the layer
        last.prepend(first)
        first.args = (*first.args, *match.extra_inputs)
    last.replace_all_uses_with(first, lambda user: user is not first)
    for node in match.inside():
        if node is not first:
            root.graph.erase_node(node)


def _layers(root: fx.GraphModule, nodes: Any, extra: list[Any]) -> Any:
    """The layers that nodes call, or that do what the functions do that they call."""
    if isinstance(nodes, tuple):
        return tuple(_layers(root, part, extra) for part in nodes)
    if nodes in extra:
        return nodes
    if nodes.op == "call_module":
        return root.get_submodule(nodes.target)
    name = call_name(nodes.target)
    if name not in _AS_LAYERS:
        return nodes.target
    return _AS_LAYERS[name]().train(root.training)
