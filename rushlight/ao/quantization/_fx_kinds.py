"""What the nodes of a graph are to quantization, by what they call."""

from __future__ import annotations

import operator

from rushlight import fx, nn

# Calls whose results have a scale of their own.
OWN_CALLS = frozenset(("add", "mul", "cat", "matmul", "hardswish", "leaky_relu", "elu"))

_OPERATORS = {
    operator.add: "add",
    operator.iadd: "add",
    operator.mul: "mul",
    operator.imul: "mul",
    operator.matmul: "matmul",
}
_SYNONYMS = {
    "add_": "add",
    "mul_": "mul",
    "concat": "cat",
    "concatenate": "cat",
    "hardswish_": "hardswish",
}

# Calls that a quantized tensor answers in its own form, or in one that is known.
_SHARED_CALLS = frozenset(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d avg_pool1d avg_pool2d avg_pool3d channel_shuffle chunk clamp clone
    contiguous detach dropout dropout1d dropout2d dropout3d expand flatten getitem hardsigmoid
    hardtanh hardtanh_ interpolate max_pool1d max_pool2d max_pool3d mean narrow permute
    pixel_shuffle relu relu_ relu6 repeat reshape select sigmoid sigmoid_ softmax split
    squeeze tanh tanh_ transpose unflatten unsqueeze upsample view
    """.split()  # noqa: SIM905
)
_SHARED_LAYERS = (
    nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d,
    nn.AdaptiveAvgPool3d,
    nn.AdaptiveMaxPool1d,
    nn.AdaptiveMaxPool2d,
    nn.AvgPool1d,
    nn.AvgPool2d,
    nn.AvgPool3d,
    nn.ChannelShuffle,
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.Flatten,
    nn.Hardsigmoid,
    nn.Hardtanh,  # and ReLU6
    nn.Identity,
    nn.MaxPool1d,
    nn.MaxPool2d,
    nn.MaxPool3d,
    nn.PixelShuffle,
    nn.ReLU,
    nn.Sigmoid,
    nn.Softmax,
    nn.Tanh,
    nn.Unflatten,
    nn.Upsample,
)


def call_name(node: fx.Node) -> str:
    """Returns the name of the function or method that a node calls, "" for other nodes."""
    if node.op == "call_method":
        name = str(node.target)
    elif node.op == "call_function":
        target = node.target
        name = _OPERATORS.get(target) or getattr(target, "__name__", "")
    else:
        return ""
    return _SYNONYMS.get(name, name)


def is_shared(node: fx.Node, root: fx.GraphModule) -> bool:
    """Returns whether a node gives a quantized result for a quantized input by itself."""
    if node.op == "call_module":
        return isinstance(root.get_submodule(str(node.target)), _SHARED_LAYERS)
    return call_name(node) in _SHARED_CALLS
