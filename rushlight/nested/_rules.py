"""The table of the ops that are not elementwise: along which dim each works, and how.

Attention and the other products of nested tensors are in _products.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._dims import wrapped_dim
from rushlight.nested import _products
from rushlight.nested._dispatch import has_ragged_size, renested, same_parts
from rushlight.nested._ragged import NestedInt, Ragged
from rushlight.nested._tensor import Nested, NestedTensor, StridedNestedTensor, jagged_of

Rule = Callable[[Callable[..., Any], Any, Any], Any]

__all__ = ["RULES"]


def _dims_in(x: Nested, dims: Any, name: str, extra: int = 0) -> list[int]:
    """The dims as numbers from 0."""
    count = x.dim() + extra
    given = [dims] if isinstance(dims, int) else list(dims)
    found = [wrapped_dim(dim, count) for dim in given]
    if len(set(found)) < len(found):
        raise RuntimeError(f"{name}: dim {given} appears multiple times in the list of dims")
    return found


class _Along:
    """A call of an op that works along dims of its first argument.

    Args:
        position: of the argument that tells the dims.
        func, args, kwargs: the call.
        default: the dims when it does not tell any.
        extra: how many more dims the result has, if the dims are those of the result.
    """

    def __init__(
        self, position: int, func: Any, args: Any, kwargs: Any, default: Any = None, extra: int = 0
    ) -> None:
        self.func, self.position, self.name = func, position, func.__name__
        self.args, self.kwargs = list(args), dict(kwargs)
        self.x: Any = self.args[0]
        if not isinstance(self.x, Nested) or any(isinstance(a, Nested) for a in self.args[1:]):
            raise NotImplementedError(
                f"{self.name}: takes one nested tensor, its first argument. Use unbind()."
            )
        self.key = next((k for k in ("dim", "dims", "axis") if k in self.kwargs), None)
        if self.key is not None:
            given = self.kwargs[self.key]
        else:
            given = self.args[position] if position < len(self.args) else None
        if given is None or isinstance(given, bool):  # var(True) tells no dim
            given = default
        self.is_one = isinstance(given, int)
        self.dims = None if given is None else _dims_in(self.x, given, self.name, extra)

    def on(self, plain: Tensor) -> Any:
        """Runs the op on a part, or on all values, along the same dims."""
        args, kwargs = [plain, *self.args[1:]], dict(self.kwargs)
        if self.dims is not None:
            inner: Any = [dim - 1 for dim in self.dims]
            inner = inner[0] if self.is_one else inner
            if self.key is not None:
                kwargs[self.key] = inner
            elif self.position < len(args):
                args[self.position] = inner
            else:
                kwargs["dim"] = inner
        return self.func(*args, **kwargs)

    def on_parts(self) -> list[Any]:
        """Runs the op on each part."""
        return [self.on(part) for part in self.x._parts()]

    def is_along_ragged(self) -> bool:
        """Whether the ragged dim of a jagged tensor is among the dims."""
        return isinstance(self.x, NestedTensor) and self.x._ragged_idx in (self.dims or ())

    def refuse_batch(self) -> None:
        """Raises a RuntimeError if the batch is among the dims."""
        if 0 in (self.dims or ()):
            raise RuntimeError(
                f"{self.name}(): not supported for NestedTensor on dim=0, the batch. Use unbind() "
                "for the parts."
            )

    def refuse_ragged(self) -> None:
        """Raises a RuntimeError if the ragged dim is among the dims."""
        if self.is_along_ragged():
            raise RuntimeError(
                f"{self.name}(): not supported for NestedTensor on ragged dim. Use unbind() for "
                "the parts, or to_padded_tensor()."
            )

    def on_all(self, ragged_idx: int | None = None) -> Any:
        """Runs the op on all values at once, or on each part of layout strided."""
        if isinstance(self.x, StridedNestedTensor):
            return renested(self.on_parts(), self.x)
        result = self.on(self.x._plain)
        position = self.x._ragged_idx if ragged_idx is None else ragged_idx
        return _jagged(result, self.x._ragged, position)


def _jagged(result: Any, ragged: Ragged, position: int) -> Any:
    if isinstance(result, Tensor):
        return jagged_of(result, ragged, position)
    kind: Any = type(result)
    return kind([jagged_of(item, ragged, position) for item in result])


# Along dims


def _reduce(position: int, func: Any, args: Any, kwargs: Any) -> Any:
    """sum and its like: over everything, over the batch and the ragged dim, or within parts."""
    if len(args) > 1 and isinstance(args[1], Tensor):
        return NotImplemented  # max(a, b)
    call = _Along(position, func, args, kwargs)
    x, dims = call.x, call.dims
    if dims is not None and len(dims) == x.dim():
        return _over_all(call)
    if not dims:
        return call.on(x._packed() if isinstance(x, NestedTensor) else x._plain)
    if 0 in dims:
        if not call.is_along_ragged():
            raise RuntimeError(
                f"{call.name}(): reducing along the batch dimension but not the ragged dimension "
                "is not supported for nested tensors. Use to_padded_tensor()."
            )
        return _over_all(call)
    if call.is_along_ragged():
        return _stacked(call.on_parts())
    if isinstance(x, StridedNestedTensor):
        return call.on_all()
    result = call.on(x._plain)
    before = 0 if _keeps_dims(result, x) else _count_before(x, dims)
    return _jagged(result, x._ragged, x._ragged_idx - before)


def _over_all(call: _Along) -> Any:
    """Reduces over the batch and the ragged dim, and others."""
    x = call.x
    if isinstance(x, StridedNestedTensor):
        raise RuntimeError(f"{call.name}(): reduces the batch only without dim.")
    call.dims, call.is_one = [dim for dim in call.dims or () if dim], False
    result = call.on(x._packed())
    return result.unsqueeze(0) if _keeps_dims(result, x) else result


def _keeps_dims(result: Any, x: NestedTensor) -> bool:
    first = result if isinstance(result, Tensor) else result[0]
    return first.dim() == x.dim() - 1


def _count_before(x: NestedTensor, dims: Sequence[int]) -> int:
    return sum(dim < x._ragged_idx for dim in dims)


def _stacked(results: list[Any]) -> Any:
    if isinstance(results[0], Tensor):
        return rl.stack(results)
    kind: Any = type(results[0])
    return kind([rl.stack(items) for items in zip(*results, strict=True)])


def _keep(default: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """softmax and its like: each result has the shape of its part."""
    call = _Along(1, func, args, kwargs, default)
    if call.dims is None:
        raise NotImplementedError(f"{call.name}: needs dim for nested tensors.")
    call.refuse_batch()
    if call.is_along_ragged():
        return renested(call.on_parts(), call.x)
    return call.on_all()


def _cut(position: int, default: int, func: Any, args: Any, kwargs: Any) -> Any:
    """split and its like: the dims stay as many as they were."""
    call = _Along(position, func, args, kwargs, default)
    call.refuse_batch()
    call.refuse_ragged()
    return call.on_all()


def _narrow(func: Any, args: Any, kwargs: Any) -> Any:
    x, dim, start, length = _bound(args, kwargs, ("input", "dim", "start", "length"), ())
    if not isinstance(x, StridedNestedTensor) or _dims_in(x, dim, "narrow") != [0]:
        return _cut(1, 0, func, args, kwargs)
    parts = x._parts()
    chosen = rl.arange(len(parts), device="cpu").narrow(0, start, length)  # which checks the range
    return renested([parts[i] for i in chosen.tolist()], x)


def _same_sizes(func: Any, args: Any, kwargs: Any) -> bool:
    a, b = _bound(args, kwargs, ("input", "other"), ())
    is_same = isinstance(a, Nested) and isinstance(b, Nested) and same_parts(a, b)
    return is_same and (isinstance(a, StridedNestedTensor) or a.shape == b.shape)


def _chunk(func: Any, args: Any, kwargs: Any) -> Any:
    call = _Along(2, func, args, kwargs, 0)
    if call.dims != [0]:
        return _cut(2, 0, func, args, kwargs)
    parts, count = call.x._parts(), call.args[1] if len(call.args) > 1 else call.kwargs["chunks"]
    step = max(1, -(-len(parts) // count))
    return tuple(renested(parts[i : i + step], call.x) for i in range(0, len(parts), step))


def _change_dims(func: Any, args: Any, kwargs: Any) -> Any:
    """squeeze, unsqueeze and unflatten, which take away or add dims in one place."""
    is_unsqueeze = func.__name__ == "unsqueeze"
    call = _Along(1, func, args, kwargs, extra=1 if is_unsqueeze else 0)
    x = call.x
    if call.dims is None:
        raise NotImplementedError(f"{call.name}: needs dim for nested tensors.")
    call.refuse_batch()
    if isinstance(x, StridedNestedTensor):
        return call.on_all()
    if not is_unsqueeze:
        call.refuse_ragged()
    result = call.on(x._plain)
    added = result.dim() - x._plain.dim()
    is_before = call.dims[0] <= x._ragged_idx if is_unsqueeze else call.dims[0] < x._ragged_idx
    return jagged_of(result, x._ragged, x._ragged_idx + (added if is_before else 0))


def _flatten(func: Any, args: Any, kwargs: Any) -> Any:
    x, start, end = _bound(args, kwargs, ("input", "start_dim", "end_dim"), (0, -1))
    start, end = (_dims_in(x, dim, "flatten")[0] for dim in (start, end))
    if start == end:
        return x
    if start == 0 or (isinstance(x, NestedTensor) and start <= x._ragged_idx <= end):
        where = "dim=0" if start == 0 else "ragged dim"
        raise RuntimeError(f"flatten(): not supported for NestedTensor on {where}. Use values().")
    if isinstance(x, StridedNestedTensor):
        return renested([func(part, start - 1, end - 1) for part in x._parts()], x)
    position = x._ragged_idx - (end - start if end < x._ragged_idx else 0)
    return jagged_of(func(x._plain, start - 1, end - 1), x._ragged, position)


def _bound(args: Any, kwargs: Any, names: Sequence[str], defaults: Sequence[Any]) -> list[Any]:
    """The arguments of a call in order; the last ones may have defaults."""
    required = len(names) - len(defaults)
    values = [None] * required + list(defaults)
    for i, value in enumerate(args):
        values[i] = value
    for i, name in enumerate(names):
        values[i] = kwargs.get(name, values[i])
    return values


def _transpose(func: Any, args: Any, kwargs: Any) -> Any:
    x, first, second = _bound(args, kwargs, ("input", "dim0", "dim1"), ())
    dims = [_dims_in(x, dim, "transpose")[0] for dim in (first, second)]
    order = list(range(x.dim()))
    order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
    return _permuted(x, order, "transpose")


def _permute(func: Any, args: Any, kwargs: Any) -> Any:
    x, order = args[0], kwargs["dims"] if "dims" in kwargs else args[1:]
    order = list(order[0]) if len(order) == 1 and not isinstance(order[0], int) else list(order)
    if len(order) != x.dim():
        raise ValueError(f"permute: got {len(order)} dims for a tensor with {x.dim()}.")
    return _permuted(x, _dims_in(x, order, "permute"), "permute")


def _permuted(x: Nested, order: list[int], name: str) -> Any:
    if order[0] != 0:
        raise ValueError(f"{name}: is not supported on the batch dimension of a nested tensor.")
    inner = [dim - 1 for dim in order[1:]]
    if isinstance(x, NestedTensor):
        position = order.index(x._ragged_idx)
        return jagged_of(x._plain.permute(inner), x._ragged, position)
    return renested([part.permute(inner) for part in x._parts()], x)


def _view(func: Any, args: Any, kwargs: Any) -> Any:
    """view, reshape and expand."""
    x, name = args[0], func.__name__
    sizes = kwargs.get("size", kwargs.get("shape", args[1:]))
    sizes = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    if sizes and isinstance(sizes[0], rl.dtype):
        return NotImplemented
    if len(sizes) < 2 or sizes[0] not in (x._batch(), -1):
        raise RuntimeError(
            f"{name}: sizes {sizes} do not begin with {x._batch()}, the number of parts. The batch "
            "of a nested tensor cannot be merged or divided. Use values()."
        )
    if isinstance(x, StridedNestedTensor):
        return renested([func(part, _of_part(part, sizes[1:])) for part in x._parts()], x)
    ragged = [i for i, size in enumerate(sizes) if isinstance(size, NestedInt)]
    position = ragged[0] if ragged else x._ragged_idx
    is_named = bool(ragged) and sizes[position] == x._ragged.size
    if not is_named and (ragged or len(sizes) <= position or sizes[position] != -1):
        raise RuntimeError(
            f"{name}: sizes {sizes} have no place for the ragged size {x._ragged.size}. Give it as "
            f"size({x._ragged_idx}), or -1 at dim {x._ragged_idx}."
        )
    inner, values = sizes[1:], x._plain
    inner[position - 1] = values.shape[x._row_dim]
    if name != "expand" and math.prod(inner[: position - 1]) != math.prod(
        values.shape[: x._row_dim]
    ):
        raise RuntimeError(f"{name}: sizes {sizes} would mix the ragged dim of {x.shape} with one.")
    return jagged_of(func(values, inner), x._ragged, position)


def _of_part(part: Tensor, sizes: list[int]) -> list[int]:
    """Sizes for a part: -1 keeps a size where it does not stand for the only one left out."""
    if sizes.count(-1) <= 1:
        return sizes
    return [part.shape[i] if size == -1 else size for i, size in enumerate(sizes)]


def _select(func: Any, args: Any, kwargs: Any) -> Any:
    call = _Along(1, func, args, kwargs)
    if call.dims == [0]:
        index = call.args[2] if len(call.args) > 2 else call.kwargs["index"]
        return call.x._parts()[index]
    call.refuse_ragged()
    x = call.x
    is_jagged = isinstance(x, NestedTensor)
    return call.on_all(x._ragged_idx - _count_before(x, call.dims or ()) if is_jagged else None)


def _unbind(func: Any, args: Any, kwargs: Any) -> tuple[Tensor, ...]:
    x, dim = _bound(args, kwargs, ("input", "dim"), (0,))
    if _dims_in(x, dim, "unbind") != [0]:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0, the batch.")
    return x._parts()


def _getitem(func: Any, args: Any, kwargs: Any) -> Any:
    x, index = args
    items = list(index) if isinstance(index, tuple) else [index]
    if any(item is None or isinstance(item, (Tensor, list, bool)) for item in items):
        raise NotImplementedError(
            "__getitem__: a nested tensor takes numbers, slices and an ellipsis. Index its parts."
        )
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (x.dim() - len(items) + 1)
    if isinstance(items[0], int):
        parts = x._parts()
        if not -len(parts) <= items[0] < len(parts):
            raise IndexError(
                f"index {items[0]} is out of bounds for dimension 0 with size {len(parts)}"
            )
        part = parts[items[0]]
        return part[tuple(items[1:])] if len(items) > 1 else part
    rest = tuple(items[1:])
    if items[0] != slice(None):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0. Use unbind().")
    if isinstance(x, StridedNestedTensor):
        return renested([part[rest] for part in x._parts()], x)
    at = x._ragged_idx - 1
    if len(rest) > at and rest[at] != slice(None):
        raise RuntimeError("slice(): not supported for NestedTensor on the ragged dim.")
    lost = sum(isinstance(item, int) for item in rest[:at])
    return jagged_of(x._plain[rest], x._ragged, x._ragged_idx - lost)


def _cat(func: Any, args: Any, kwargs: Any) -> Any:
    tensors, dim = _bound(args, kwargs, ("tensors", "dim"), (0,))
    like = next(tensor for tensor in tensors if isinstance(tensor, Nested))
    if not all(isinstance(t, Nested) and t.layout is like.layout for t in tensors):
        raise RuntimeError("cat(): expected nested tensors of one layout. Use as_nested_tensor.")
    (dim,) = _dims_in(like, dim, "cat")
    if dim == 0:
        return renested([part for tensor in tensors for part in tensor._parts()], like)
    if isinstance(like, NestedTensor):
        if dim == like._ragged_idx:
            raise RuntimeError("cat(): not supported for NestedTensor on ragged dim.")
        if not all(same_parts(tensor, like) for tensor in tensors):
            raise RuntimeError("cat(): expected nested tensors of one ragged size.")
        return like._like(rl.cat([tensor._plain for tensor in tensors], dim - 1))
    parts = zip(*(tensor._parts() for tensor in tensors), strict=True)
    return renested([rl.cat(items, dim - 1) for items in parts], like)


# The others


def _embedding(func: Any, args: Any, kwargs: Any) -> Any:
    indices, rest = args[0], args[1:]
    if isinstance(indices, NestedTensor):
        return indices._like(func(indices._plain, *rest, **kwargs))
    if isinstance(indices, StridedNestedTensor):
        return renested([func(part, *rest, **kwargs) for part in indices._parts()], indices)
    return NotImplemented


def _last_dims(func: Any, args: Any, kwargs: Any) -> Any:
    """layer_norm and rms_norm."""
    x, shape = args[0], kwargs.get("normalized_shape", args[1] if len(args) > 1 else ())
    shape = (shape,) if isinstance(shape, int) else shape
    if isinstance(x, StridedNestedTensor):
        return renested([func(part, *args[1:], **kwargs) for part in x._parts()], x)
    kept = x.dim() - len(shape)
    if x._ragged_idx < kept and not has_ragged_size(shape):
        return x._like(func(x._plain, *args[1:], **kwargs))
    if kept < 1 or tuple(shape) != tuple(x.shape[kept:]):
        raise RuntimeError(
            f"{func.__name__}: normalized_shape {tuple(shape)} is not how {x.shape} ends, whose "
            f"ragged dim is dim {x._ragged_idx}."
        )
    others = {name: value for name, value in kwargs.items() if name != "normalized_shape"}
    parts = x._parts()
    return renested([func(t, t.shape[kept - 1 :], *args[2:], **others) for t in parts], x)


def _compare(func: Any, args: Any, kwargs: Any) -> bool:
    """equal and allclose."""
    a, b = args[:2]
    if not isinstance(a, Nested) or not isinstance(b, Nested) or len(a) != len(b):
        return False
    pairs = list(zip(a._parts(), b._parts(), strict=True))
    if any(p.shape != q.shape for p, q in pairs):
        return False
    return all(func(p, q, *args[2:], **kwargs) for p, q in pairs)


def _new(func: Any, args: Any, kwargs: Any) -> Any:
    """new_zeros and its like: a plain tensor, or one like this for its own sizes."""
    x: Any = args[0]
    given: Any = args[1] if len(args) > 1 else ()
    size: Any = kwargs.get("size", given)
    if isinstance(size, (list, tuple)) and has_ragged_size(size):
        if tuple(size) != tuple(x.shape):
            raise RuntimeError(f"{func.__name__}: sizes {tuple(size)} are not those of {x.shape}.")
        rest = args[2:]
        return x._like(func(x._plain, tuple(x._plain.shape), *rest, **kwargs))
    return func(x._plain, *args[1:], **kwargs)


_REDUCTIONS = (
    "sum nansum mean nanmean prod amax amin aminmax max min argmax argmin any all var std var_mean "
    "std_mean logsumexp median nanmedian count_nonzero"
)

RULES: dict[str, Rule] = {
    **{name: partial(_reduce, 1) for name in _REDUCTIONS.split()},
    "norm": partial(_reduce, 2),
    "vector_norm": partial(_reduce, 2),
    **{
        name: partial(_keep, None)
        for name in ("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logcumsumexp",
                     "flip")
    },
    "sort": partial(_keep, -1),
    "argsort": partial(_keep, -1),
    "glu": partial(_cut, 1, -1),
    "split": partial(_cut, 2, 0),
    "split_with_sizes": partial(_cut, 2, 0),
    "tensor_split": partial(_cut, 2, 0),
    "narrow": _narrow,
    "index_select": partial(_cut, 1, 0),
    "chunk": _chunk,
    "squeeze": _change_dims,
    "unsqueeze": _change_dims,
    "unflatten": _change_dims,
    "flatten": _flatten,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "permute": _permute,
    "view": _view,
    "reshape": _view,
    "expand": _view,
    "select": _select,
    "unbind": _unbind,
    "__getitem__": _getitem,
    "cat": _cat,
    "embedding": _embedding,
    "layer_norm": _last_dims,
    "rms_norm": _last_dims,
    "equal": _compare,
    "is_same_size": _same_sizes,
    "numel": lambda _, args, kwargs: args[0].numel(),
    "allclose": _compare,
    **dict.fromkeys(("new_empty", "new_zeros", "new_ones", "new_full"), _new),
    "linear": _products.linear,
    "matmul": _products.matmul,
    "bmm": _products.matmul,
    "scaled_dot_product_attention": _products.attention,
    "multi_head_attention_forward": lambda _, args, kwargs: _products.multi_head_attention(
        *args, **kwargs
    ),
}  # fmt: skip
