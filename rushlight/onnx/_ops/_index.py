"""Indexing, gather and scatter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._table import converts

__all__ = ["getitem"]

_END = 2**62  # beyond each dimension


@converts("getitem", "__getitem__")
def getitem(g: Builder, input: Value, index: Any) -> Value:
    """What an index selects: first slices, numbers and None, then tensors."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(_dims_of(item) for item in items)
    if any(item is Ellipsis for item in items):
        place = next(i for i, item in enumerate(items) if item is Ellipsis)
        items[place : place + 1] = [slice(None)] * (input.rank - used)
    x, dim = input, 0
    picks: dict[int, Value] = {}  # tensors by the dimension that they index
    for item in items:
        if item is None:
            x = _shaped(g.unsqueeze(x, dim), x, dim, insert=True)
            dim += 1
        elif isinstance(item, slice):
            x = _sliced(g, x, dim, item)
            dim += 1
        elif _is_number(item):
            x = _picked(g, x, dim, item)
        elif isinstance(item, Value) and item.dtype is rl.bool:
            if len(items) > 1 or x.rank < item.rank:
                g.refuse("a mask beside other indices has no ONNX form")
            places = g.transpose(
                Value(g.op("NonZero", item, dtype=rl.int64).name, rl.int64), [1, 0]
            )
            return g.op("GatherND", x, places)
        else:
            picks[dim] = item if isinstance(item, Value) else g.constant(item)
            dim += 1
    return _gathered(g, x, picks) if picks else x


def _dims_of(item: Any) -> int:
    """How many dimensions an item of an index uses."""
    if item is None or item is Ellipsis:
        return 0
    return item.rank if isinstance(item, Value) and item.dtype is rl.bool else 1


def _is_number(item: Any) -> bool:
    """Whether an item is an integer, or a size that may change, which no tensor was made of."""
    return isinstance(item, int) or (
        isinstance(item, Value) and item.dtype is not rl.bool and item.shape in (None, ())
    )


def _shaped(value: Value, before: Value, dim: int, insert: bool = False) -> Value:
    """The result of an indexing step with the sizes that are left."""
    shape = list(before.shape or ())
    if insert:
        shape.insert(dim, 1)
    else:
        del shape[dim]
    return replace(value, shape=tuple(shape))


def _picked(g: Builder, x: Value, dim: int, item: Any) -> Value:
    place = item if isinstance(item, Value) else g.constant(item)
    return _shaped(g.op("Gather", x, place, axis=dim), x, dim)


def _sliced(g: Builder, x: Value, dim: int, item: slice) -> Value:
    if (item.start, item.stop, item.step) in ((None, None, None), (0, None, None)):
        return x
    stop = _END if item.stop is None else item.stop
    part = g.slice(x, dim, item.start or 0, stop, item.step or 1)
    shape = list(x.shape or ())
    size = shape[dim]
    bounds = (item.start, item.stop, item.step)
    is_static = isinstance(size, int) and all(b is None or isinstance(b, int) for b in bounds)
    shape[dim] = len(range(size)[item]) if is_static and isinstance(size, int) else "part"
    return replace(part, shape=tuple(shape))


def _gathered(g: Builder, x: Value, picks: dict[int, Value]) -> Value:
    """Tensors as indices: their common shape stands where they stand, first if they are apart."""
    dims = sorted(picks)
    if len(dims) == 1:
        return g.op("Gather", x, picks[dims[0]], axis=dims[0])
    rest = [d for d in range(x.rank) if d not in picks]
    moved = g.transpose(x, [*dims, *rest])
    places, _ = _joined(g, [picks[dim] for dim in dims])
    found = g.op("GatherND", moved, places)
    if dims != list(range(dims[0], dims[-1] + 1)) or dims[0] == 0:
        return found
    rank = max(picks[dim].rank for dim in dims)  # of the common shape, which moves behind `before`
    before = dims[0]
    order = [*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(rest))]
    return g.op("Transpose", found, perm=order)


def _joined(g: Builder, indices: list[Value]) -> tuple[Value, Value]:
    """Tensors that index one dimension each as the rows of one, and their common shape."""
    numbers = [g.cast(index, rl.int64) for index in indices]
    total = numbers[0]
    for other in numbers[1:]:
        total = g.op("Add", total, other)
    shape = g.op("Shape", total, dtype=rl.int64)
    spread = [g.unsqueeze(g.op("Expand", index, shape), -1) for index in numbers]
    return g.op("Concat", *spread, axis=-1), shape


@converts("select")
def select(g: Builder, input: Value, dim: int, index: Any) -> Value:
    return _picked(g, input, input.dim(dim), index)


@converts("narrow")
def narrow(g: Builder, input: Value, dim: int, start: Any, length: Any) -> Value:
    if isinstance(start, int) and isinstance(length, int):
        stop: Any = start + length
    else:
        stop = g.op("Add", g.ints([start]), g.ints([length]))
    return g.slice(input, input.dim(dim), start, stop)


@converts("index_select")
def index_select(g: Builder, input: Value, dim: int, index: Value) -> Value:
    return g.op("Gather", input, index, axis=input.dim(dim))


@converts("take")
def take(g: Builder, input: Value, index: Value) -> Value:
    return g.op("Gather", g.reshape(input, [-1]), index, axis=0)


@converts("gather")
def gather(g: Builder, input: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    if input.shape == ():
        return input
    return g.op("GatherElements", _cut(g, input, index, dim), index, axis=input.dim(dim))


def _cut(g: Builder, input: Value, index: Value, dim: int) -> Value:
    """The part that gather looks at: index may be smaller in the other dimensions."""
    assert input.shape is not None and index.shape is not None
    part = input
    for place, (size, wanted) in enumerate(zip(input.shape, index.shape, strict=True)):
        if place != input.dim(dim) and size != wanted:
            part = g.slice(part, place, 0, g.size(index, place))
    return part


@converts("take_along_dim")
def take_along_dim(g: Builder, input: Value, indices: Value, dim: int | None = None) -> Value:
    if dim is None:
        input, indices, dim = g.reshape(input, [-1]), g.reshape(indices, [-1]), 0
    else:
        dim = input.dim(dim)
        shape = g.node.meta["shape"]
        if all(isinstance(size, int) for size in shape):  # both may be broadcast
            input = g.op("Expand", input, g.constant([*shape[:dim], 1, *shape[dim + 1 :]]))
            indices = g.op("Expand", indices, g.constant(list(shape)))
    return g.op("GatherElements", input, indices, axis=dim)


@converts("scatter")
def scatter(
    g: Builder,
    input: Value,
    dim: int,
    index: Value,
    src: Any = None,
    *,
    reduce: Any = None,
    **named: Any,
) -> Value:
    src = named.get("value", src)
    how = {None: "none", "add": "add", "multiply": "mul"}[reduce]
    return _scattered(g, input, dim, index, src, how)


def _scattered(g: Builder, input: Value, dim: int, index: Value, src: Any, how: str) -> Value:
    values = g.number(src, input)
    if not isinstance(src, Value) or src.shape == ():
        values = g.op("Expand", values, g.shape(index))
    elif src.shape != index.shape:
        for place in range(index.rank):
            values = g.slice(values, place, 0, g.size(index, place))
    return g.op("ScatterElements", input, index, values, axis=input.dim(dim), reduction=how)


@converts("scatter_add")
def scatter_add(g: Builder, input: Value, dim: int, index: Value, src: Value) -> Value:
    return _scattered(g, input, dim, index, src, "add")


@converts("scatter_reduce")
def scatter_reduce(
    g: Builder,
    input: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    how = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}.get(reduce)
    if how is None or not include_self:
        g.refuse("the mean, and include_self=False, have no ONNX form")
    return _scattered(g, input, dim, index, src, how)


def _along(g: Builder, input: Value, dim: int, index: Value) -> Value:
    """An index of rows as one of elements: the same for all elements of a row."""
    shape = [1] * input.rank
    shape[input.dim(dim)] = -1
    rows = g.reshape(index, shape)
    sizes = [g.size(input, d) for d in range(input.rank)]
    sizes[input.dim(dim)] = g.size(index, 0) if index.rank else 1
    return replace(g.op("Expand", rows, g.ints(sizes)), shape=None)


@converts("index_add")
def index_add(
    g: Builder, input: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1
) -> Value:
    if alpha != 1:
        source = replace(g.op("Mul", source, g.number(alpha, source)), shape=source.shape)
    places = _along(g, input, dim, index)
    return g.op("ScatterElements", input, places, source, axis=input.dim(dim), reduction="add")


@converts("index_copy")
def index_copy(g: Builder, input: Value, dim: int, index: Value, source: Value) -> Value:
    places = _along(g, input, dim, index)
    return g.op("ScatterElements", input, places, source, axis=input.dim(dim))


@converts("index_fill")
def index_fill(g: Builder, input: Value, dim: int, index: Value, value: Any) -> Value:
    places = _along(g, input, dim, index)
    sizes = g.op("Shape", places, dtype=rl.int64)
    values = g.op("Expand", g.number(value, input), sizes)
    return g.op("ScatterElements", input, places, values, axis=input.dim(dim))


@converts("index_put")
def index_put(
    g: Builder, input: Value, indices: Any, values: Value, accumulate: bool = False
) -> Value:
    items = list(indices)
    if any(item is None or item.dtype is rl.bool for item in items):
        g.refuse("masks and None among indices have no ONNX form here. Use x[mask] = value")
    places, shape = _joined(g, items)
    rest = [g.size(input, d) for d in range(len(items), input.rank)]
    sizes = g.op("Concat", shape, g.ints(rest), axis=0) if rest else shape
    values = g.op("Expand", g.cast(values, input.dtype), sizes)
    return g.op("ScatterND", input, places, values, reduction="add" if accumulate else "none")


@converts("nonzero")
def nonzero(g: Builder, input: Value, *, as_tuple: bool = False) -> Value:
    if as_tuple:
        g.refuse("as_tuple=True has no ONNX form. Use x.nonzero()")
    return g.op("Transpose", g.op("NonZero", input, dtype=rl.int64), perm=[1, 0])


@converts("masked_select")
def masked_select(g: Builder, input: Value, mask: Value) -> Value:
    return g.op("Compress", g.reshape(input, [-1]), g.reshape(mask, [-1]))


@converts("embedding")
def embedding(
    g: Builder,
    input: Value,
    weight: Value,
    padding_idx: Any = None,
    max_norm: Any = None,
    *args: Any,
) -> Value:
    if max_norm is not None:
        g.refuse("max_norm changes the weights. Leave it out")
    return g.op("Gather", weight, input, axis=0)


@converts("diagonal")
def diagonal(g: Builder, input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    a, b = input.dim(dim1), input.dim(dim2)
    rest = [d for d in range(input.rank) if d not in (a, b)]
    x = g.transpose(input, [a, b, *rest])
    size = g.node.meta["shape"][-1]
    if not isinstance(size, int):
        g.refuse("the size of the diagonal may change")
    first, second = max(-offset, 0), max(offset, 0)
    places = g.constant([[first + i, second + i] for i in range(size)])
    found = g.op("GatherND", x, places)  # (size, ...rest)
    return g.op("Transpose", found, perm=[*range(1, len(rest) + 1), 0])
