"""Convolutions, pooling, and windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._table import converts


def _each(value: Any, count: int) -> list[Any]:
    """An argument for each spatial dimension."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * count if len(values) == 1 else values


def _batched(g: Builder, input: Value, rank: int, run: Callable[[Value], Any]) -> Any:
    """Runs with a batch dimension, which is added and taken away where there is none."""
    if input.rank == rank:
        return run(input)
    assert input.shape is not None
    made = run(replace(g.unsqueeze(input, 0), shape=(1, *input.shape)))
    if isinstance(made, tuple):
        return tuple(g.squeeze(item, 0) for item in made)
    return g.squeeze(made, 0)


@converts("conv1d", "conv2d", "conv3d")
def conv(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    assert weight.shape is not None
    count = weight.rank - 2
    kernel, dilations = list(weight.shape[2:]), _each(dilation, count)
    if padding == "same":
        totals = [d * (int(k) - 1) for d, k in zip(dilations, kernel, strict=True)]
        pads = [t // 2 for t in totals] + [t - t // 2 for t in totals]
    else:
        pads = (_each(0 if padding == "valid" else padding, count)) * 2
    return _batched(
        g,
        input,
        weight.rank,
        lambda x: g.op(
            "Conv", x, weight, bias, kernel_shape=kernel, strides=_each(stride, count), pads=pads,
            dilations=dilations, group=groups,
        ),
    )  # fmt: skip


@converts("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Value:
    assert weight.shape is not None
    shape, count = weight.shape, weight.rank - 2
    return _batched(
        g,
        input,
        weight.rank,
        lambda x: g.op(
            "ConvTranspose", x, weight, bias, kernel_shape=list(shape[2:]),
            strides=_each(stride, count), pads=_each(padding, count) * 2,
            output_padding=_each(output_padding, count), dilations=_each(dilation, count),
            group=groups,
        ),
    )  # fmt: skip


# Pooling


def _spatial(g: Builder) -> int:
    """How many dimensions an op named like max_pool2d pools."""
    return int(next(c for c in g.node.target.__name__ if c.isdigit()))


@converts("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(g: Builder, input: Value, *args: Any, **kwargs: Any) -> Value:
    return _max_pool(g, input, False, *args, **kwargs)


@converts("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(g: Builder, input: Value, *args: Any, **kwargs: Any) -> Any:
    return _max_pool(g, input, True, *args, **kwargs)


def _max_pool(
    g: Builder,
    input: Value,
    wants_indices: bool,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    count = _spatial(g)
    kernel = _each(kernel_size, count)
    options = {
        "kernel_shape": kernel,
        "strides": kernel if stride is None or stride == () else _each(stride, count),
        "pads": _each(padding, count) * 2,
        "dilations": _each(dilation, count),
        "ceil_mode": int(ceil_mode),
    }
    if not wants_indices:
        return _batched(g, input, count + 2, lambda x: g.op("MaxPool", x, **options))

    def run(x: Value) -> Any:
        values, places = g.op("MaxPool", x, outputs=2, **options)
        sizes = g.op("Slice", g.shape(x), g.constant([2]), g.constant([2**62]))
        size = g.op("ReduceProd", sizes, keepdims=0)  # places count in the whole tensor
        return values, g.op("Mod", Value(places.name, rl.int64), size)

    return _batched(g, input, count + 2, run)


@converts("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    g: Builder,
    input: Value,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    if divisor_override is not None:
        g.refuse("divisor_override has no ONNX form")
    count = _spatial(g)
    kernel = _each(kernel_size, count)
    return _batched(
        g,
        input,
        count + 2,
        lambda x: g.op(
            "AveragePool", x, kernel_shape=kernel, pads=_each(padding, count) * 2,
            strides=kernel if stride is None or stride == () else _each(stride, count),
            ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        ),
    )  # fmt: skip


@converts("lp_pool1d", "lp_pool2d", "lp_pool3d")
def lp_pool(
    g: Builder,
    input: Value,
    norm_type: Any,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Value:
    if norm_type not in (1, 2):
        g.refuse(f"norm_type={norm_type} has no ONNX form")
    count = _spatial(g)
    kernel = _each(kernel_size, count)
    strides = kernel if stride is None else _each(stride, count)
    options = {"kernel_shape": kernel, "strides": strides, "ceil_mode": int(ceil_mode)}
    return _batched(g, input, count + 2, lambda x: g.op("LpPool", x, p=int(norm_type), **options))


def _adaptive_sizes(g: Builder, input: Value, output_size: Any) -> list[tuple[int, Any, Any]]:
    """For each pooled dimension its place, its size and the size that it gets."""
    count = _spatial(g)
    places = range(input.rank - count, input.rank)
    wanted = [
        g.size(input, place) if out is None else out
        for place, out in zip(places, _each(output_size, count), strict=True)
    ]
    return [(p, g.size(input, p), out) for p, out in zip(places, wanted, strict=True)]


@converts("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_avg_pool(g: Builder, input: Value, output_size: Any) -> Value:
    sizes = _adaptive_sizes(g, input, output_size)
    if all(out == 1 for _, _, out in sizes):
        return g.reduce("ReduceMean", input, [place for place, _, _ in sizes], True)
    for place, size, out in sizes:
        if not (isinstance(size, int) and isinstance(out, int)):
            g.refuse("it pools a size that may change to another one than 1")
        if size == out:
            continue
        means = rl.zeros(size, out, dtype=input.dtype)  # a product with it takes the means
        for i in range(out):
            first, last = i * size // out, -(-(i + 1) * size // out)
            means[first:last, i] = 1 / (last - first)
        order = list(range(input.rank))
        order[place], order[-1] = order[-1], order[place]
        moved = g.op("MatMul", g.transpose(input, order), g.initializer("means", means))
        assert input.shape is not None
        shape = tuple(out if d == place else s for d, s in enumerate(input.shape))
        input = replace(g.op("Transpose", moved, perm=order), shape=shape)
    return input


@converts(
    *(f"adaptive_max_pool{n}d" for n in (1, 2, 3)),
    *(f"adaptive_max_pool{n}d_with_indices" for n in (1, 2, 3)),
)
def adaptive_max_pool(g: Builder, input: Value, output_size: Any, *args: Any) -> Any:
    kernel = []
    for _, size, out in _adaptive_sizes(g, input, output_size):
        if not (isinstance(size, int) and isinstance(out, int)) or size % out:
            g.refuse(f"it pools {size} elements to {out}. One must be a multiple of the other")
        kernel.append(size // out)
    wants_indices = "indices" in g.node.target.__name__
    return _max_pool(g, input, wants_indices, kernel)


# Windows


@converts("nn.functional.unfold")
def unfold(
    g: Builder, input: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Value:
    kernel, channels = _each(kernel_size, 2), g.size(input, input.rank - 3)
    if not isinstance(channels, int):
        g.refuse("the number of channels may change")
    size = kernel[0] * kernel[1]
    picks = rl.eye(size, dtype=input.dtype).reshape(size, 1, *kernel).repeat(channels, 1, 1, 1)
    weight = g.initializer("picks", picks)  # each output channel is one place of the window

    def run(x: Value) -> Value:
        windows = g.op(
            "Conv", x, weight, kernel_shape=kernel, strides=_each(stride, 2), group=channels,
            pads=_each(padding, 2) * 2, dilations=_each(dilation, 2),
        )  # fmt: skip
        return g.reshape(windows, [0, channels * size, -1])

    return _batched(g, input, 4, run)


@converts("fold")
def fold(
    g: Builder,
    input: Value,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Value:
    return _batched(
        g,
        input,
        3,
        lambda x: g.op(
            "Col2Im", x, g.ints(_each(output_size, 2)), g.ints(_each(kernel_size, 2)),
            dilations=_each(dilation, 2), pads=_each(padding, 2) * 2, strides=_each(stride, 2),
        ),
    )  # fmt: skip


@converts("unfold")
def windows(g: Builder, input: Value, dimension: int, size: int, step: int) -> Value:
    dim = input.dim(dimension)
    length = g.size(input, dim)
    if not isinstance(length, int):
        g.refuse("the size of the dimension may change")
    places = [[first + i for i in range(size)] for first in range(0, length - size + 1, step)]
    made = g.op("Gather", input, g.constant(places), axis=dim)  # the windows stand behind dim
    order = [d for d in range(input.rank + 1) if d != dim + 1]
    return g.op("Transpose", made, perm=[*order, dim + 1])
