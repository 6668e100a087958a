"""What ops do with nested tensors: which run on all elements at once, and which part by part.

A dim of a nested tensor is the one before it in its parts. An op that leaves the ragged dim alone
runs once on the values of a jagged tensor, whose dims are those of the parts; one that works along
it, and every one on layout strided that is not elementwise, runs on each part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._elementwise import is_elementwise
from rushlight._overridable import function_of
from rushlight.nested._ragged import NestedInt, Ragged
from rushlight.nested._tensor import (
    Nested,
    NestedTensor,
    StridedNestedTensor,
    jagged_of,
    strided_of,
)
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["dispatch", "renested", "same_parts"]

# Elementwise too, where the seed and the places of random numbers do not matter.
_OTHERS = {"alpha_dropout", "dropout", "frexp", "positive", "rrelu"}


def dispatch(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Returns what an op gives for nested tensors.

    Raises:
        NotImplementedError: if it does not take them.
    """
    from rushlight.nested._rules import RULES

    func = function_of(func)
    name = getattr(func, "__name__", "")
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}: out is not supported for nested tensors. Copy into it.")
    if not args and "input" in kwargs:  # where rules look for it
        args = (kwargs.pop("input"),)
    rule = RULES.get(name)
    if rule is not None:
        result = rule(func, args, kwargs)
        if result is not NotImplemented:
            return result
    if is_elementwise(name) or name.removesuffix("_") in _OTHERS:
        return _by_elements(func, name, args, kwargs)
    raise NotImplementedError(
        f"{name}: not supported for nested tensors. Use unbind() for the parts, or "
        "to_padded_tensor() for a plain tensor."
    )


# Elementwise


def _by_elements(func: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Any:
    leaves, tree = tree_flatten((args, kwargs))
    like = next(leaf for leaf in leaves if isinstance(leaf, Nested))
    if isinstance(like, NestedTensor):
        # One may have fewer dims to the right of the ragged one, or a size of 1.
        like = max((x for x in leaves if isinstance(x, NestedTensor)), key=lambda x: x.dim())
    plain = [_aligned(leaf, like, name) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    new_args, new_kwargs = tree_unflatten(plain, tree)
    if new_kwargs.get("layout") is like.layout:
        del new_kwargs["layout"]
    result = func(*new_args, **new_kwargs)
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    return _wrapped(result, like._like)


def _wrapped(result: Any, wrap: Callable[[Tensor], Any]) -> Any:
    """A result with its tensors wrapped, also inside a tuple or list."""
    if isinstance(result, Tensor):
        return wrap(result)
    if isinstance(result, (tuple, list)):
        kind: Any = type(result)
        return kind([_wrapped(item, wrap) for item in result])
    return result


def same_parts(a: Nested, b: Nested) -> bool:
    """Returns whether two nested tensors have parts of the same ragged size."""
    if isinstance(a, NestedTensor) and isinstance(b, NestedTensor):
        return a._ragged.size == b._ragged.size
    if isinstance(a, StridedNestedTensor) and isinstance(b, StridedNestedTensor):
        return a._shapes == b._shapes
    return False


def _aligned(tensor: Tensor, like: Nested, name: str) -> Tensor:
    """The plain tensor that goes with the plain tensor of another."""
    if isinstance(tensor, Nested):
        if not same_parts(tensor, like) or _from_end(tensor) != _from_end(like):
            raise RuntimeError(
                f"cannot call binary pointwise function {name} with nested tensors of shapes "
                f"{_shape(tensor)} and {_shape(like)}: their ragged sizes differ. Compute one from "
                "the other, or make both from the same offsets; does not support broadcasting."
            )
        return tensor._plain
    if tensor.dim() == 0 or tensor.numel() == 1:
        return tensor.reshape(())
    if isinstance(like, StridedNestedTensor):
        pairs = zip(like._parts(), _by_part(tensor, like), strict=True)
        return rl.cat([x.broadcast_to(part.shape).reshape(-1) for part, x in pairs])
    assert isinstance(like, NestedTensor)
    if tensor.dim() > like.dim():
        raise RuntimeError(
            f"{name}: a tensor of shape {tuple(tensor.shape)} does not broadcast to the nested "
            f"shape {_shape(like)}, which has fewer dims."
        )
    while tensor.dim() and tensor.shape[0] == 1 and tensor.dim() >= like.dim() - 1:
        tensor = tensor.squeeze(0)
    if tensor.dim() < like.dim() - like._ragged_idx:
        return tensor
    return _rows_of(tensor, like, name)


def _from_end(x: Nested) -> int:
    """Which dim is ragged, counted from the last one."""
    return x.dim() - x._ragged_idx if isinstance(x, NestedTensor) else 0


def _shape(x: Nested) -> tuple[Any, ...]:
    return tuple(x.shape) if isinstance(x, NestedTensor) else x._shapes  # pyright: ignore[reportAttributeAccessIssue]


def _by_part(tensor: Tensor, like: Nested) -> Sequence[Tensor]:
    """What of a plain tensor goes with each part: all of it, or its share of the batch."""
    if tensor.dim() < like.dim():
        return [tensor] * like._batch()
    if tensor.dim() > like.dim() or tensor.shape[0] not in (1, like._batch()):
        raise RuntimeError(
            f"a tensor of shape {tuple(tensor.shape)} does not broadcast to a nested tensor of "
            f"{like._batch()} parts with {like.dim() - 1} dims."
        )
    return tensor.expand(like._batch(), *tensor.shape[1:]).unbind(0)


def _rows_of(tensor: Tensor, like: NestedTensor, name: str) -> Tensor:
    """A tensor padded along the ragged dim, or of size 1 there, as the values that go with it."""
    dims, ragged = like.dim(), like._ragged
    tensor = tensor.reshape((1,) * (dims - tensor.dim()) + tuple(tensor.shape))
    batch, length = tensor.shape[0], tensor.shape[like._ragged_idx]
    if batch not in (1, like._batch()) or (length != 1 and length < ragged.longest):
        raise RuntimeError(
            f"cannot call binary pointwise function {name} with inputs of shapes {_shape(like)} "
            f"and {tuple(tensor.shape)}. A dense tensor has the size of the batch or 1, and along "
            f"the ragged dim 1 or at least {ragged.longest}."
        )
    table = tensor.movedim(like._ragged_idx, 1).flatten(0, 1)  # (batch * length, dense dims...)
    parts, places = ragged.places
    index = (parts if batch > 1 else 0) * length + (places if length > 1 else 0)
    if not isinstance(index, Tensor):  # the same for all rows
        return tensor.squeeze(0)
    rows = table.index_select(0, index).movedim(0, like._row_dim)
    total = like._plain.shape[like._row_dim]
    if ragged.fills(total):
        return rows
    spread = rows.new_zeros([*rows.shape[: like._row_dim], total, *rows.shape[like._row_dim + 1 :]])
    return spread.index_copy(like._row_dim, ragged.rows, rows)


# Results of parts


def renested(results: Sequence[Any], like: Nested, ragged_idx: int | None = None) -> Any:
    """Returns the results of the parts as a nested tensor, or a tuple of them for tuples.

    Args:
        results: one for each part.
        like: the nested tensor whose parts they come from.
        ragged_idx: the ragged dim of a jagged result, as it is in `like` if None.
    """
    if not results:
        return like
    if not isinstance(results[0], Tensor):
        kind: Any = type(results[0])
        if len({len(items) for items in results}) > 1:
            raise RuntimeError(
                "an op gives different numbers of results for the parts of a nested tensor. Call "
                "it for each part of unbind()."
            )
        return kind([renested(items, like, ragged_idx) for items in zip(*results, strict=True)])
    if isinstance(like, StridedNestedTensor):
        shapes = [result.shape for result in results]
        return strided_of(rl.cat([result.reshape(-1) for result in results]), shapes)
    assert isinstance(like, NestedTensor)
    position = like._ragged_idx if ragged_idx is None else ragged_idx
    sizes, ragged = [result.shape[position - 1] for result in results], like._ragged
    if sizes != ragged.sizes:
        ragged = Ragged.of_sizes(sizes, like.device)
    elif not ragged.fills(sum(sizes)):
        ragged = Ragged(Ragged.of_sizes(sizes, like.device).offsets, None, ragged.size)
    return jagged_of(rl.cat(list(results), position - 1), ragged, position)


def has_ragged_size(sizes: Any) -> bool:
    """Returns whether a ragged size is among sizes."""
    return any(isinstance(size, NestedInt) for size in sizes)
