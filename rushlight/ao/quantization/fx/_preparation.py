"""The first step on a graph: layers are fused, and observers stand where numbers will be rounded.

An observer stands behind each result that will be quantized, and before each input that is not yet.
What the second step needs is in the meta of nodes: "qconfig", and "pattern" of those that have one
of the back end's patterns and dtypes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import fx, nn
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.qat import WithFakeQuant
from rushlight.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    ObservationType,
)
from rushlight.ao.quantization.fake_quantize import FakeQuantizeBase
from rushlight.ao.quantization.fx._calls import calls_to_layers
from rushlight.ao.quantization.fx._fusion import fuse_graph
from rushlight.ao.quantization.fx._matching import Match, Patterns, dtypes_for
from rushlight.ao.quantization.fx.custom_config import PrepareCustomConfig
from rushlight.ao.quantization.observer import ObserverBase, ReuseInputObserver
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping
from rushlight.ao.quantization.quant_type import QuantType

__all__ = ["is_observer", "prepare_graph", "scope_of", "traced"]


class _Tracer(fx.Tracer):
    def __init__(self, custom: PrepareCustomConfig) -> None:
        super().__init__()
        self.names = {*custom.non_traceable_module_names, *custom.standalone_module_names}
        observed = custom.float_to_observed_mapping.get(QuantType.STATIC, {})
        self.classes = (
            *custom.non_traceable_module_classes,
            *custom.standalone_module_classes,
            *observed,
        )

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if module_qualified_name in self.names or isinstance(m, self.classes):
            return True
        if isinstance(m, nnq.FXFloatFunctional):
            return False
        is_ours = m.__module__.startswith("rushlight.ao.nn.")
        return is_ours or super().is_leaf_module(m, module_qualified_name)


def traced(model: nn.Module, custom: PrepareCustomConfig) -> fx.GraphModule:
    """Returns a copy of a network as a graph."""
    model = copy.deepcopy(model)
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nnq.FloatFunctional:
                setattr(module, name, nnq.FXFloatFunctional())
    result = fx.GraphModule(model, _Tracer(custom).trace(model))
    for name in custom.preserved_attributes:
        setattr(result, name, getattr(model, name))
    result.train(model.training)
    return result


class _Values(fx.Interpreter):
    """Notes which nodes give floats that can be quantized, and what networks inside are given."""

    def run_node(self, n: fx.Node) -> Any:
        n.meta["given"] = self.map_nodes_to_values(n.args, n)
        value = super().run_node(n)
        n.meta["is_float"] = isinstance(value, rl.Tensor) and value.dtype is rl.float32
        return value


def is_observer(node: Any, root: fx.GraphModule) -> bool:
    """Returns whether a node calls an observer."""
    if not isinstance(node, fx.Node) or node.op != "call_module":
        return False
    module = root.get_submodule(str(node.target))
    return isinstance(module, ObserverBase | FakeQuantizeBase) and (
        str(node.target).rpartition(".")[2].startswith("activation_post_process_")
    )


def scope_of(node: fx.Node) -> tuple[str, Any]:
    """Returns the path and the class of the module in which a node was recorded."""
    stack = node.meta.get("nn_module_stack") or {"": ("", None)}
    path, kind = list(stack.values())[-1]
    return path, kind


def prepare_graph(
    model: nn.Module,
    mapping: QConfigMapping,
    is_qat: bool,
    example_inputs: Any,
    custom: PrepareCustomConfig,
    backend: BackendConfig,
) -> fx.GraphModule:
    """Returns a network with observers."""
    root = traced(model, custom)
    calls_to_layers(root)
    fuse_graph(root, is_qat, backend)
    if example_inputs is not None:
        _note_values(root, example_inputs)
    return _Preparation(root, mapping, is_qat, custom, backend).run()


def _note_values(root: fx.GraphModule, example_inputs: Any) -> None:
    inputs = example_inputs if isinstance(example_inputs, list | tuple) else (example_inputs,)
    probe = copy.deepcopy(root).eval()
    with rl.no_grad():
        _Values(probe).run(*inputs)
    for node, seen in zip(root.graph.nodes, probe.graph.nodes, strict=True):
        node.meta["is_float"], node.meta["given"] = seen.meta["is_float"], seen.meta["given"]


def _is_shared(match: Match) -> bool:
    """Whether a pattern's result has the scale of its input."""
    by_tensors = match.config._num_tensor_args_to_observation_type
    tensors = [a for a in match.root.args if isinstance(a, fx.Node)]
    kind = by_tensors.get(len(tensors), match.config.observation_type)
    return kind is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT


class _Preparation:
    def __init__(
        self,
        root: fx.GraphModule,
        mapping: QConfigMapping,
        is_qat: bool,
        custom: PrepareCustomConfig,
        backend: BackendConfig,
    ) -> None:
        self.root, self.graph, self.mapping = root, root.graph, mapping
        self.is_qat, self.custom, self.backend = is_qat, custom, backend
        self.observed_classes = custom.float_to_observed_mapping.get(QuantType.STATIC, {})
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        self.quantized_inputs = {placeholders[i] for i in custom.input_quantized_indexes}

    def run(self) -> fx.GraphModule:
        nodes = list(self.graph.nodes)
        self._note_qconfigs(nodes)
        matches = self._matches(nodes)
        for node in nodes:
            if node.op == "output":
                self._observe_returned(node)
            elif self._standalone(node):
                self._prepare_alone(node)
            elif node in matches:
                self._observe(node, matches[node])
        for node in nodes:
            node.meta.pop("given", None)
        self.root.graph.lint()
        result = fx.GraphModule(self.root, self.graph)
        for name in self.custom.preserved_attributes:
            setattr(result, name, getattr(self.root, name))
        result.meta["quantized_inputs"] = list(self.custom.input_quantized_indexes)
        result.meta["quantized_outputs"] = list(self.custom.output_quantized_indexes)
        return result

    def _note_qconfigs(self, nodes: list[fx.Node]) -> None:
        used: dict[Any, int] = {}
        for node in nodes:
            if node.op not in ("call_module", "call_function", "call_method"):
                node.meta["qconfig"] = None
                continue
            path, around = scope_of(node)
            if node.op == "call_module":
                layer: Any = self.root.get_submodule(str(node.target))
                is_sequence = isinstance(layer, nn.Sequential) and len(layer)
                kind = node.meta.get("called", type(layer[0] if is_sequence else layer))
                name = str(node.target)
                scope, around = name.rpartition(".")[0], None
            else:
                name, kind, scope = path, node.target, path
            count = used[scope, kind] = used.get((scope, kind), -1) + 1
            node.meta["qconfig"] = self.mapping.find(name, kind, count, scope, around)

    def _matches(self, nodes: list[fx.Node]) -> dict[fx.Node, Match]:
        """The patterns of the graph that are quantized, by each of their nodes."""
        patterns = Patterns.of(self.backend, lambda config: config.fuser_method is None)
        matches: dict[fx.Node, Match] = {}
        taken: set[fx.Node] = set()
        for node in reversed(nodes):
            if node in taken:
                continue
            if node.op == "call_module" and self._observed_class(node) is not None:
                match = Match(BackendPatternConfig(), node)
            else:
                match = patterns.find(node, self.root)
            if match is None:
                continue
            inside = match.inside()
            taken.update(inside)
            qconfig = match.root.meta["qconfig"]
            is_custom = not match.config.dtype_configs
            if qconfig is None or not (is_custom or dtypes_for(match.config, qconfig)):
                continue
            if match.config.observation_type is ObservationType.INPUT_OUTPUT_NOT_OBSERVED:
                continue
            matches.update(dict.fromkeys(inside, match))
        return matches

    def _observed_class(self, node: fx.Node) -> Any:
        return self.observed_classes.get(type(self.root.get_submodule(str(node.target))))

    def _observe(self, node: fx.Node, match: Match) -> None:
        # Recurrent layers give tuples, of which only the input is rounded.
        is_float = node.meta.get("is_float", True)
        if not is_float and match.config.root_module is None:
            return
        qconfig, inside = match.root.meta["qconfig"], match.inside()
        if node is match.root and node.op == "call_module":
            self._take_layer(node, match.config, qconfig)
        inputs = [n for n in node.all_input_nodes if n not in inside]
        inputs = [n for n in inputs if n.meta.get("is_float", True)]
        activation = qconfig.activation()
        if activation.dtype is rl.float32:
            return
        is_dynamic = getattr(activation, "is_dynamic", False)
        if isinstance(activation, ReuseInputObserver):
            inputs = []
        for before in inputs[:1] if is_dynamic else inputs:
            node.replace_input_with(before, self._observed(before, qconfig, activation))
        if node is not match.last or is_dynamic or not is_float:
            return
        after = self._insert(node, qconfig.activation)
        node.replace_all_uses_with(after, lambda user: user is not after)
        if _is_shared(match):
            self._share(node, after)

    def _take_layer(self, node: fx.Node, config: BackendPatternConfig, qconfig: Any) -> None:
        """Gives a layer its qconfig, and makes it what trains or is observed."""
        layer: Any = self.root.get_submodule(str(node.target))
        observed = self._observed_class(node)
        layer.qconfig = qconfig
        if isinstance(layer, nn.Sequential) and len(layer):
            layer[0].qconfig = qconfig
        if observed is not None:
            self.root.set_submodule(str(node.target), observed.from_float(layer))
        elif self.is_qat and config.qat_module and not isinstance(layer, WithFakeQuant):
            self.root.set_submodule(str(node.target), config.qat_module.from_float(layer))
        node.meta["pattern"] = config

    def _insert(self, before: fx.Node, make: Callable[[], nn.Module]) -> fx.Node:
        number = 0
        while hasattr(self.root, name := f"activation_post_process_{number}"):
            number += 1
        self.root.add_module(name, make().train(self.root.training))
        with self.graph.inserting_after(before):
            result = self.graph.call_module(name, (before,))
        result.meta["is_float"] = True
        return result

    def _observed(self, before: fx.Node, qconfig: Any, like: Any) -> fx.Node:
        """The observer of a value: one that is there, if it is of the same dtype."""
        wanted = like.dtype, getattr(like, "is_dynamic", False)
        if before in self.quantized_inputs:
            return before
        for node in (before, *before.users):
            if is_observer(node, self.root) and (node is before or node.args[0] is before):
                module: Any = self.root.get_submodule(str(node.target))
                if (module.dtype, getattr(module, "is_dynamic", False)) == wanted:
                    return node
        return self._insert(before, qconfig.activation)

    def _share(self, node: fx.Node, after: fx.Node) -> None:
        """Lets the inputs and the result of a node have the observer of the first input."""
        known = self._observer_before(node)
        if known is None:
            after.replace_all_uses_with(node)
            self.graph.erase_node(after)
            self.root.delete_submodule(str(after.target))
            return
        first = self.root.get_submodule(str(known.target))
        others = [n for n in node.all_input_nodes if is_observer(n, self.root)]
        for other in (*others, after):
            self.root.set_submodule(str(other.target), first)

    def _observer_before(self, node: fx.Node) -> fx.Node | None:
        """The observer of a node's first input, or of what that is made of."""
        source: Any = node
        while isinstance(source, fx.Node) and not is_observer(source, self.root):
            source = source.args[0] if source.args else None
            if isinstance(source, list | tuple):
                source = source[0] if source else None
        return source

    def _observe_returned(self, node: fx.Node) -> None:
        results: Any = node.args[0]
        several = isinstance(results, list | tuple)
        for index in self.custom.output_quantized_indexes:
            value = results[index] if several else results
            if not is_observer(value, self.root) and self.mapping.global_qconfig is not None:
                make = self.mapping.global_qconfig.activation
                node.replace_input_with(value, self._insert(value, make))

    def _standalone(self, node: fx.Node) -> Any:
        """How a node's module is prepared as a network of its own, None if it is not."""
        if node.op != "call_module":
            return None
        names, classes = self.custom.standalone_module_names, self.custom.standalone_module_classes
        kind = type(self.root.get_submodule(str(node.target)))
        return names.get(str(node.target)) or classes.get(kind)

    def _prepare_alone(self, node: fx.Node) -> None:
        entry, layer = self._standalone(node), self.root.get_submodule(str(node.target))
        mapping = entry.qconfig_mapping
        if mapping is None:
            mapping = QConfigMapping().set_global(node.meta["qconfig"])
        elif isinstance(mapping, dict):
            mapping = QConfigMapping.from_dict(mapping)
        inside = prepare_graph(
            layer,
            mapping,
            self.is_qat,
            entry.example_inputs or node.meta.get("given"),
            entry.prepare_custom_config or PrepareCustomConfig(),
            entry.backend_config or self.backend,
        )
        inside.meta["is_standalone"] = True
        self.root.set_submodule(str(node.target), inside)
