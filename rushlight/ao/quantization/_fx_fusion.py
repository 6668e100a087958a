"""Fusion on a graph: convolutions, linear layers and norms with the norm and relu after them."""

from __future__ import annotations

from typing import Any

from rushlight import fx, nn
from rushlight.ao.quantization._fx_kinds import call_name
from rushlight.ao.quantization.fuse_modules import fuse_known_modules, get_fuser_method

_LONGEST = 3


def is_relu(node: fx.Node, root: fx.GraphModule) -> bool:
    """Returns whether a node is a relu, by a layer, a function or a method."""
    if node.op == "call_module":
        return type(root.get_submodule(str(node.target))) is nn.ReLU
    return call_name(node) in ("relu", "relu_")


def fuse_graph(root: fx.GraphModule, is_qat: bool) -> None:
    """Replaces chains of layers that have a fused form; the first node stays, with its name."""
    calls: dict[Any, int] = {}
    for node in root.graph.nodes:
        if node.op == "call_module":
            calls[node.target] = calls.get(node.target, 0) + 1
    gone: set[Any] = set()
    for node in list(root.graph.nodes):
        if node not in gone and node.op == "call_module":
            gone.update(_fuse_at(root, node, calls, is_qat))
    root.delete_all_unused_submodules()
    root.recompile()


def _fuse_at(root: fx.GraphModule, first: fx.Node, calls: Any, is_qat: bool) -> list[fx.Node]:
    chain, layers = [], []
    node: Any = first
    while len(chain) < _LONGEST:
        if is_relu(node, root) and chain:
            layer: Any = nn.ReLU().train(root.training)
        elif node.op == "call_module" and calls[node.target] == 1:
            layer = root.get_submodule(node.target)
        else:
            break
        chain.append(node)
        layers.append(layer)
        if len(node.users) != 1:
            break
        node = next(iter(node.users))
    for count in range(len(chain), 1, -1):
        kinds = [type(layer) for layer in layers[:count]]
        try:
            get_fuser_method(kinds)
        except NotImplementedError:
            continue
        fused = fuse_known_modules(layers[:count], is_qat)[0]
        root.set_submodule(str(first.target), fused)
        chain[count - 1].replace_all_uses_with(first)
        for done in reversed(chain[1:count]):
            root.graph.erase_node(done)
        return chain[1:count]
    return []
