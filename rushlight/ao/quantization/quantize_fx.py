"""The steps from a network of floats to one of integers, on its graph.

prepare_fx records the network, fuses layers with what follows them and puts observers where
numbers will be rounded; convert_fx replaces what was observed. Where tensors become quantized and
floats again follows from the graph, so that no stubs are needed.

Each node is of one kind (its meta "quantization"):
  own     a layer, a sum, a product or a join: its result has a scale of its own, which is observed
  shared  reshaping, pooling, relu: quantized if its input is, in the same form
  weight  a layer that takes and gives floats, whose weight alone is quantized
"""

from __future__ import annotations

import copy
from typing import Any

import rushlight as rl
from rushlight import _quantized_ops, fx, nn
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.quantization._fx_calls import calls_to_layers
from rushlight.ao.quantization._fx_fusion import fuse_graph, is_relu
from rushlight.ao.quantization._fx_kinds import OWN_CALLS, call_name, is_shared
from rushlight.ao.quantization.observer import PlaceholderObserver
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping
from rushlight.ao.quantization.quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_QAT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
)

__all__ = ["PrepareCustomConfig", "convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


class PrepareCustomConfig:
    """What prepare_fx is to leave alone.

    Example:
        >>> from rushlight.ao.quantization.quantize_fx import PrepareCustomConfig
        >>> custom = PrepareCustomConfig().set_non_traceable_module_names(["head"])
    """

    def __init__(self) -> None:
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[Any] = []
        self.preserved_attributes: list[str] = []

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Sets the names of modules that stay one node."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[Any]) -> PrepareCustomConfig:
        """Sets the classes of modules that stay one node."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> PrepareCustomConfig:
        """Sets the names of attributes that the result has too."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, prepare_custom_config_dict: dict[str, Any]) -> PrepareCustomConfig:
        """Returns one made from its older form, a dict of non_traceable_module_name and the like.

        Raises:
            ValueError: for a key that has no effect here.
        """
        given, custom = dict(prepare_custom_config_dict), cls()
        custom.non_traceable_module_names = given.pop("non_traceable_module_name", [])
        custom.non_traceable_module_classes = given.pop("non_traceable_module_class", [])
        custom.preserved_attributes = given.pop("preserved_attributes", [])
        if given:
            raise ValueError(
                f"PrepareCustomConfig: {', '.join(given)} has no effect here. Give "
                "non_traceable_module_name, non_traceable_module_class or preserved_attributes."
            )
        return custom


class _Tracer(fx.Tracer):
    def __init__(self, custom: PrepareCustomConfig) -> None:
        super().__init__()
        self.custom = custom

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        custom = self.custom
        if module_qualified_name in custom.non_traceable_module_names:
            return True
        if isinstance(m, tuple(custom.non_traceable_module_classes)):
            return True
        if isinstance(m, nnq.FXFloatFunctional):
            return False
        is_ours = m.__module__.startswith("rushlight.ao.nn.")
        return is_ours or super().is_leaf_module(m, module_qualified_name)


def _traced(model: nn.Module, custom: Any) -> fx.GraphModule:
    if not isinstance(custom, PrepareCustomConfig):
        custom = PrepareCustomConfig.from_dict(custom or {})
    model = copy.deepcopy(model)
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nnq.FloatFunctional:
                setattr(module, name, nnq.FXFloatFunctional())
    graph = _Tracer(custom).trace(model)
    result = fx.GraphModule(model, graph, type(model).__name__)
    for name in custom.preserved_attributes:
        setattr(result, name, getattr(model, name))
    result.train(model.training)
    return result


class _Values(fx.Interpreter):
    """Notes which nodes give floats that can be quantized."""

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        n.meta["is_float"] = isinstance(value, rl.Tensor) and value.dtype is rl.float32
        return value


def fuse_fx(
    model: nn.Module, fuse_custom_config: Any = None, backend_config: Any = None
) -> fx.GraphModule:
    """Returns the graph of a network in evaluation with batch norms folded in, and relus fused.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        >>> graph = torch.ao.quantization.quantize_fx.fuse_fx(network.eval())
        >>> [node.target for node in graph.graph.nodes]
        ['input', '0', 'output']
    """
    result = _traced(model, None)
    fuse_graph(result, is_qat=False)
    return result


def prepare_fx(
    model: nn.Module,
    qconfig_mapping: Any,
    example_inputs: Any,
    prepare_custom_config: Any = None,
    _equalization_config: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:
    """Returns a network with observers, to be run on examples.

    Args:
        model: the network in evaluation; it must be possible to record it (torch.fx).
        qconfig_mapping: a QConfigMapping, or its older form, a dict.
        example_inputs: a tuple of inputs, which tell tensors from numbers in the graph.
        prepare_custom_config: a PrepareCustomConfig, or its older form, a dict.

    Returns:
        A GraphModule; give it to convert_fx when it has seen examples.

    Example:
        >>> from rushlight.ao.quantization import get_default_qconfig_mapping
        >>> from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx
        >>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU()).eval()
        >>> x = torch.randn(16, 4)
        >>> prepared = prepare_fx(network, get_default_qconfig_mapping(), (x,))
        >>> y = prepared(x)
        >>> small = convert_fx(prepared)
        >>> bool((small(x) - y).abs().max() < 0.05)
        True
    """
    return _prepare(model, qconfig_mapping, example_inputs, prepare_custom_config, False)


def prepare_qat_fx(
    model: nn.Module,
    qconfig_mapping: Any,
    example_inputs: Any,
    prepare_custom_config: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:
    """Returns a network that rounds weights and results, to be trained.

    Args:
        model: the network.
        qconfig_mapping: get_default_qat_qconfig_mapping() for one, or a dict.
        example_inputs: a tuple of inputs, which tell tensors from numbers in the graph.
        prepare_custom_config: a PrepareCustomConfig, or its older form, a dict.

    Returns:
        A GraphModule; give it to convert_fx in evaluation when it is trained.
    """
    return _prepare(model, qconfig_mapping, example_inputs, prepare_custom_config, True)


def _prepare(
    model: nn.Module, mapping: Any, example_inputs: Any, custom: Any, is_qat: bool
) -> fx.GraphModule:
    if isinstance(mapping, dict):
        mapping = QConfigMapping.from_dict(mapping)
    if not isinstance(mapping, QConfigMapping):
        raise TypeError(
            "prepare_fx: qconfig_mapping must be a QConfigMapping, but is "
            f"{type(mapping).__name__}."
        )
    graph_module = _traced(model, custom)
    calls_to_layers(graph_module)
    fuse_graph(graph_module, is_qat)
    if example_inputs is not None:
        inputs = example_inputs if isinstance(example_inputs, list | tuple) else (example_inputs,)
        probe = copy.deepcopy(graph_module).eval()
        with rl.no_grad():
            _Values(probe).run(*inputs)
        for node, seen in zip(graph_module.graph.nodes, probe.graph.nodes, strict=True):
            node.meta["is_float"] = seen.meta["is_float"]
    for node in graph_module.graph.nodes:
        found = _kind_of(node, graph_module, mapping, is_qat)
        if found:
            node.meta["quantization"] = found
    if is_qat:
        _use_qat_layers(graph_module)
    _insert_observers(graph_module)
    return graph_module


def _kind_of(node: fx.Node, root: fx.GraphModule, mapping: QConfigMapping, is_qat: bool) -> Any:
    """The node's kind and qconfig; None for one that stays as it is."""
    if is_relu(node, root) and (before := _sum_before(node)):
        return ("own", before.meta["quantization"][1])
    if is_shared(node, root):
        return ("shared", None)
    if node.op == "call_module":
        return _kind_of_layer(node, root, mapping, is_qat)
    is_float = node.meta.get("is_float", True)
    if not is_float or call_name(node) not in OWN_CALLS or not _has_tensors(node):
        return None
    qconfig = mapping.find("", node.target)
    return ("own", qconfig) if qconfig is not None and _has_scale(qconfig.activation()) else None


def _kind_of_layer(
    node: fx.Node, root: fx.GraphModule, mapping: QConfigMapping, is_qat: bool
) -> Any:
    layer = root.get_submodule(str(node.target))
    first: Any = layer[0] if isinstance(layer, nn.Sequential) and len(layer) else layer
    qconfig = mapping.find(str(node.target), node.meta.get("called", type(first)))
    if qconfig is None:
        return None
    activation = qconfig.activation()
    is_table = isinstance(first, nn.Embedding | nn.EmbeddingBag)
    is_trained = is_qat and type(layer) in DEFAULT_QAT_MODULE_MAPPINGS
    is_known = is_trained or type(layer) in DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    # Results of layers with quantized weights stay floats, and may be tuples of them.
    if type(layer) in DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS and (
        is_table or getattr(activation, "is_dynamic", False)
    ):
        kind = "weight"
    elif is_known and node.meta.get("is_float", True) and _has_scale(activation):
        kind = "own"
    else:
        return None
    layer.qconfig = first.qconfig = qconfig
    return (kind, qconfig)


def _has_scale(activation: Any) -> bool:
    """Whether an observer chooses the scale of results."""
    is_dynamic = getattr(activation, "is_dynamic", False)
    return not is_dynamic and not isinstance(activation, PlaceholderObserver)


def _has_tensors(node: fx.Node) -> bool:
    """Whether a sum, product or join is one of tensors alone."""
    first = node.args[0] if node.args else None
    operands: Any = first if isinstance(first, list | tuple) else node.args[:2]
    is_binary = isinstance(first, list | tuple) or len(operands) == 2
    return is_binary and all(
        isinstance(a, fx.Node) and a.meta.get("is_float", True) for a in operands
    )


def _sum_before(node: fx.Node) -> fx.Node | None:
    """The sum or product that only this relu uses: they are one."""
    before: Any = node.args[0] if node.args else None
    is_sum = isinstance(before, fx.Node) and call_name(before) in ("add", "mul")
    return before if is_sum and len(before.users) == 1 and "quantization" in before.meta else None


def _use_qat_layers(root: fx.GraphModule) -> None:
    for node in root.graph.nodes:
        if node.meta.get("quantization", ("",))[0] != "own" or node.op != "call_module":
            continue
        layer = root.get_submodule(node.target)
        if type(layer) in DEFAULT_QAT_MODULE_MAPPINGS:
            trained = DEFAULT_QAT_MODULE_MAPPINGS[type(layer)].from_float(layer)
            root.set_submodule(node.target, trained)


def _insert_observers(root: fx.GraphModule) -> None:
    """Puts an observer behind each result of its own, and each float that such a node takes.

    What is shared is seen by the observer of its input, as in PyTorch: pooling changes how often a
    number occurs.
    """
    graph = root.graph
    observed: dict[fx.Node, fx.Node] = {}  # a value and its observer's node

    def observe(node: fx.Node, name: str, users: Any) -> None:
        with graph.inserting_after(node):
            new = graph.call_module(name, (node,))
        new.meta["quantization"] = ("observer", None)
        observed[node] = observed[new] = new
        for user in users:
            user.replace_input_with(node, new)

    def fresh(qconfig: Any) -> str:
        name = f"activation_post_process_{len({n.target for n in observed.values()})}"
        root.add_module(name, qconfig.activation().train(root.training))
        return name

    for node in list(graph.nodes):
        kind, qconfig = node.meta.get("quantization", ("", None))
        inputs = [n for n in node.all_input_nodes if n.meta.get("is_float", True)]
        if kind == "own":
            is_merged = is_relu(node, root)  # with its sum, whose inputs have been observed
            for before in () if is_merged else inputs:
                if before not in observed:
                    observe(before, fresh(qconfig), [node])
                else:
                    node.replace_input_with(before, observed[before])
            if not any(is_relu(n, root) and _sum_before(n) is node for n in node.users):
                observe(node, fresh(qconfig), list(node.users))
        elif kind == "shared" and inputs and inputs[0] in observed:
            if node.meta.get("is_float", True):
                observe(node, str(observed[inputs[0]].target), list(node.users))
            else:
                observed[node] = observed[inputs[0]]  # a list of tensors
    root.recompile()


def convert_fx(
    graph_module: fx.GraphModule,
    convert_custom_config: Any = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: Any = None,
    backend_config: Any = None,
    keep_original_weights: bool = False,
) -> fx.GraphModule:
    """Returns the quantized network of one that was prepared and has seen examples.

    Args:
        graph_module: what prepare_fx returned, or prepare_qat_fx, trained and in evaluation.

    Returns:
        A GraphModule. Its state_dict holds integers and scales; it can be loaded into a network
        that went through the same steps.
    """
    root = copy.deepcopy(graph_module)
    _Conversion(root).run()
    root.graph.lint()
    root.recompile()
    return root


class _Conversion:
    """Walks a prepared graph once. `quantized` are the nodes whose values are quantized by then."""

    def __init__(self, root: fx.GraphModule) -> None:
        self.root, self.graph = root, root.graph
        self.quantized: set[fx.Node] = set()
        self.floats: dict[fx.Node, fx.Node] = {}

    def run(self) -> None:
        for node in list(self.graph.nodes):
            kind = node.meta.get("quantization", ("",))[0]
            if kind == "observer":
                self._replace_observer(node)
            elif kind == "own" and self._observer_of(node) is None:
                continue  # a sum whose relu comes next
            elif kind == "own":
                self._make_own(node)
            elif kind == "shared" and any(n in self.quantized for n in node.all_input_nodes):
                self.quantized.add(node)
            else:
                if kind == "weight":
                    self._swap(node, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
                if not self._takes_either(node):
                    self._take_floats(node)
        self.root.delete_all_unused_submodules()

    def _takes_either(self, node: fx.Node) -> bool:
        return node.op in ("call_method", "call_function") and call_name(node) in (
            "size", "dim", "getattr", "numel", "ndimension",
        )  # fmt: skip

    def _observer_of(self, node: fx.Node) -> fx.Node | None:
        for user in node.users:
            if user.meta.get("quantization", ("",))[0] == "observer":
                return user
        return None

    def _form(self, observer: fx.Node, name: str) -> tuple[fx.Node, fx.Node]:
        """Nodes of the buffers with the scale and zero point that an observer chose."""
        module: Any = self.root.get_submodule(str(observer.target))
        nodes = []
        for kind, value in zip(("scale", "zero_point"), module.calculate_qparams(), strict=True):
            number = 0
            while hasattr(self.root, buffer := f"{name}_{kind}_{number}"):
                number += 1
            self.root.register_buffer(buffer, value.detach().reshape(()))
            nodes.append(self.graph.get_attr(buffer))
        return nodes[0], nodes[1]

    def _replace_observer(self, node: fx.Node) -> None:
        before: Any = node.args[0]
        if before in self.quantized:
            node.replace_all_uses_with(before)
        else:
            dtype = self.root.get_submodule(str(node.target)).dtype
            user = next(iter(node.users), node)
            with self.graph.inserting_before(node):
                form = self._form(node, f"{user.name}_input")
                new = self.graph.call_function(rl.quantize_per_tensor, (before, *form, dtype))
            node.replace_all_uses_with(new)
            self.quantized.add(new)
        self.graph.erase_node(node)

    def _swap(self, node: fx.Node, mapping: dict[Any, Any]) -> None:
        layer: Any = self.root.get_submodule(str(node.target))
        if type(layer) in mapping:  # not if another call of it came before
            self.root.set_submodule(str(node.target), mapping[type(layer)].from_float(layer))

    def _make_own(self, node: fx.Node) -> None:
        observer: Any = self._observer_of(node)
        if node.op == "call_module" and not is_relu(node, self.root):
            layer: Any = self.root.get_submodule(str(node.target))
            layer.activation_post_process = self.root.get_submodule(observer.target)
            self._swap(node, DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)
            self.quantized.add(node)
            return
        call: Any = node
        merged = is_relu(node, self.root)
        if merged:
            (call,) = node.args
        with self.graph.inserting_before(node):
            form = self._form(observer, _place(node))
            new = self.graph.call_function(
                _quantized_call, (call_name(call), merged, *form, *call.args)
            )
        new.kwargs = call.kwargs
        node.replace_all_uses_with(new)
        self.graph.erase_node(node)
        if merged:
            self.graph.erase_node(call)
        self.quantized.add(new)

    def _take_floats(self, node: fx.Node) -> None:
        for before in node.all_input_nodes:
            if before not in self.quantized:
                continue
            if before not in self.floats:
                with self.graph.inserting_after(before):
                    self.floats[before] = self.graph.call_method("dequantize", (before,))
            node.replace_input_with(before, self.floats[before])


def _place(node: fx.Node) -> str:
    """The path of the module in which a node was recorded, as part of a name."""
    stack = node.meta.get("nn_module_stack") or {"": ("", None)}
    path, _ = list(stack.values())[-1]
    return path.replace(".", "_")


def _quantized_call(
    name: str, relu: bool, scale: Any, zero_point: Any, *args: Any, **kwargs: Any
) -> Any:
    """A sum, product or join of quantized tensors, or a function of one, in a form of its own."""
    form = (float(scale), int(zero_point))
    first, *others = args
    if name in ("add", "mul"):
        function: Any = _quantized_ops.add if name == "add" else _quantized_ops.mul
        return function(first, others[0], *form, relu=relu)
    if name == "matmul":
        return _quantized_ops.matmul(first, others[0], *form)
    if name == "cat":
        dim = kwargs.get("dim", others[0] if others else 0)
        return _quantized_ops.cat(first, dim, *form)
    values = getattr(nn.functional, name)(first.dequantize(), *others, **kwargs)
    return rl.quantize_per_tensor(values, *form, first.dtype)
