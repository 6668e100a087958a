"""Batches in parts: cutting arguments into microbatches, and putting results together again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """Says along which dim a tensor is cut or put together.

    Args:
        split_dim: the dim.
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """Returns specs of positional arguments.

        Args:
            chunk_dims: the dim of each.

        Example:
            >>> torch.distributed.pipelining.microbatch.TensorChunkSpec.from_tuple((0, 1))
            (TensorChunkSpec(0), TensorChunkSpec(1))
        """
        return tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """Returns specs of keyword arguments.

        Args:
            chunk_dims: the dim of each, by name.
        """
        return tree_map(TensorChunkSpec, chunk_dims)


class _Replicate:
    """Says that every microbatch gets the whole of an argument."""


class _CustomReducer:
    """Says how results that are no parts of a batch, such as losses, become one.

    Args:
        init_value: what the first result is added to.
        reduce_fn: called as reduce_fn(so_far, result).
    """

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        self.init_value = init_value
        self.reduce_fn = reduce_fn


class _LossReducer(_CustomReducer):
    """A _CustomReducer for losses."""


sum_reducer = _LossReducer(0.0, operator.add)


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[Any, ...] | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """Returns the arguments of a call for each microbatch.

    Parts are views of the tensors, as tensor_split makes them. There are fewer than asked for if a
    tensor has fewer rows.

    Args:
        args: positional arguments; tensors in lists, tuples and dicts are cut too.
        kwargs: keyword arguments.
        chunks: how many microbatches there are to be.
        args_chunk_spec: a TensorChunkSpec for each tensor of args, nested as those are, and
            _Replicate() for what all microbatches get. Tensors are cut along dim 0 by default.
        kwargs_chunk_spec: the same for kwargs.

    Raises:
        ValueError: if specs and arguments do not fit together.

    Example:
        >>> split = torch.distributed.pipelining.microbatch.split_args_kwargs_into_chunks
        >>> split((torch.arange(4), True), {}, 2)
        ([(tensor([0, 1]), True), (tensor([2, 3]), True)], [{}, {}])
    """
    kwargs = kwargs or {}
    leaves, spec = tree_flatten((args, kwargs))
    cuts = [
        *_cuts("args", args, args_chunk_spec),
        *_cuts("kwargs", kwargs, kwargs_chunk_spec),
    ]
    count = chunks
    for leaf, cut in zip(leaves, cuts, strict=True):
        if cut is not None:
            count = min(count, leaf.size(cut))
    parts = [
        [leaf] * count if cut is None else leaf.tensor_split(count, cut)
        for leaf, cut in zip(leaves, cuts, strict=True)
    ]
    calls = [tree_unflatten([part[i] for part in parts], spec) for i in range(count)]
    return [tuple(call[0]) for call in calls], [call[1] for call in calls]


def _cuts(name: str, values: Any, specs: Any) -> list[int | None]:
    """The dim along which each leaf is cut; None for one that all microbatches get."""
    leaves, shape = tree_flatten(values)
    if specs is None:
        return [0 if isinstance(leaf, Tensor) else None for leaf in leaves]
    if isinstance(values, dict):
        specs = {key: specs[key] for key in values if key in specs}
    found, spec_shape = tree_flatten(specs if isinstance(values, dict) else tuple(specs))
    if spec_shape != shape:
        raise ValueError(
            f"split_args_kwargs_into_chunks: {name} has {len(values)} arguments nested as {shape}, "
            f"{name}_chunk_spec is nested as {spec_shape}. Give one TensorChunkSpec or _Replicate "
            "for each value."
        )
    return [_cut(name, leaf, spec) for leaf, spec in zip(leaves, found, strict=True)]


def _cut(name: str, leaf: Any, spec: Any) -> int | None:
    if spec is _Replicate or isinstance(spec, _Replicate):
        return None
    if isinstance(leaf, Tensor) and isinstance(spec, TensorChunkSpec):
        return spec.split_dim
    raise ValueError(
        f"Unsupported chunk spec: {spec} and value: {leaf} combination. In {name}_chunk_spec a "
        "tensor has a TensorChunkSpec, or _Replicate() as other values have."
    )


def merge_chunks(chunks: Sequence[Any], chunk_spec: Any) -> Any:
    """Returns the results of microbatches as that of the batch.

    Args:
        chunks: the result of each: tensors, or lists, tuples and dicts of them.
        chunk_spec: for each value of a result, nested as that is: a TensorChunkSpec for parts that
            are put together, a _CustomReducer for values that become one, anything else for a value
            that is the same in all. None puts all together along dim 0.

    Raises:
        ValueError: if a result is nested otherwise, or values differ that should be the same.

    Example:
        >>> merge = torch.distributed.pipelining.microbatch.merge_chunks
        >>> merge([torch.zeros(1), torch.ones(2)], None)
        tensor([0., 1., 1.])
    """
    flat = [tree_flatten(chunk) for chunk in chunks]
    if chunk_spec is None:
        specs: list[Any] = [TensorChunkSpec(0)] * len(flat[0][0])
        shape = flat[0][1]
    else:
        specs, shape = tree_flatten(chunk_spec)
    for chunk, (leaves, _) in zip(chunks, flat, strict=True):
        if len(leaves) != len(specs):
            raise ValueError(
                f"Chunk {chunk} did not match chunk spec {chunk_spec}: it has {len(leaves)} "
                f"values, the spec {len(specs)}."
            )
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    return tree_unflatten([_merged(*pair) for pair in zip(columns, specs, strict=True)], shape)


def _merged(values: tuple[Any, ...], spec: Any) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return rl.cat(values, dim=spec.split_dim)
    if isinstance(spec, _CustomReducer):
        total = spec.init_value
        for value in values:
            total = spec.reduce_fn(total, value)
        return total
    if any(value != values[0] for value in values):
        raise ValueError(
            f"merge_chunks: microbatches have the values {values}. A value without a "
            "TensorChunkSpec or a _CustomReducer must be the same in all."
        )
    return values[0]
