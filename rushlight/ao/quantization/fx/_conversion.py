"""The second step on a graph: observers become pairs that round, layers their reference forms.

The result still computes in floats, each pattern between dequantize and quantize_per_tensor: what a
back end reads. _lowering.py goes on from there to the integers of this package.
"""

from __future__ import annotations

import copy
from typing import Any

import rushlight as rl
from rushlight import fx, nn
from rushlight.ao.nn.qat import WithFakeQuant
from rushlight.ao.nn.quantized._packed import qparams_of
from rushlight.ao.quantization.backend_config.backend_config import BackendConfig
from rushlight.ao.quantization.fx._matching import dtypes_for
from rushlight.ao.quantization.fx._preparation import is_observer, scope_of
from rushlight.ao.quantization.fx.custom_config import ConvertCustomConfig
from rushlight.ao.quantization.quant_type import QuantType
from rushlight.ao.quantization.quantize import weight_forms

__all__ = ["convert_graph", "free_name"]


def free_name(root: nn.Module, prefix: str) -> str:
    """Returns the first of prefix0, prefix1, ... that is no attribute yet."""
    number = 0
    while hasattr(root, f"{prefix}{number}"):
        number += 1
    return f"{prefix}{number}"


def convert_graph(
    prepared: fx.GraphModule,
    custom: ConvertCustomConfig,
    backend: BackendConfig,
    remove_qconfig: bool,
    finish: Any,
) -> fx.GraphModule:
    """Returns the reference network of one that was prepared, given to `finish` at the end."""
    root = copy.deepcopy(prepared)
    result = finish(_Conversion(root, custom, backend, finish).run())
    if remove_qconfig:
        for module in result.modules():
            vars(module).pop("qconfig", None)
    for name in custom.preserved_attributes:
        setattr(result, name, getattr(prepared, name))
    return result


class _Conversion:
    def __init__(
        self,
        root: fx.GraphModule,
        custom: ConvertCustomConfig,
        backend: BackendConfig,
        finish: Any,
    ) -> None:
        self.root, self.graph, self.finish = root, root.graph, finish
        self.custom, self.backend = custom, backend
        configs = backend.configs
        self.references = {
            config.root_module: config.reference_quantized_module
            for config in configs
            if config.root_module and config.reference_quantized_module
        }
        self.gone: set[fx.Node] = set()
        by_type = custom.observed_to_quantized_mapping
        self.quantized_classes = by_type.get(QuantType.STATIC, {})

    def run(self) -> fx.GraphModule:
        nodes = list(self.graph.nodes)
        inputs = [node for node in nodes if node.op == "placeholder"]
        for node in nodes:
            if node in self.gone:
                continue
            if is_observer(node, self.root):
                self._replace_observer(node)
            elif node.op == "call_module":
                self._replace_layer(node)
            elif node.op == "output":
                self._return_quantized(node)
        for index in self.root.meta.get("quantized_inputs", ()):
            self._dequantize(inputs[index], list(inputs[index].users))
        self.graph.lint()
        return fx.GraphModule(self.root, self.graph)

    def _dequantize(self, node: fx.Node, users: list[fx.Node]) -> None:
        with self.graph.inserting_after(node):
            result = self.graph.call_method("dequantize", (node,))
        for user in users:
            user.replace_input_with(node, result)

    def _replace_observer(self, node: fx.Node) -> None:
        module: Any = self.root.get_submodule(str(node.target))
        before: Any = node.args[0]
        with self.graph.inserting_before(node):
            if getattr(module, "is_dynamic", False):
                arguments = (before, module.dtype, module.dtype in (rl.quint8, rl.float16))
                rounded = self.graph.call_function(rl.quantize_per_tensor_dynamic, arguments)
            else:
                form = self._form(node, module)
                rounded = self.graph.call_function(
                    rl.quantize_per_tensor, (before, *form, module.dtype)
                )
            result = self.graph.call_method("dequantize", (rounded,))
        node.replace_all_uses_with(result)
        self.graph.erase_node(node)

    def _form(self, observer: fx.Node, module: Any) -> list[fx.Node]:
        """Nodes of the buffers with the scale and zero point that an observer chose."""
        name, nodes = self._place(observer), []
        for kind, value in zip(("scale", "zero_point"), module.calculate_qparams(), strict=True):
            buffer = free_name(self.root, f"{name}_{kind}_")
            self.root.register_buffer(buffer, value.detach().reshape(()))
            nodes.append(self.graph.get_attr(buffer))
        return nodes

    def _place(self, observer: fx.Node) -> str:
        """What names a form: the layer behind it, or else the one that it goes into."""
        node: Any = observer.args[0]
        end = ""
        if node.meta.get("qconfig") is None:
            node, end = next(iter(observer.users), node), "_input"
        if node.op in ("placeholder", "output"):
            return end
        path = str(node.target) if node.op == "call_module" else scope_of(node)[0]
        return path.replace(".", "_") + end

    def _replace_layer(self, node: fx.Node) -> None:
        path = str(node.target)
        module: Any = self.root.get_submodule(path)
        if isinstance(module, fx.GraphModule) and module.meta.pop("is_standalone", False):
            inside = convert_graph(module, self.custom, self.backend, True, self.finish)
            self.root.set_submodule(path, inside)
        elif type(module) in self.quantized_classes:
            self._replace_custom(node, module)
        elif "pattern" in node.meta and dtypes_for(node.meta["pattern"], module.qconfig):
            replaced = self._reference(module)
            if replaced is not module:
                self.root.set_submodule(path, replaced)

    def _reference(self, module: Any) -> Any:
        """The reference form of a layer, or what it is fused with around that."""
        observer = getattr(module, "weight_fake_quant", None)
        qconfig = module.qconfig
        if isinstance(module, WithFakeQuant):
            module = module.to_float()
        fused = module if isinstance(module, nn.Sequential) else None
        layer: Any = module if fused is None else fused[0]
        kind = self.references.get(type(layer))
        if kind is None:
            return module
        if observer is not None:  # which training has left with the form of the weight
            forms: Any = qparams_of(observer)
        else:
            layer.qconfig = qconfig
            forms = weight_forms(layer)
        reference = kind.from_float(layer, forms)
        if fused is None:
            return reference
        fused[0] = reference
        return fused

    def _replace_custom(self, node: fx.Node, module: Any) -> None:
        """Puts a class of the user's in place, which takes and gives quantized tensors."""
        after = next((u for u in node.users if is_observer(u, self.root)), None)
        if after is not None:
            module.activation_post_process = self.root.get_submodule(str(after.target))
            after.replace_all_uses_with(node)
            self.graph.erase_node(after)
            self.gone.add(after)
        quantized = self.quantized_classes[type(module)].from_observed(module)
        self.root.set_submodule(str(node.target), quantized)
        for before in node.all_input_nodes:
            if before.op == "call_method" and before.target == "dequantize":
                node.replace_input_with(before, before.all_input_nodes[0])
        self._dequantize(node, list(node.users))

    def _return_quantized(self, node: fx.Node) -> None:
        results: Any = node.args[0]
        several = isinstance(results, list | tuple)
        for index in self.root.meta.get("quantized_outputs", ()):
            value: Any = results[index] if several else results
            if value.op == "call_method" and value.target == "dequantize":
                node.replace_input_with(value, value.args[0])
