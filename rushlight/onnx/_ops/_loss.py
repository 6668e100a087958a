"""Losses."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._activation import softplus
from rushlight.onnx._ops._pointwise import clamp_min
from rushlight.onnx._ops._table import converts


def _reduced(g: Builder, loss: Value, reduction: str, weight: Value | None = None) -> Value:
    if weight is not None:
        loss = g.op("Mul", loss, weight)
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        g.refuse(f"reduction {reduction!r} has no ONNX form")
    return g.reduce(f"Reduce{reduction.capitalize()}", loss, None, False)


@converts("cross_entropy")
def cross_entropy(
    g: Builder,
    input: Value,
    target: Value,
    weight: Value | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    if label_smoothing or target.dtype.is_floating_point or input.rank < 2:
        g.refuse("only a batch with classes as targets, without smoothing, has an ONNX form")
    return g.op(
        "SoftmaxCrossEntropyLoss", input, target, weight, reduction=reduction,
        ignore_index=ignore_index,
    )  # fmt: skip


@converts("nll_loss")
def nll_loss(
    g: Builder,
    input: Value,
    target: Value,
    weight: Value | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    if input.rank < 2:
        g.refuse("only a batch has an ONNX form")
    return g.op(
        "NegativeLogLikelihoodLoss", input, target, weight, reduction=reduction,
        ignore_index=ignore_index,
    )  # fmt: skip


@converts("mse_loss")
def mse_loss(
    g: Builder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Value | None = None,
) -> Value:
    apart = g.op("Sub", input, target)
    return _reduced(g, g.op("Mul", apart, apart), reduction, weight)


@converts("l1_loss")
def l1_loss(
    g: Builder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Value | None = None,
) -> Value:
    return _reduced(g, g.op("Abs", g.op("Sub", input, target)), reduction, weight)


def _huber(g: Builder, input: Value, target: Value, delta: float) -> Value:
    """Half the square up to delta, and its tangent beyond."""
    far = g.op("Abs", g.op("Sub", input, target))
    half, bound = g.number(0.5, input), g.number(delta, input)
    near = g.op("Mul", g.op("Mul", far, far), half)
    line = g.op("Mul", g.op("Sub", far, g.op("Mul", half, bound)), bound)
    is_near = g.op("Less", far, bound, dtype=rl.bool)
    return g.op("Where", is_near, near, line, dtype=input.dtype)


@converts("huber_loss")
def huber_loss(
    g: Builder,
    input: Value,
    target: Value,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Value | None = None,
) -> Value:
    return _reduced(g, _huber(g, input, target, delta), reduction, weight)


@converts("smooth_l1_loss")
def smooth_l1_loss(
    g: Builder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Value:
    if beta == 0:
        return l1_loss(g, input, target, reduction=reduction)
    loss = g.op("Div", _huber(g, input, target, beta), g.number(beta, input))
    return _reduced(g, loss, reduction)


@converts("kl_div")
def kl_div(
    g: Builder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Value:
    if log_target:
        loss = g.op("Mul", g.op("Exp", target), g.op("Sub", target, input))
    else:
        positive = g.op("Greater", target, g.number(0, target), dtype=rl.bool)
        one = g.number(1, target)
        log = g.op("Log", g.op("Where", positive, target, one, dtype=target.dtype))
        loss = g.op("Mul", target, g.op("Sub", log, input))
    if reduction == "batchmean":
        total = g.cast(g.reshape(g.ints([g.size(input, 0)]), []), input.dtype)
        return g.op("Div", _reduced(g, loss, "sum"), total)
    return _reduced(g, loss, reduction)


@converts("binary_cross_entropy")
def binary_cross_entropy(
    g: Builder,
    input: Value,
    target: Value,
    weight: Value | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    one = g.number(1, input)
    hit = g.op("Mul", target, clamp_min(g, g.op("Log", input), -100))
    missed = clamp_min(g, g.op("Log", g.op("Sub", one, input)), -100)
    missed = g.op("Mul", g.op("Sub", one, target), missed)
    return _reduced(g, g.op("Neg", g.op("Add", hit, missed)), reduction, weight)


@converts("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    g: Builder,
    input: Value,
    target: Value,
    weight: Value | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Value | None = None,
) -> Value:
    hit = g.op("Mul", target, softplus(g, g.op("Neg", input)))
    if pos_weight is not None:
        hit = g.op("Mul", hit, pos_weight)
    missed = g.op("Mul", g.op("Sub", g.number(1, input), target), softplus(g, input))
    return _reduced(g, g.op("Add", hit, missed), reduction, weight)
