"""The third step on a graph: what stands between dequantize and quantize becomes integer kernels.

A pattern that this package has no kernel for stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import fx, nn
from rushlight._quantized_library import function_of
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import quantized as nniq
from rushlight.ao.nn.intrinsic.quantized import dynamic as nniqd
from rushlight.ao.nn.quantized import dynamic as nnqd
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.ao.nn.quantized.reference._base import ReferenceQuantizedModule
from rushlight.ao.quantization.backend_config._operators import joins, known_ranges, shared
from rushlight.ao.quantization.fx._matching import call_name, key_of
from rushlight.fx.node import map_arg

__all__ = ["lower"]


def _same(names: str, home: Any, target: Any) -> dict[Any, Any]:
    return {getattr(home, name): getattr(target, name) for name in names.split()}


# By the class of a reference layer, or of what it is fused with.
_STATIC: dict[Any, Any] = {
    **_same(
        "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d", nnqr, nnq
    ),
    **_same(
        "LinearReLU LinearLeakyReLU LinearTanh ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d "
        "ConvAddReLU2d",
        nni,
        nniq,
    ),
}
_DYNAMIC: dict[Any, Any] = {
    **_same("Linear LSTM GRU LSTMCell GRUCell RNNCell", nnqr, nnqd),
    nni.LinearReLU: nniqd.LinearReLU,
}
_TABLES: dict[Any, Any] = _same("Embedding EmbeddingBag", nnqr, nnq)
# Layers that compute by floats.
_BY_FLOATS: dict[Any, Any] = {
    **_same(
        "BatchNorm2d BatchNorm3d Dropout ELU Hardswish InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d LayerNorm LeakyReLU PReLU Sigmoid Softmax",
        nn,
        nnq,
    ),
    **_same("BNReLU2d BNReLU3d", nni, nniq),
}
# What quantized tensors answer in the form of their input, or in one that is known.
_PATTERNS = [config.pattern for config in (*shared([]), *joins([]), *known_ranges([]))]
_KEEP_FORM_LAYERS = tuple({p for p in _PATTERNS if isinstance(p, type)} - {*_BY_FLOATS})
_KEEP_FORM_METHODS = {p for p in _PATTERNS if isinstance(p, str)}
_KEEP_FORM_CALLS = {call_name(p) for p in _PATTERNS if not isinstance(p, type | str)}
# What torch.ops.quantized takes of the arguments that functions have behind their input.
_BY_NAME: dict[str, tuple[Any, ...]] = {
    "dropout": ({"p", "training"}, "p", "training"),
    "elu": ({"alpha"}, "alpha"),
    "group_norm": ({"num_groups", "weight", "bias", "eps"}, "num_groups", "weight", "bias", "eps"),
    "hardswish": (set(),),
    "instance_norm": (
        {"weight", "bias", "eps"},
        "running_mean",
        "running_var",
        "weight",
        "bias",
        "use_input_stats",
        "momentum",
        "eps",
    ),
    "layer_norm": (
        {"normalized_shape", "weight", "bias", "eps"},
        "normalized_shape",
        "weight",
        "bias",
        "eps",
    ),
    "leaky_relu": ({"negative_slope", "inplace"}, "negative_slope", "inplace"),
}
_ASKED = ("size", "dim", "getattr", "numel", "ndimension")


def _is_call(node: Any, function: Callable[..., Any]) -> bool:
    return isinstance(node, fx.Node) and node.op == "call_function" and node.target is function


def lower(root: fx.GraphModule) -> fx.GraphModule:
    """Returns a reference network with this package's integer layers and functions."""
    for node in list(root.graph.nodes):
        if _is_call(node, rl.quantize_per_tensor):
            _lower_before(root, node)
        elif node.op == "call_module":
            _lower_floats(root, node)
    _ask_quantized(root)
    _drop_unused(root)
    root.graph.lint()
    return fx.GraphModule(root, root.graph)


def _quantized_input(node: fx.Node) -> fx.Node | None:
    """What a dequantize dequantizes, None for other nodes."""
    is_it = node.op == "call_method" and node.target == "dequantize"
    return node.args[0] if is_it else None


def _lower_before(root: fx.GraphModule, rounding: fx.Node) -> None:
    """Merges a rounding with the op whose result it rounds, if its inputs come from integers."""
    op: Any = rounding.args[0]
    merged = [op]
    if _is_relu(op, root) and isinstance(op.args[0], fx.Node):
        before: Any = op.args[0]
        if before.op == "call_function" and call_name(before.target) in ("add", "mul"):
            merged = [op, before] if len(before.users) == 1 else merged
    first = merged[-1]
    inputs = [
        n for n in first.all_input_nodes if n.meta.get("is_float", True) or _quantized_input(n)
    ]
    sources = {n: _quantized_input(n) for n in inputs}
    is_alone = len(op.users) == 1 and op.op in ("call_module", "call_function", "call_method")
    if not is_alone or not inputs or None in sources.values():
        return
    arguments = map_arg(first.args, lambda n: sources.get(n) or n)
    settings = map_arg(first.kwargs, lambda n: sources.get(n) or n)
    form = rounding.args[1], rounding.args[2]
    result = _integer_form(root, first, arguments, settings, form, len(merged) == 2)
    if result is None:
        return
    result.meta["origin"] = op.name  # in the prepared graph
    rounding.replace_all_uses_with(result)
    root.graph.erase_node(rounding)
    for node in merged:
        if node is not result:
            root.graph.erase_node(node)


def _is_relu(node: fx.Node, root: fx.GraphModule) -> bool:
    return key_of(node, root) in (nn.ReLU, ("function", "relu"))


def _integer_form(
    root: fx.GraphModule, node: fx.Node, args: Any, kwargs: Any, form: Any, relu: bool
) -> fx.Node | None:
    """The node that computes another with integers: itself, changed, or a new one."""
    if node.op == "call_module":
        if not _lower_layer(root, node, form):
            return None
    elif node.op == "call_method":
        if node.target not in _KEEP_FORM_METHODS:
            return None
    else:
        name = call_name(node.target)
        if name not in _KEEP_FORM_CALLS:
            return _own_call(root, node, name, args, kwargs, form, relu)
    node.args, node.kwargs = args, kwargs
    return node


def _value(root: fx.GraphModule, node: Any) -> Any:
    return getattr(root, str(node.target))


def _lower_layer(root: fx.GraphModule, node: fx.Node, form: Any) -> bool:
    """Puts an integer layer in a layer's place; whether there is one."""
    layer: Any = root.get_submodule(str(node.target))
    if isinstance(layer, _KEEP_FORM_LAYERS) or type(layer) in _INTEGER_CLASSES:
        return True  # it takes integers as it is, or was replaced for another call
    kind = _STATIC.get(type(layer)) or _BY_FLOATS.get(type(layer))
    is_fused = isinstance(layer, nn.Sequential)
    inside = layer[0] if is_fused else layer
    is_reference = isinstance(inside, ReferenceQuantizedModule)
    if kind is None or is_reference != (type(layer) in _STATIC):
        return False
    if is_reference and inside.weight_dtype is not rl.qint8:
        return False
    result = kind.from_reference(inside, *(_value(root, part) for part in form))
    if type(layer) is nni.LinearLeakyReLU:
        result.negative_slope = layer[1].negative_slope
    root.set_submodule(str(node.target), result)
    return True


_INTEGER_CLASSES = {*_STATIC.values(), *_BY_FLOATS.values()}


def _own_call(
    root: fx.GraphModule, node: fx.Node, name: str, args: Any, kwargs: Any, form: Any, relu: bool
) -> fx.Node | None:
    """A call of torch.ops.quantized whose result has a form of its own."""
    function = function_of(f"{name}_relu" if relu else name)
    if function is None or name not in ("add", "mul", "matmul", *_BY_NAME):
        return None
    scale, zero_point = form
    if name in ("add", "mul"):
        numbers = [a for a in args if not isinstance(a, fx.Node)]
        if numbers and not isinstance(args[0], fx.Node):
            args = args[::-1]
        args = args if numbers else (*args, *form)
    elif name == "matmul":
        args = (*args, *form)
    else:
        wanted, *names = _BY_NAME[name]
        given = {**dict(zip(names, args[1:], strict=False)), **kwargs}
        kwargs = {key: value for key, value in given.items() if key in wanted}
        args = args[:1]
        kwargs |= {"output_scale": scale, "output_zero_point": zero_point}
    with root.graph.inserting_after(zero_point):  # which comes right before the rounding
        return root.graph.call_function(function, args, kwargs)


def _lower_floats(root: fx.GraphModule, node: fx.Node) -> None:
    """Puts an integer layer in the place of one that takes and gives floats."""
    layer: Any = root.get_submodule(str(node.target))
    inside = layer[0] if isinstance(layer, nn.Sequential) and len(layer) else layer
    if not isinstance(inside, ReferenceQuantizedModule):
        return
    before: Any = node.args[0] if node.args else None
    rounded: Any = _quantized_input(before) if isinstance(before, fx.Node) else None
    if type(layer) in _TABLES and inside.weight_dtype is rl.quint8:
        root.set_submodule(str(node.target), _TABLES[type(layer)].from_reference(layer))
    elif type(layer) in _DYNAMIC and _is_call(rounded, rl.quantize_per_tensor_dynamic):
        result = _DYNAMIC[type(layer)].from_reference(inside)
        result.training = layer.training
        root.set_submodule(str(node.target), result)
        node.replace_input_with(before, rounded.args[0])


def _ask_quantized(root: fx.GraphModule) -> None:
    """Lets what only asks for sizes ask quantized tensors."""
    for node in root.graph.nodes:
        is_asking = node.op in ("call_function", "call_method") and (
            (node.target if node.op == "call_method" else call_name(node.target)) in _ASKED
        )
        if is_asking:
            for before in node.all_input_nodes:
                source = _quantized_input(before)
                if source is not None:
                    node.replace_input_with(before, source)


def _drop_unused(root: fx.GraphModule) -> None:
    """Drops roundings and forms that nothing uses any more."""
    for node in reversed(list(root.graph.nodes)):
        is_ours = node.op == "get_attr" or _quantized_input(node) is not None
        is_rounding = _is_call(node, rl.quantize_per_tensor) or _is_call(
            node, rl.quantize_per_tensor_dynamic
        )
        if (is_ours or is_rounding) and not node.users:
            root.graph.erase_node(node)
