"""Where a network quantized on its graph goes away from its float form, node by node.

extract_weights compares weights; add_loggers what nodes of both networks give for one input;
add_shadow_loggers what each quantized node gives and its float form would for the same input.
Results are nested dicts: by layer, kind of result and name of the network a list of entries, whose
"values" are tensors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as rl
from rushlight import Tensor, fx, nn
from rushlight.ao.quantization.backend_config._operators import joins, shared
from rushlight.ao.quantization.fx._matching import call_name
from rushlight.ao.quantization.fx._preparation import is_observer
from rushlight.ao.quantization.quantize_fx import fuse_fx

__all__ = [
    "OutputLogger",
    "add_loggers",
    "add_shadow_loggers",
    "extend_logger_results_with_comparison",
    "extract_logger_info",
    "extract_shadow_logger_info",
    "extract_weights",
]

_PATTERNS = [config.pattern for config in (*shared([]), *joins([]))]
_PLAIN_LAYERS = (*(p for p in _PATTERNS if isinstance(p, type)), nn.Flatten)
_PLAIN_CALLS = {call_name(p) for p in _PATTERNS if not isinstance(p, type | str)}
_PLAIN_CALLS |= {"quantize_per_tensor", "quantize_per_tensor_dynamic", "getattr", "getitem"}
_Results = dict[str, dict[str, dict[str, list[dict[str, Any]]]]]


class OutputLogger(nn.Module):
    """Keeps the results of a node in `stats`, and notes which node it is.

    Args:
        ref_node_name: the node that the logger belongs to.
        prev_node_name: the node whose result it sees.
        model_name: the network's name.
        ref_name: names the pair of nodes in both networks.
        prev_node_target_type: what the node that is seen calls.
        ref_node_target_type: what the node that the logger belongs to calls.
        results_type: "node_output" or "node_input".
        index_within_arg: the place in a list of inputs.
        index_of_arg: the place among inputs.
        fqn: the module's path, "" for calls.
        qconfig_str: the qconfig, where it is told.
    """

    def __init__(
        self,
        ref_node_name: str,
        prev_node_name: str,
        model_name: str,
        ref_name: str,
        prev_node_target_type: str,
        ref_node_target_type: str,
        results_type: str,
        index_within_arg: int,
        index_of_arg: int,
        fqn: str | None,
        qconfig_str: str | None = "",
    ) -> None:
        super().__init__()
        self.ref_node_name, self.prev_node_name = ref_node_name, prev_node_name
        self.model_name, self.ref_name = model_name, ref_name
        self.prev_node_target_type = prev_node_target_type
        self.ref_node_target_type = ref_node_target_type
        self.results_type, self.fqn, self.qconfig_str = results_type, fqn, qconfig_str
        self.index_within_arg, self.index_of_arg = index_within_arg, index_of_arg
        self.stats: list[Any] = []
        self.stats_rnn: list[Any] = []
        self.enabled = True

    def forward(self, x: Any) -> Any:
        """Notes a tensor, or the tuple of a recurrent layer, and returns it."""
        if self.enabled and isinstance(x, Tensor):
            self.stats.append(x.detach())
        elif self.enabled and isinstance(x, tuple):
            self.stats_rnn.append(x)
        return x

    def _entry(self) -> dict[str, Any]:
        names = (
            "ref_node_name", "ref_node_target_type", "prev_node_name", "prev_node_target_type",
            "index_within_arg", "index_of_arg", "fqn", "qconfig_str",
        )  # fmt: skip
        values = self.stats or self.stats_rnn
        return {
            "type": self.results_type,
            "values": values,
            **{name: getattr(self, name) for name in names},
        }


def _graph_of(model: Any) -> fx.GraphModule:
    return model if isinstance(model, fx.GraphModule) else fuse_fx(model)


def _pairs(a: fx.GraphModule, b: fx.GraphModule) -> Iterator[tuple[fx.Node, fx.Node]]:
    """Nodes of both graphs that belong together."""
    known = {node.name: node for node in a.graph.nodes}
    for node in b.graph.nodes:
        match = known.get(node.meta.get("origin", node.name))
        if match is not None and _is_counted(node, b):
            yield match, node


def _is_counted(node: fx.Node, root: fx.GraphModule) -> bool:
    if node.op == "call_module":
        layer = root.get_submodule(str(node.target))
        return not isinstance(layer, _PLAIN_LAYERS) and not is_observer(node, root)
    return node.op == "call_function" and call_name(node.target) not in _PLAIN_CALLS


def _kind(node: fx.Node, root: fx.GraphModule) -> str:
    target: Any = node.target
    if node.op == "call_module":
        target = type(root.get_submodule(target))
    return f"{target.__module__}.{target.__name__}"


def _weights(module: Any) -> list[Any]:
    """The weights of a layer, float or quantized."""
    if isinstance(module, nn.Sequential):
        module = module[0]
    if hasattr(module, "get_weight"):  # of reference layers, and of recurrent ones
        found = module.get_weight()
        return list(found.values()) if isinstance(found, dict) else [found]
    weight = getattr(module, "weight", None)
    if weight is None:
        return [p.detach() for n, p in module.named_parameters() if n.startswith("weight")]
    return [weight() if callable(weight) else weight.detach()]


def extract_weights(
    model_name_a: str,
    model_a: nn.Module,
    model_name_b: str,
    model_b: nn.Module,
    base_name_to_sets_of_related_ops: Any = None,
    unmatchable_types_map: Any = None,
    op_to_type_to_weight_extraction_fn: Any = None,
) -> _Results:
    """Returns the weights of layers of two networks that belong together.

    Args:
        model_name_a: names the first network in the result.
        model_a: the float network, or one that was prepared.
        model_name_b: names the second.
        model_b: the quantized network.
        base_name_to_sets_of_related_ops: has no effect, as the others below.
        unmatchable_types_map: as above.
        op_to_type_to_weight_extraction_fn: as above.

    Example:
        >>> from rushlight.ao.ns._numeric_suite_fx import extract_weights
        >>> from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 2)).eval()
        >>> mapping = torch.ao.quantization.get_default_qconfig_mapping()
        >>> prepared = prepare_fx(network, mapping, (torch.ones(1, 3),))
        >>> y = prepared(torch.ones(1, 3))
        >>> both = extract_weights("float", prepared, "small", convert_fx(prepared))
        >>> list(both["_0"]["weight"])
        ['float', 'small']
    """
    a, b = _graph_of(model_a), _graph_of(model_b)
    results: _Results = {}
    for node_a, node_b in _pairs(a, b):
        if node_a.op != "call_module" or node_b.op != "call_module":
            continue
        entries = {}
        for name, node, root in ((model_name_a, node_a, a), (model_name_b, node_b, b)):
            values = _weights(root.get_submodule(str(node.target)))
            noted = OutputLogger(
                node.name, node.name, name, node_b.name, _kind(node, root), _kind(node, root),
                "weight", 0, 0, str(node.target),
            )  # fmt: skip
            noted.stats = values
            entries[name] = [noted._entry()]
        if all(entry[0]["values"] for entry in entries.values()):
            results[node_b.name] = {"weight": entries}
    return results


def _log(
    root: fx.GraphModule,
    seen: fx.Node,
    node: fx.Node,
    kind: str,
    label: str,
    make: Callable[..., nn.Module],
    named: tuple[str, str],
    place: tuple[int, int] | None = None,
) -> None:
    """Puts a logger behind a node: for its result, or for an input at a place of another node."""
    name, pair = named
    arguments = (
        node.name,
        seen.name,
        name,
        pair,
        _kind(seen, root) if seen.op in ("call_module", "call_function") else str(seen.target),
        kind,
        "node_output" if place is None else "node_input",
        *(place or (0, 0)),
        str(node.target) if node.op == "call_module" else "",
    )
    number = 0
    while hasattr(root, path := f"{seen.name}_{label}_{number}"):
        number += 1
    root.add_module(path, make(*arguments))
    users = [node] if place else list(seen.users)
    with root.graph.inserting_after(seen):
        logger = root.graph.call_module(path, (seen,))
    for user in users:
        user.replace_input_with(seen, logger)


def add_loggers(
    name_a: str,
    model_a: nn.Module,
    name_b: str,
    model_b: nn.Module,
    logger_cls: Callable[..., nn.Module],
    should_log_inputs: bool = False,
    base_name_to_sets_of_related_ops: Any = None,
    unmatchable_types_map: Any = None,
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Returns two networks with loggers behind the nodes that belong together.

    Args:
        name_a: names the first network in results.
        model_a: the float network, or one that was prepared.
        name_b: names the second.
        model_b: the quantized network.
        logger_cls: makes the loggers, with the arguments of OutputLogger.
        should_log_inputs: puts loggers before these nodes, too.
        base_name_to_sets_of_related_ops: has no effect.
        unmatchable_types_map: has no effect.
    """
    a, b = (copy.deepcopy(_graph_of(model)) for model in (model_a, model_b))
    for node_a, node_b in list(_pairs(a, b)):
        for name, node, root in ((name_a, node_a, a), (name_b, node_b, b)):
            kind, named = _kind(node, root), (name, node_b.name)
            if should_log_inputs and node.all_input_nodes:
                before = node.all_input_nodes[0]
                if before.op != "get_attr":
                    _log(root, before, node, kind, "ns_logger", logger_cls, named, (0, 0))
            seen = next((u for u in node.users if is_observer(u, root)), node)
            _log(root, seen, node, kind, "ns_logger", logger_cls, named)
    for root in (a, b):
        root.recompile()
    return a, b


def add_shadow_loggers(
    name_a: str,
    model_a: nn.Module,
    name_b: str,
    model_b: nn.Module,
    logger_cls: Callable[..., nn.Module],
    should_log_inputs: bool = False,
    base_name_to_sets_of_related_ops: Any = None,
    node_type_to_io_type_map: Any = None,
    unmatchable_types_map: Any = None,
) -> fx.GraphModule:
    """Returns the second network, which also runs layers of the first on the inputs of its own.

    Args:
        name_a: names the first network in results.
        model_a: the float network, or one that was prepared.
        name_b: names the second.
        model_b: the quantized network.
        logger_cls: makes the loggers, with the arguments of OutputLogger.
        should_log_inputs: has no effect: both see the same inputs.
        base_name_to_sets_of_related_ops: has no effect, as the others below.
        node_type_to_io_type_map: as above.
        unmatchable_types_map: as above.
    """
    a, b = _graph_of(model_a), copy.deepcopy(_graph_of(model_b))
    for node_a, node_b in list(_pairs(a, b)):
        if node_a.op == node_b.op == "call_module":
            path = f"{node_b.name}_shadow_copy_0"
            b.add_module(path, copy.deepcopy(a.get_submodule(str(node_a.target))))
            target: Any = path
        elif len(node_b.all_input_nodes) == 3 and node_a.op == "call_function":
            target = node_a.target  # of one tensor, beside the form of its result
        else:
            continue
        _shadow(b, node_a, node_b, target, _kind(node_a, a), (name_a, name_b), logger_cls)
    b.recompile()
    return b


def _shadow(
    root: fx.GraphModule,
    node_a: fx.Node,
    node_b: fx.Node,
    target: Any,
    kind: str,
    names: tuple[str, str],
    make: Callable[..., nn.Module],
) -> None:
    graph, source = root.graph, node_b.all_input_nodes[0]
    with graph.inserting_before(node_b):
        value = graph.call_function(rl.dequantize, (source,))
        if node_a.op == "call_module":
            shadow = graph.call_module(target, (value, *node_b.args[1:]), node_b.kwargs)
        else:
            shadow = graph.call_function(target, (value, *node_a.args[1:]), node_a.kwargs)
        path = f"{shadow.name}_ns_logger_a_0"
        fqn = str(node_b.target) if node_b.op == "call_module" else ""
        arguments = (shadow.name, shadow.name, names[0], node_b.name, kind, kind)
        root.add_module(path, make(*arguments, "node_output", 0, 0, fqn))
        graph.call_module(path, (shadow,))
    named = (names[1], node_b.name)
    _log(root, node_b, node_b, _kind(node_b, root), "ns_logger_b", make, named)


def extract_logger_info(
    model_a: nn.Module,
    model_b: nn.Module,
    logger_cls: Callable[..., nn.Module],
    model_name_to_use_for_layer_names: str,
) -> _Results:
    """Returns what the loggers of two networks have noted, by the node of the second.

    Args:
        model_a: the first network of add_loggers, after it ran.
        model_b: the second.
        logger_cls: the class of the loggers.
        model_name_to_use_for_layer_names: has no effect: the names are those of the second.
    """
    results: _Results = {}
    for model in (model_a, model_b):
        for module in model.modules():
            if isinstance(module, OutputLogger):
                by_kind = results.setdefault(module.ref_name, {})
                by_name = by_kind.setdefault(module.results_type, {})
                by_name.setdefault(module.model_name, []).append(module._entry())
    return results


def extract_shadow_logger_info(
    model_a_shadows_b: nn.Module,
    logger_cls: Callable[..., nn.Module],
    model_name_to_use_for_layer_names: str,
) -> _Results:
    """Returns what the loggers of add_shadow_loggers have noted, by the quantized node."""
    return extract_logger_info(
        nn.Module(), model_a_shadows_b, logger_cls, model_name_to_use_for_layer_names
    )


def extend_logger_results_with_comparison(
    results: _Results,
    model_name_1: str,
    model_name_2: str,
    comparison_fn: Callable[[Any, Any], Any],
    comparison_name: str,
) -> None:
    """Adds to the entries of the second network how far they are from those of the first.

    Args:
        results: of extract_weights, extract_logger_info or extract_shadow_logger_info.
        model_name_1: the first network's name.
        model_name_2: the second's, whose entries get a list of what comparison_fn returned.
        comparison_fn: a function of both tensors, such as torch.ao.ns.fx.utils.compute_sqnr.
        comparison_name: the key of the list.
    """
    for by_kind in results.values():
        for by_name in by_kind.values():
            for first, second in zip(by_name[model_name_1], by_name[model_name_2], strict=True):
                values = zip(first["values"], second["values"], strict=True)
                second[comparison_name] = [comparison_fn(*pair) for pair in values]
