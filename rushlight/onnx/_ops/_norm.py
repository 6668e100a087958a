"""Normalization layers in eval mode."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._table import converts


def _filled(g: Builder, count: Any, number: float, dtype: rl.dtype) -> Value:
    """A weight or bias where the layer has none."""
    if not isinstance(count, int):
        g.refuse("the number of channels may change")
    return g.constant([number] * count, dtype)


@converts("batch_norm")
def batch_norm(
    g: Builder,
    input: Value,
    running_mean: Value | None,
    running_var: Value | None,
    weight: Value | None = None,
    bias: Value | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    if training or running_mean is None or running_var is None:
        g.refuse("it takes the statistics of the batch. Call eval() first")
    assert running_mean.shape is not None
    count, dtype = running_mean.shape[0], input.dtype
    weight = _filled(g, count, 1.0, dtype) if weight is None else weight
    bias = _filled(g, count, 0.0, dtype) if bias is None else bias
    inputs = (input, weight, bias, running_mean, running_var)
    return g.op("BatchNormalization", *inputs, epsilon=float(eps))


@converts("layer_norm")
def layer_norm(
    g: Builder,
    input: Value,
    normalized_shape: Any,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if weight is None:
        weight = g.op("Expand", g.constant(1.0, input.dtype), g.ints(sizes))
    return g.op("LayerNormalization", input, weight, bias, axis=-len(sizes), epsilon=float(eps))


@converts("rms_norm")
def rms_norm(
    g: Builder,
    input: Value,
    normalized_shape: Any,
    weight: Value | None = None,
    eps: float | None = None,
) -> Value:
    eps = rl.finfo(input.dtype).eps if eps is None else eps
    dims = [-d - 1 for d in range(len(normalized_shape))]
    mean = g.reduce("ReduceMean", g.op("Mul", input, input), dims, True)
    root = g.op("Sqrt", g.op("Add", mean, g.number(eps, input)))
    normal = g.op("Div", input, root)
    return normal if weight is None else g.op("Mul", normal, weight)


@converts("instance_norm")
def instance_norm(
    g: Builder,
    input: Value,
    running_mean: Value | None = None,
    running_var: Value | None = None,
    weight: Value | None = None,
    bias: Value | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    if not use_input_stats:
        return batch_norm(g, input, running_mean, running_var, weight, bias, eps=eps)
    count = g.size(input, 1)
    weight = _filled(g, count, 1.0, input.dtype) if weight is None else weight
    bias = _filled(g, count, 0.0, input.dtype) if bias is None else bias
    return g.op("InstanceNormalization", input, weight, bias, epsilon=float(eps))


@converts("group_norm")
def group_norm(
    g: Builder,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    ones = _filled(g, num_groups, 1.0, input.dtype)
    zeros = _filled(g, num_groups, 0.0, input.dtype)
    groups = g.reshape(input, [0, num_groups, -1])
    normal = g.op("InstanceNormalization", groups, ones, zeros, epsilon=float(eps))
    normal = g.op("Reshape", normal, g.shape(input))
    shape = [-1, *(1,) * (input.rank - 2)]
    if weight is not None:
        normal = g.op("Mul", normal, g.reshape(weight, shape))
    return normal if bias is None else g.op("Add", normal, g.reshape(bias, shape))
