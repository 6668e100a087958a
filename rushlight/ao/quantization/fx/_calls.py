"""Calls of nn.functional with parameters of the network, made the layers that do the same.

So products and convolutions that a program writes itself are fused, trained and quantized as layers
are.
"""

from __future__ import annotations

from typing import Any

from rushlight import fx, nn
from rushlight.ao.quantization.fx._matching import call_name
from rushlight.fx.graph_module import value_at

__all__ = ["calls_to_layers"]

_KINDS: dict[str, Any] = {
    "linear": nn.Linear,
    "conv1d": nn.Conv1d,
    "conv2d": nn.Conv2d,
    "conv3d": nn.Conv3d,
}
_ARGUMENTS = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")


def calls_to_layers(root: fx.GraphModule) -> None:
    """Replaces calls whose weight and bias are parameters; the nodes note what was "called"."""
    taken: set[fx.Node] = set()
    for node in list(root.graph.nodes):
        name = call_name(node.target)
        if node.op != "call_function" or name not in _KINDS:
            continue
        given = {**dict(zip(_ARGUMENTS, node.args, strict=False)), **node.kwargs}
        source, weight, bias = (given.pop(key, None) for key in _ARGUMENTS[:3])
        is_plain = not any(isinstance(value, fx.Node) for value in given.values())
        parts = [part for part in (weight, bias) if part is not None]
        if not is_plain or not all(_is_parameter(part, root) for part in parts):
            continue
        layer = _layer(_KINDS[name], _value(weight, root), _value(bias, root), given)
        path = _free_name(root, name)
        root.add_module(path, layer.train(root.training))
        with root.graph.inserting_before(node):
            new = root.graph.call_module(path, (source,))
        new.meta = {**node.meta, "called": node.target}
        node.replace_all_uses_with(new)
        root.graph.erase_node(node)
        taken.update(parts)
    for node in taken:
        _drop(root, node)
    root.recompile()


def _is_parameter(part: Any, root: fx.GraphModule) -> bool:
    is_attribute = isinstance(part, fx.Node) and part.op == "get_attr"
    return is_attribute and isinstance(_value(part, root), nn.Parameter)


def _value(part: Any, root: fx.GraphModule) -> Any:
    return None if part is None else value_at(root, part.target)


def _layer(kind: Any, weight: Any, bias: Any, settings: dict[str, Any]) -> Any:
    outs, ins, *kernel = weight.shape
    if kernel:
        settings = {"kernel_size": tuple(kernel), **settings}
    layer = kind(
        ins * settings.get("groups", 1), outs, bias=bias is not None, device="meta", **settings
    )
    layer.weight = weight
    if bias is not None:
        layer.bias = bias
    return layer


def _free_name(root: fx.GraphModule, name: str) -> str:
    number = 0
    while hasattr(root, f"{name}_{number}"):
        number += 1
    return f"{name}_{number}"


def _drop(root: fx.GraphModule, node: fx.Node) -> None:
    """Drops an attribute's node, and, where no other looks at it, the attribute."""
    if node.users:
        return
    path = str(node.target)
    root.graph.erase_node(node)
    if not root.graph.find_nodes(op="get_attr", target=path):
        owner, _, name = path.rpartition(".")
        delattr(root.get_submodule(owner), name)
