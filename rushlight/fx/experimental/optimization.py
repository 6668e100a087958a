"""Making networks that no longer learn smaller: batch norms folded, dropout left out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import nn
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

_FOLDS: dict[tuple[type[nn.Module], type[nn.Module]], Callable[..., nn.Module]] = {
    (nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn_eval,
    (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn_eval,
    (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn_eval,
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn_eval,
}


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Returns whether a node calls a module of the second class on a call of one of the first.

    Args:
        pattern: the two classes.
        node: the node that comes second.
        modules: the modules by their paths.
    """
    if not node.args:
        return False
    return all(
        isinstance(call, Node)
        and call.op == "call_module"
        and type(modules.get(call.target)) is expected
        for expected, call in zip(pattern, (node.args[0], node), strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Installs a module in the place of the one that a node calls.

    Args:
        node: the node.
        modules: the modules by their paths, "" among them.
        new_module: the module.
    """
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Returns a module that does the same with its batch norms folded into the layers before them.

    Args:
        model: a network in evaluation mode.
        inplace: whether its own layers may be changed.
        no_trace: whether it is a GraphModule already.

    Raises:
        AssertionError: if a layer to be folded is in training mode.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).eval()
        >>> torch.fx.experimental.optimization.fuse(net)
        Sequential(
          (0): Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))
        )
    """
    if not inplace:
        model = copy.deepcopy(model)
    if no_trace and isinstance(model, GraphModule):
        traced = model
    else:
        traced = GraphModule(model, Tracer().trace(model), type(model).__name__)
    modules = dict(traced.named_modules())
    for pattern, fold in _FOLDS.items():
        for node in traced.graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            first, second = modules[node.args[0].target], modules[node.target]
            if not second.track_running_stats or _calls(traced, node.args[0].target) > 1:
                continue
            replace_node_module(node.args[0], modules, fold(first, second))
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def _calls(module: GraphModule, path: str) -> int:
    """How often a graph calls a module; a layer that is called twice cannot be changed for one."""
    return len(module.graph.find_nodes(op="call_module", target=path))


def remove_dropout(model: nn.Module) -> nn.Module:
    """Returns a module that does the same without its dropout layers.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout())
        >>> torch.fx.experimental.optimization.remove_dropout(net)
        Sequential(
          (0): Linear(in_features=2, out_features=3, bias=True)
        )
    """
    traced = GraphModule(model, Tracer().trace(model), type(model).__name__)
    modules = dict(traced.named_modules())
    for node in traced.graph.find_nodes(op="call_module"):
        if isinstance(modules[node.target], (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced
