"""Reductions, and what walks along a dimension: cumsum, sort, topk."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._pointwise import floating, maximum, minimum
from rushlight.onnx._ops._table import TABLE, converts


def _dims(value: Value, dim: Any) -> list[int] | None:
    """Dimensions from the front; None is all of them."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return None
    return [value.dim(d) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def _reduction(kind: str, ints_to: Any) -> Callable[..., Any]:
    def convert(
        g: Builder, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Value:
        if isinstance(dim, rl.dtype):
            dim, dtype = None, dim
        if dtype is not None:
            input = g.cast(input, dtype)
        elif not input.dtype.is_floating_point:
            input = g.cast(input, ints_to)
        return g.reduce(kind, input, _dims(input, dim), keepdim)

    return convert


TABLE["sum"] = _reduction("ReduceSum", rl.int64)
TABLE["mean"] = _reduction("ReduceMean", rl.float32)
TABLE["prod"] = _reduction("ReduceProd", rl.int64)


def _ordered(g: Builder, input: Value) -> Value:
    """Truth values as integers, which have an order in ONNX."""
    return g.cast(input, rl.int32) if input.dtype is rl.bool else input


@converts("amax")
def amax(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return g.reduce("ReduceMax", _ordered(g, input), _dims(input, dim), keepdim)


@converts("amin")
def amin(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return g.reduce("ReduceMin", _ordered(g, input), _dims(input, dim), keepdim)


@converts("aminmax")
def aminmax(g: Builder, input: Value, *, dim: Any = None, keepdim: bool = False) -> Any:
    return amin(g, input, dim, keepdim), amax(g, input, dim, keepdim)


def _extreme(reduce: Any, argument: str, of_two: Any) -> Callable[..., Any]:
    """max and min: of all, of two tensors, or along a dimension with places."""

    def convert(
        g: Builder, input: Value, dim: Any = None, keepdim: bool = False, **named: Any
    ) -> Any:
        other = named.get("other", dim if isinstance(dim, Value) else None)
        if other is not None:
            return of_two(g, input, other)
        if dim is None:
            return reduce(g, input)
        assert isinstance(dim, int)
        return reduce(g, input, dim, keepdim), _place(g, argument, input, dim, keepdim)

    return convert


def _place(g: Builder, kind: str, input: Value, dim: int | None, keepdim: bool) -> Value:
    x = _ordered(g, input)
    if dim is None:
        place = g.op(kind, g.reshape(x, [-1]), axis=0, keepdims=0, dtype=rl.int64)
        return g.reshape(place, [1] * input.rank if keepdim else [])
    return g.op(kind, x, axis=input.dim(dim), keepdims=int(keepdim), dtype=rl.int64)


TABLE["max"] = _extreme(amax, "ArgMax", maximum)
TABLE["min"] = _extreme(amin, "ArgMin", minimum)


@converts("argmax")
def argmax(g: Builder, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _place(g, "ArgMax", input, dim, keepdim)


@converts("argmin")
def argmin(g: Builder, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _place(g, "ArgMin", input, dim, keepdim)


@converts("any")
def any_(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    truth = g.cast(g.cast(input, rl.bool), rl.int32)
    return g.cast(g.reduce("ReduceMax", truth, _dims(input, dim), keepdim), rl.bool)


@converts("all")
def all_(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    truth = g.cast(g.cast(input, rl.bool), rl.int32)
    return g.cast(g.reduce("ReduceMin", truth, _dims(input, dim), keepdim), rl.bool)


@converts("count_nonzero")
def count_nonzero(g: Builder, input: Value, dim: Any = None) -> Value:
    truth = g.cast(g.cast(input, rl.bool), rl.int64)
    return g.reduce("ReduceSum", truth, _dims(input, dim), False)


@converts("logsumexp")
def logsumexp(g: Builder, input: Value, dim: Any, keepdim: bool = False) -> Value:
    return g.reduce("ReduceLogSumExp", floating(g, input), _dims(input, dim), keepdim)


# Moments and norms


@converts("var_mean")
def var_mean(
    g: Builder,
    input: Value,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 0 if unbiased is False else 1
    dims = _dims(input, dim)
    mean = g.reduce("ReduceMean", input, dims, True)
    apart = g.op("Sub", input, mean)
    squares = g.reduce("ReduceSum", g.op("Mul", apart, apart), dims, keepdim)
    sizes = [g.size(input, d) for d in (range(input.rank) if dims is None else dims)]
    if all(isinstance(size, int) for size in sizes):
        count = g.number(float(math.prod(sizes) - correction), input)
    else:
        count = g.cast(g.op("ReduceProd", g.ints(sizes), keepdims=0), input.dtype)
        count = g.op("Sub", count, g.number(correction, input))
    if not keepdim:
        mean = g.reduce("ReduceMean", input, dims, False)
    return g.op("Div", squares, count), mean


@converts("var")
def var(g: Builder, input: Value, *args: Any, **kwargs: Any) -> Value:
    return var_mean(g, input, *args, **kwargs)[0]


@converts("std")
def std(g: Builder, input: Value, *args: Any, **kwargs: Any) -> Value:
    return g.op("Sqrt", var(g, input, *args, **kwargs))


@converts("std_mean")
def std_mean(g: Builder, input: Value, *args: Any, **kwargs: Any) -> Any:
    var, mean = var_mean(g, input, *args, **kwargs)
    return g.op("Sqrt", var), mean


@converts("norm", "vector_norm")
def norm(
    g: Builder,
    input: Value | None = None,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    **named: Any,
) -> Value:
    x = named.get("x", input)
    p = named.get("ord", p)
    p = 2 if p is None or p == "fro" else p
    x = floating(g, x) if dtype is None else g.cast(x, dtype)
    is_matrix = "linalg" in str(getattr(g.node.target, "__module__", "")) and p != 2
    if is_matrix and (isinstance(dim, (list, tuple)) or (dim is None and x.rank == 2)):
        g.refuse(f"the norm {p!r} of matrices has no ONNX form")
    dims = _dims(x, dim)
    if p == 1 or p == 2:
        return g.reduce(f"ReduceL{int(p)}", x, dims, keepdim)
    size = g.op("Abs", x)
    if p in (math.inf, -math.inf):
        return g.reduce("ReduceMax" if p > 0 else "ReduceMin", size, dims, keepdim)
    if p == 0:
        return g.reduce("ReduceSum", g.cast(g.cast(x, rl.bool), x.dtype), dims, keepdim)
    powers = g.reduce("ReduceSum", g.op("Pow", size, g.number(p, x)), dims, keepdim)
    return g.op("Pow", powers, g.number(1 / p, x))


# Along a dimension


@converts("cumsum")
def cumsum(g: Builder, input: Value, dim: int, *, dtype: Any = None) -> Value:
    wanted = dtype or (input.dtype if input.dtype.is_floating_point else rl.int64)
    return g.op("CumSum", g.cast(input, wanted), g.constant(input.dim(dim)))


@converts("topk")
def topk(
    g: Builder, input: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    values, places = g.op(
        "TopK", input, g.ints([k]), outputs=2, axis=input.dim(dim), largest=int(largest), sorted=1
    )
    return values, Value(places.name, rl.int64)


@converts("sort")
def sort(
    g: Builder, input: Value, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Any:
    return topk(g, _ordered(g, input), g.size(input, input.dim(dim)), dim, descending)


@converts("argsort")
def argsort(
    g: Builder, input: Value, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Value:
    return sort(g, input, dim, descending)[1]
