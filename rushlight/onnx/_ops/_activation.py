"""Activations, softmax, and what does nothing in eval mode."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._pointwise import clamp
from rushlight.onnx._ops._table import TABLE, converts


@converts("relu")
def relu(g: Builder, input: Value, inplace: bool = False) -> Value:
    return g.op("Relu", input)


@converts("relu6")
def relu6(g: Builder, input: Value, inplace: bool = False) -> Value:
    return clamp(g, input, 0, 6)


@converts("hardtanh")
def hardtanh(
    g: Builder, input: Value, min_val: float = -1, max_val: float = 1, inplace: bool = False
) -> Value:
    return clamp(g, input, min_val, max_val)


@converts("threshold")
def threshold(
    g: Builder, input: Value, threshold: float, value: float, inplace: bool = False
) -> Value:
    above = g.op("Greater", input, g.number(threshold, input), dtype=rl.bool)
    return g.op("Where", above, input, g.number(value, input), dtype=input.dtype)


@converts("leaky_relu")
def leaky_relu(
    g: Builder, input: Value, negative_slope: float = 0.01, inplace: bool = False
) -> Value:
    return g.op("LeakyRelu", input, alpha=float(negative_slope))


@converts("prelu")
def prelu(g: Builder, input: Value, weight: Value) -> Value:
    if weight.shape != (1,) and input.rank > 2:  # channels stand in dimension 1
        weight = g.reshape(weight, [-1, *(1,) * (input.rank - 2)])
    return g.op("PRelu", input, weight)


@converts("elu")
def elu(g: Builder, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    return g.op("Elu", input, alpha=float(alpha))


@converts("celu")
def celu(g: Builder, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    return g.op("Celu", input, alpha=float(alpha))


@converts("selu")
def selu(g: Builder, input: Value, inplace: bool = False) -> Value:
    return g.op("Selu", input)


@converts("gelu")
def gelu(g: Builder, input: Value, approximate: str = "none") -> Value:
    half, one = g.number(0.5, input), g.number(1, input)
    if approximate == "tanh":
        cube = g.op("Mul", g.op("Mul", input, input), input)
        inner = g.op("Add", input, g.op("Mul", cube, g.number(0.044715, input)))
        inner = g.op("Tanh", g.op("Mul", inner, g.number(math.sqrt(2 / math.pi), input)))
    else:
        inner = g.op("Erf", g.op("Div", input, g.number(math.sqrt(2), input)))
    return g.op("Mul", g.op("Mul", input, half), g.op("Add", inner, one))


@converts("silu")
def silu(g: Builder, input: Value, inplace: bool = False) -> Value:
    return g.op("Mul", input, g.op("Sigmoid", input))


@converts("hardsigmoid")
def hardsigmoid(g: Builder, input: Value, inplace: bool = False) -> Value:
    return g.op("HardSigmoid", input, alpha=1 / 6, beta=0.5)


@converts("hardswish")
def hardswish(g: Builder, input: Value, inplace: bool = False) -> Value:
    return g.op("HardSwish", input)


@converts("mish")
def mish(g: Builder, input: Value, inplace: bool = False) -> Value:
    return g.op("Mish", input)


@converts("softplus")
def softplus(g: Builder, input: Value, beta: float = 1, threshold: float = 20) -> Value:
    scale = g.number(beta, input)
    scaled = g.op("Mul", input, scale)
    smooth = g.op("Div", g.op("Softplus", scaled), scale)
    is_large = g.op("Greater", scaled, g.number(threshold, input), dtype=rl.bool)
    return g.op("Where", is_large, input, smooth, dtype=input.dtype)


@converts("softsign")
def softsign(g: Builder, input: Value) -> Value:
    return g.op("Softsign", input)


@converts("logsigmoid")
def logsigmoid(g: Builder, input: Value) -> Value:
    return g.op("Neg", g.op("Softplus", g.op("Neg", input)))


@converts("tanhshrink")
def tanhshrink(g: Builder, input: Value) -> Value:
    return g.op("Sub", input, g.op("Tanh", input))


@converts("hardshrink")
def hardshrink(g: Builder, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, lambd=float(lambd), bias=0.0)


@converts("softshrink")
def softshrink(g: Builder, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, lambd=float(lambd), bias=float(lambd))


@converts("glu")
def glu(g: Builder, input: Value, dim: int = -1) -> Value:
    value, gate = g.op("Split", input, outputs=2, axis=input.dim(dim), num_outputs=2)
    return g.op("Mul", value, g.op("Sigmoid", gate))


def _softmax(kind: str) -> Any:
    def convert(
        g: Builder, input: Value, dim: int | None = None, dtype: Any = None, _stacklevel: int = 3
    ) -> Value:
        if dim is None:  # the choice that PyTorch made before there was dim
            dim = 0 if input.rank in (0, 1, 3) else 1
        x = input if dtype is None else g.cast(input, dtype)
        if input.rank == 0:
            x = g.reshape(x, [1])
        x = g.op(kind, x, axis=input.dim(dim))
        return x if input.rank else g.reshape(x, [])

    return convert


TABLE["softmax"], TABLE["log_softmax"] = _softmax("Softmax"), _softmax("LogSoftmax")


@converts(
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"
)
def dropout(
    g: Builder, input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    if training and p:
        g.refuse("it drops elements at random. Call eval() first")
    return input


@converts("feature_dropout")
def feature_dropout(g: Builder, input: Value, p: float, train: bool = True) -> Value:
    return dropout(g, input, p, train)
