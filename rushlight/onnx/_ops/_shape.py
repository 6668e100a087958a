"""Shapes: views, joins, splits and repeats."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._table import converts

__all__ = ["flat"]


def flat(values: Any) -> list[Any]:
    """Arguments like sizes, which come one by one or as one collection."""
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        return list(values[0])
    return list(values)


@converts("view", "reshape")
def reshape(g: Builder, input: Value, *shape: Any, **named: Any) -> Value:
    sizes = flat(shape) if shape else list(named.get("shape", named.get("size", ())))
    if sizes and isinstance(sizes[0], rl.dtype):
        g.refuse("a view in another dtype has no ONNX form")
    return g.reshape(input, sizes)


@converts("view_as", "reshape_as")
def view_as(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Reshape", input, g.shape(other))


@converts("flatten", "ravel")
def flatten(g: Builder, input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    first, last = input.dim(start_dim), input.dim(end_dim)
    before = [0] * first  # as it is
    after = [g.size(input, d) for d in range(last + 1, input.rank)]
    return g.reshape(input, [*before, -1, *after])


@converts("unflatten")
def unflatten(g: Builder, input: Value, dim: int, sizes: Any) -> Value:
    dim = input.dim(dim)
    after = [g.size(input, d) for d in range(dim + 1, input.rank)]
    return g.reshape(input, [*[0] * dim, *sizes, *after])


@converts("squeeze")
def squeeze(g: Builder, input: Value, dim: Any = None) -> Value:
    assert input.shape is not None
    dims = range(input.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [input.dim(d) for d in dims if input.rank]
    return g.squeeze(input, *gone) if (gone := [d for d in dims if input.shape[d] == 1]) else input


@converts("unsqueeze")
def unsqueeze(g: Builder, input: Value, dim: int) -> Value:
    return g.unsqueeze(input, dim % (input.rank + 1))


@converts("atleast_1d", "atleast_2d", "atleast_3d")
def atleast(g: Builder, input: Value) -> Value:
    wanted = int(g.node.target.__name__[-2])
    if input.rank >= wanted:
        return input
    places = {1: {0: [0]}, 2: {0: [0, 1], 1: [0]}, 3: {0: [0, 1, 2], 1: [0, 2], 2: [2]}}
    return g.unsqueeze(input, *places[wanted][input.rank])


@converts("transpose", "swapaxes", "swapdims")
def transpose(g: Builder, input: Value, dim0: int, dim1: int) -> Value:
    order = list(range(input.rank))
    if order:
        a, b = input.dim(dim0), input.dim(dim1)
        order[a], order[b] = order[b], order[a]
    return g.transpose(input, order)


@converts("t")
def t(g: Builder, input: Value) -> Value:
    return g.transpose(input, list(range(input.rank))[::-1])


@converts("permute")
def permute(g: Builder, input: Value, *dims: Any, **named: Any) -> Value:
    return g.transpose(input, [input.dim(d) for d in flat(dims or (named["dims"],))])


@converts("movedim", "moveaxis")
def movedim(g: Builder, input: Value, source: Any, destination: Any) -> Value:
    sources = [input.dim(d) for d in ([source] if isinstance(source, int) else source)]
    places = [input.dim(d) for d in ([destination] if isinstance(source, int) else destination)]
    order = [d for d in range(input.rank) if d not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return g.transpose(input, order)


@converts("expand", "broadcast_to")
def expand(g: Builder, input: Value, *size: Any, **named: Any) -> Value:
    sizes = flat(size or (named["size"],))
    return g.op("Expand", input, g.ints(1 if s == -1 and isinstance(s, int) else s for s in sizes))


@converts("expand_as")
def expand_as(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Expand", input, g.shape(other))


@converts("broadcast_tensors")
def broadcast_tensors(g: Builder, *tensors: Any) -> Any:
    values = flat(tensors)
    total = values[0]
    for other in values[1:]:  # what all add up to has their common shape
        total = g.op("Add", g.cast(total, rl.float32), g.cast(other, rl.float32))
    shape = g.op("Shape", total, dtype=rl.int64)
    return tuple(g.op("Expand", value, shape) for value in values)


@converts("meshgrid")
def meshgrid(g: Builder, *tensors: Any, indexing: str | None = None) -> Any:
    values = flat(tensors)
    rank = len(values)
    shaped = [
        g.reshape(tensor, [-1 if d == place else 1 for d in range(rank)])
        for place, tensor in enumerate(values)
    ]
    made = broadcast_tensors(g, *shaped)
    if indexing == "xy" and rank > 1:
        order = [1, 0, *range(2, rank)]
        return tuple(g.transpose(grid, order) for grid in made)
    return made


@converts("cat", "concat", "concatenate")
def cat(g: Builder, tensors: Any, dim: int = 0) -> Value:
    dtype = g.node.meta["tensor_meta"].dtype
    kept = [x for x in tensors if x.shape != (0,)]  # empty ones fit everything
    return g.op("Concat", *(g.cast(x, dtype) for x in kept), axis=kept[0].dim(dim))


@converts("stack")
def stack(g: Builder, tensors: Any, dim: int = 0) -> Value:
    place = dim % (tensors[0].rank + 1)
    dtype = g.node.meta["tensor_meta"].dtype
    parts = [g.unsqueeze(g.cast(x, dtype), place) for x in tensors]
    return g.op("Concat", *parts, axis=place)


@converts("hstack", "vstack", "dstack", "row_stack", "column_stack")
def joined(g: Builder, tensors: Any) -> Value:
    name = g.node.target.__name__
    if name in ("vstack", "row_stack"):
        tensors = [g.reshape(x, [1, -1]) if x.rank == 1 else x for x in tensors]
        return g.op("Concat", *tensors, axis=0)
    if name == "column_stack":
        tensors = [g.reshape(x, [-1, 1]) if x.rank == 1 else x for x in tensors]
        return g.op("Concat", *tensors, axis=1)
    if name == "dstack":
        g.refuse("it has no ONNX form")
    return g.op("Concat", *tensors, axis=0 if tensors[0].rank == 1 else 1)


# Parts


def _split(g: Builder, input: Value, dim: int) -> Any:
    """Parts in the sizes that they had in the recording."""
    dim = input.dim(dim)
    sizes = [shape[dim] for shape in g.node.meta["shape"]]
    if any(not isinstance(size, int) for size in sizes):
        count = len(sizes)
        if count == 1:
            return (input,)
        if g.node.target.__name__.endswith("chunk"):
            return g.op("Split", input, outputs=count, axis=dim, num_outputs=count)
        g.refuse("the sizes of its parts may change")
    parts = g.op("Split", input, g.constant(sizes), outputs=len(sizes), axis=dim)
    return parts if len(sizes) > 1 else (parts,)


@converts("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")
def split(g: Builder, tensor: Value, split_size_or_sections: Any, dim: int = 0) -> Any:
    if isinstance(split_size_or_sections, (list, tuple)) and not all(
        isinstance(size, int) for size in split_size_or_sections
    ):
        sizes = split_size_or_sections
        parts = g.op("Split", tensor, g.ints(sizes), outputs=len(sizes), axis=tensor.dim(dim))
        return parts if len(sizes) > 1 else (parts,)
    return _split(g, tensor, dim)


@converts("chunk", "unsafe_chunk", "tensor_split")
def chunk(g: Builder, input: Value, chunks: Any, dim: int = 0) -> Any:
    return _split(g, input, dim)


@converts("unbind")
def unbind(g: Builder, input: Value, dim: int = 0) -> Any:
    dim = input.dim(dim)
    count = len(g.node.meta["tensor_meta"])
    return tuple(g.op("Gather", input, g.constant(place), axis=dim) for place in range(count))


# Repeats and order


@converts("repeat", "tile")
def repeat(g: Builder, input: Value, *repeats: Any, **named: Any) -> Value:
    counts = flat(repeats or (named.get("repeats", named.get("dims")),))
    counts = [1] * (input.rank - len(counts)) + counts
    extra = len(counts) - input.rank
    if extra > 0:
        input = g.unsqueeze(input, *range(extra))
    return g.op("Tile", input, g.ints(counts))


@converts("repeat_interleave")
def repeat_interleave(
    g: Builder, input: Value, repeats: Any, dim: int | None = None, *, output_size: Any = None
) -> Value:
    if isinstance(repeats, Value) and repeats.shape is not None:
        g.refuse("repeats that are a tensor have no ONNX form")
    if dim is None:
        input, dim = Value(g.reshape(input, [-1]).name, input.dtype, ("n",)), 0
    dim = input.dim(dim)
    spread = g.unsqueeze(input, dim + 1)
    ones: list[Any] = [1] * input.rank
    ones.insert(dim + 1, repeats)
    spread = g.op("Tile", spread, g.ints(ones))
    after = [g.size(input, d) for d in range(dim + 1, input.rank)]
    return g.reshape(spread, [*[0] * dim, -1, *after])


@converts("flip")
def flip(g: Builder, input: Value, *dims: Any, **named: Any) -> Value:
    for dim in flat(dims or (named["dims"],)):
        input = Value(
            g.slice(input, input.dim(dim), -1, -(2**62), -1).name, input.dtype, input.shape
        )
    return input


@converts("roll")
def roll(g: Builder, input: Value, shifts: Any, dims: Any = None) -> Value:
    if dims is None or dims == ():
        flat_input = Value(g.reshape(input, [-1]).name, input.dtype, ("n",))
        return g.op("Reshape", roll(g, flat_input, shifts, 0), g.shape(input))
    shifts = [shifts] if isinstance(shifts, int) else shifts
    dims = [dims] if isinstance(dims, int) else dims
    for shift, dim in zip(shifts, dims, strict=True):
        dim = input.dim(dim)
        size = g.size(input, dim)
        if isinstance(size, int):
            shift %= max(size, 1)
        if shift == 0:
            continue
        last = g.slice(input, dim, -shift, 2**62)
        first = g.slice(input, dim, 0, -shift)
        input = Value(g.op("Concat", last, first, axis=dim).name, input.dtype, input.shape)
    return input


@converts("pixel_shuffle")
def pixel_shuffle(g: Builder, input: Value, upscale_factor: int) -> Value:
    return g.op("DepthToSpace", input, blocksize=upscale_factor, mode="CRD")


@converts("pixel_unshuffle")
def pixel_unshuffle(g: Builder, input: Value, downscale_factor: int) -> Value:
    r = downscale_factor
    height, width = g.size(input, input.rank - 2), g.size(input, input.rank - 1)
    if not isinstance(height, int) or not isinstance(width, int):
        g.refuse("the size of its pictures may change")
    channels = g.size(input, input.rank - 3)
    x = g.reshape(input, [-1, channels, height // r, r, width // r, r])
    x = g.transpose(x, [0, 1, 3, 5, 2, 4])
    before = [g.size(input, d) for d in range(input.rank - 3)]
    return g.reshape(x, [*before, channels * r * r, height // r, width // r])


@converts("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(g: Builder, input: Value, groups: int) -> Value:
    rest = [g.size(input, d) for d in range(2, input.rank)]
    channels = g.size(input, 1)
    x = g.reshape(input, [0, groups, channels // groups, *rest])
    x = g.transpose(x, [0, 2, 1, *range(3, input.rank + 1)])
    return g.reshape(x, [0, channels, *rest])
