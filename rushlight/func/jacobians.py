"""Jacobians and Hessians as transforms of functions: derivatives along all directions at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import _C, Tensor, stack
from rushlight._functorch.vmap import vmap
from rushlight.func._recording import (
    Recorded,
    as_argnums,
    check_differentiable,
    check_inputs,
    check_outputs,
    check_real,
    check_tensors,
    chosen_of,
    with_chosen,
)
from rushlight.func.derivatives import jvp
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["hessian", "jacfwd", "jacrev"]


def _basis(like: Any) -> Any:
    """All unit vectors of a tensor's shape, along dim 0."""
    from rushlight import eye

    units = eye(like.numel(), dtype=like.dtype, device=like.device)
    return units.reshape(like.numel(), *like.shape)


def _zeros_with(position: int, direction: Any, leaves: Sequence[Any]) -> list[Any]:
    return [direction if i == position else x.new_zeros(x.shape) for i, x in enumerate(leaves)]


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Makes a function that gives the Jacobian of func, a row for each element of the result.

    Best where results have fewer elements than arguments; see jacfwd for the opposite.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them.
        argnums: the positional arguments to differentiate by; a tuple for several.
        has_aux: whether func returns (output, anything).
        chunk_size: how many rows to compute at once; all when None, without vmap when 1.

    Returns:
        A function that returns the Jacobian (*output shape, *argument shape) in the structure of
        the output, and in it of the argument; or (Jacobian, aux).

    Example:
        >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = chosen_of(args, argnums, "jacrev")
        leaves = tree_flatten(chosen)[0]
        check_inputs(leaves, "jacrev")
        check_real(leaves, "inputs", "jacrev")
        run = Recorded(
            lambda *new: func(*with_chosen(args, argnums, new), **kwargs),
            chosen,
            has_aux,
            "jacrev",
        )
        check_outputs(run, "jacrev")
        check_real(run.results, "outputs", "jacrev")
        rows = []
        for k, result in enumerate(run.results):
            plain = [_C._without_history(x) for x in run.results]

            def row(unit: Any, k: int = k, plain: list[Any] = plain) -> list[Any]:
                return run.pull(_zeros_with(k, unit, plain), retain=True)

            if chunk_size == 1 and plain[k].numel():  # each by itself, for what vmap cannot do
                each = [row(unit) for unit in _basis(plain[k])]
                pulled = [stack(parts) for parts in zip(*each, strict=True)]
            else:
                pulled = vmap(row, chunk_size=chunk_size)(_basis(plain[k]))
            shaped = [
                g.reshape(result.shape + x.shape) for g, x in zip(pulled, run.inputs, strict=True)
            ]
            rows.append(as_argnums(tree_unflatten(shaped, run.input_spec), argnums))
        jacobian = tree_unflatten(rows, run.output_spec)
        return (jacobian, run.aux_output()) if has_aux else jacobian

    return wrapper


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    _complex: bool = False,
) -> Callable[..., Any]:
    """Makes a function that gives the Jacobian of func, a column for each element of the argument.

    Best where arguments have fewer elements than results; see jacrev for the opposite.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them.
        argnums: the positional arguments to differentiate by; a tuple for several.
        has_aux: whether func returns (output, anything).
        randomness: what random ops do, as in vmap.

    Returns:
        A function that returns the Jacobian (*output shape, *argument shape) in the structure of
        the output, and in it of the argument; or (Jacobian, aux).

    Example:
        >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = chosen_of(args, argnums, "jacfwd")
        leaves, spec = tree_flatten(chosen)
        check_tensors(leaves, "jacfwd: Expected all inputs", AttributeError)
        check_differentiable(leaves, "jacfwd", ValueError)
        if not _complex:
            check_real(leaves, "inputs", "jacfwd")

        def along(position: int, direction: Any) -> Any:
            tangents = tree_unflatten(_zeros_with(position, direction, leaves), spec)
            found = jvp(
                lambda *new: func(*with_chosen(args, argnums, new), **kwargs),
                chosen,
                tangents,
                has_aux=has_aux,
            )
            if not has_aux:
                return found[1], []
            # The same for all directions, but perhaps in samples: vmap hands out the first.
            others[:], aux_spec[0] = tree_flatten(found[2])
            return found[1], [x for x in others if isinstance(x, Tensor)]

        others: list[Any] = []
        aux_spec: list[Any] = [None]
        columns, output_spec, aux = [], None, None
        for j, leaf in enumerate(leaves):
            found = vmap(
                lambda t, j=j: along(j, t),
                out_dims=(-1, 0),
                randomness=randomness,
            )(_basis(_C._without_history(leaf)))
            if has_aux and leaf.numel():
                tensors = iter(found[1])
                first = [next(tensors)[0] if isinstance(x, Tensor) else x for x in others]
                aux = tree_unflatten(first, aux_spec[0])
            derivatives, output_spec = tree_flatten(found[0])
            if not _complex:
                check_real(derivatives, "outputs", "jacfwd")
            columns.append([d.reshape(d.shape[:-1] + leaf.shape) for d in derivatives])
        by_output = [
            as_argnums(tree_unflatten(list(parts), spec), argnums)
            for parts in zip(*columns, strict=True)
        ]
        if has_aux and not any(leaf.numel() for leaf in leaves):
            aux = func(*args, **kwargs)[1]
        assert output_spec is not None
        jacobian = tree_unflatten(by_output, output_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Makes a function that gives the Hessian of func: jacfwd of jacrev.

    Args:
        func: returns a tensor, or a list, tuple or dict of them.
        argnums: the positional arguments to differentiate by; a tuple for several.

    Returns:
        A function that returns second derivatives (*output shape, *argument shape, *argument
        shape).

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
