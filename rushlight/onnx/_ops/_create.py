"""New tensors: filled, counted, and triangles of others."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._shape import flat
from rushlight.onnx._ops._table import converts


def _dtype(g: Builder) -> rl.dtype:
    """The dtype that the program got."""
    return g.node.meta["tensor_meta"].dtype


def _filled(g: Builder, sizes: Any, number: Any) -> Value:
    value = (
        g.cast(number, _dtype(g)) if isinstance(number, Value) else g.constant(number, _dtype(g))
    )
    return g.op("Expand", value, g.ints(sizes)) if sizes else value


@converts("zeros", "empty")
def zeros(g: Builder, *size: Any, **options: Any) -> Value:
    return _filled(g, flat(size or (options["size"],)), 0)


@converts("ones")
def ones(g: Builder, *size: Any, **options: Any) -> Value:
    return _filled(g, flat(size or (options["size"],)), 1)


@converts("full")
def full(g: Builder, size: Any, fill_value: Any, **options: Any) -> Value:
    return _filled(g, flat([size]), fill_value)


@converts("new_zeros", "new_empty")
def new_zeros(g: Builder, input: Value, *size: Any, **options: Any) -> Value:
    return zeros(g, *size, **options)


@converts("new_ones")
def new_ones(g: Builder, input: Value, *size: Any, **options: Any) -> Value:
    return ones(g, *size, **options)


@converts("new_full")
def new_full(g: Builder, input: Value, size: Any, fill_value: Any, **options: Any) -> Value:
    return full(g, size, fill_value)


@converts("full_like")
def full_like(g: Builder, input: Value, fill_value: Any, **options: Any) -> Value:
    value = _filled(g, (), fill_value)
    return g.op("Expand", value, g.shape(input)) if input.rank else value


@converts("zeros_like", "empty_like")
def zeros_like(g: Builder, input: Value, **options: Any) -> Value:
    return full_like(g, input, 0)


@converts("ones_like")
def ones_like(g: Builder, input: Value, **options: Any) -> Value:
    return full_like(g, input, 1)


@converts("scalar_tensor")
def scalar_tensor(g: Builder, s: Any, **options: Any) -> Value:
    return _filled(g, (), s)


@converts("arange")
def arange(g: Builder, start: Any, end: Any = None, step: Any = 1, **options: Any) -> Value:
    start, end = (0, start) if end is None else (start, end)
    bounds = [
        g.cast(v, _dtype(g)) if isinstance(v, Value) else g.constant(v, _dtype(g))
        for v in (options.get("start", start), options.get("end", end), step)
    ]
    return g.op("Range", *bounds)


@converts("linspace")
def linspace(g: Builder, start: Any, end: Any, steps: Any, **options: Any) -> Value:
    first, last = (
        g.cast(v, rl.float64) if isinstance(v, Value) else g.constant(v, rl.float64)
        for v in (start, end)
    )
    count = steps if isinstance(steps, Value) else g.constant(steps)
    places = g.op("Range", g.constant(0), g.cast(count, rl.int64), g.constant(1))
    places = g.cast(places, rl.float64)
    gaps = g.op("Sub", g.cast(count, rl.float64), g.constant(1, rl.float64))
    gaps = g.op("Max", gaps, g.constant(1, rl.float64))
    part = g.op("Div", places, gaps)
    return g.op("Add", first, g.op("Mul", part, g.op("Sub", last, first)))


@converts("eye")
def eye(g: Builder, n: Any, m: Any = None, **options: Any) -> Value:
    shape = g.ints([n, n if m is None else m])
    zeros = g.op("Expand", g.constant(0, rl.float32), shape)
    return g.op("EyeLike", zeros)


def _triangle(g: Builder, input: Value, diagonal: int, upper: int) -> Value:
    """Truth values have no Trilu in all runtimes."""
    x = g.cast(input, rl.int32) if input.dtype is rl.bool else input
    x = g.op("Trilu", x, g.constant(diagonal), upper=upper)
    return g.cast(x, input.dtype)


@converts("tril")
def tril(g: Builder, input: Value, diagonal: int = 0) -> Value:
    return _triangle(g, input, diagonal, 0)


@converts("triu")
def triu(g: Builder, input: Value, diagonal: int = 0) -> Value:
    return _triangle(g, input, diagonal, 1)


@converts("one_hot")
def one_hot(g: Builder, tensor: Value, num_classes: Any = -1) -> Value:
    if num_classes == -1:
        g.refuse("without num_classes its size depends on the elements. Give it num_classes")
    count = num_classes if isinstance(num_classes, Value) else g.constant(num_classes)
    return g.op("OneHot", tensor, count, g.constant([0, 1]), axis=-1)
