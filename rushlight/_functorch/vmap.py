"""vmap: a function of one sample becomes one of many, which runs once for all of them.

How ops see samples is Note [Lifted tensors] in core/tensor/lift.h.
Its three steps have PyTorch's private names and arguments, and are looked up at each call: there
libraries put their own, which know containers of tensors that are samples as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from rushlight import _C, Tensor
from rushlight._dims import wrapped_dim
from rushlight.random import get_rng_state, set_rng_state
from rushlight.utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_unflatten,
)

__all__ = ["vmap"]


def _is_dim(x: Any) -> bool:
    return x is None or isinstance(x, int)


def _get_name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", repr(func))


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """The number of samples, the dim of samples of each leaf of args, the leaves, their spec."""
    name = _get_name(func)
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a "
            f"(potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec, _is_dim)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the "
            f"structure of inputs. in_dims has structure {tree_flatten(in_dims, _is_dim)[1]} but "
            f"inputs has structure {spec}."
        )
    sizes: dict[int, int] = {}
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input "
                "but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input "
                f"but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, "
                "please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, "
                f"but that input is a Tensor of dimensionality {leaf.dim()} so expected in_dim to "
                f"satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        sizes[i] = leaf.shape[dim]
    if not sizes:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): at least one input must have "
            "samples, but in_dims is None for all."
        )
    if len(set(sizes.values())) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{list(sizes.values())} for the mapped dimension"
        )
    return next(iter(sizes.values())), dims, leaves, spec


def _add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """The tensor that stands for each of the samples along a dim."""
    if in_dim != 0:
        tensor = tensor.movedim(in_dim, 0)
    # What func sets, like requires_grad, is not for the tensor of the caller.
    elif not tensor.requires_grad and _C._lift_of(tensor) is None:
        tensor = tensor.detach()
    return _C._lift_samples(tensor, level)


def _create_batched_inputs(
    flat_in_dims: list[int | None], flat_args: list[Any], level: int, args_spec: TreeSpec
) -> Any:
    """The arguments that func gets."""
    lifted = [
        leaf if dim is None else _add_batch_dim(leaf, dim, level)
        for leaf, dim in zip(flat_args, flat_in_dims, strict=True)
    ]
    return tree_unflatten(lifted, args_spec)


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """All samples of a tensor, along a dim; a tensor that is the same for all is repeated."""
    samples = _C._samples_of(tensor, level)
    dim = wrapped_dim(out_dim, samples.dim())
    return samples if dim == 0 else samples.movedim(0, dim)


def _maybe_remove_batch_dim(
    name: str, result: Any, level: int, batch_size: int, out_dim: int | None
) -> Any:
    """What vmap returns for a leaf of func's result."""
    if not isinstance(result, Tensor):
        if out_dim is None:
            return result
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. "
            "Did you mean to set out_dims= to None for output?"
        )
    if out_dim is not None:
        return _remove_batch_dim(result, level, batch_size, out_dim)
    lift = _C._lift_of(result)
    if lift is not None and lift[1] == level:
        raise ValueError(
            f"vmap({name}, ...): `{name}` can not return a tensor that depends on the sample "
            "when out_dim is None"
        )
    return result


def _read_out_dims(spec: TreeSpec, out_dims: Any, name: str) -> list[int | None]:
    if not all(_is_dim(dim) for dim in tree_flatten(out_dims, _is_dim)[0]):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims!r}): `out_dims` must be an int, None or a "
            "python collection of ints representing where in the outputs the samples lie."
        )
    dims = _broadcast_to_and_flatten(out_dims, spec, _is_dim)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1 and spec.is_leaf():
        dims = [out_dims[0]]
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            "the structure of outputs. out_dims has structure "
            f"{tree_flatten(out_dims, _is_dim)[1]} but outputs has structure {spec}."
        )
    return dims


def _unwrap_batched(
    results: Any, out_dims: Any, level: int, batch_size: int, func: Callable[..., Any]
) -> Any:
    """What vmap returns for the result of func."""
    name = _get_name(func)
    leaves, spec = tree_flatten(results)
    placed = [
        _maybe_remove_batch_dim(name, leaf, level, batch_size, dim)
        for leaf, dim in zip(leaves, _read_out_dims(spec, out_dims, name), strict=True)
    ]
    return tree_unflatten(placed, spec)


def _split(
    leaves: list[Any], dims: list[int | None], size: int, step: int
) -> list[tuple[int, list[Any]]]:
    """(number of samples, leaves) of each chunk."""
    sizes = [min(step, size - start) for start in range(0, size, step)]
    ends = list(accumulate(sizes))[:-1]
    parts = [
        [leaf] * len(sizes) if dim is None else leaf.tensor_split(ends, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    return list(zip(sizes, map(list, zip(*parts, strict=True)), strict=True))


def _join(results: list[Any], out_dims: Any, name: str) -> Any:
    """The results of chunks as one; what has no samples is that of the first."""
    from rushlight import cat

    flat, specs = zip(*map(tree_flatten, results), strict=True)
    dims = _read_out_dims(specs[0], out_dims, name)
    joined = [
        parts[0] if dim is None else cat(parts, dim)
        for dim, parts in zip(dims, zip(*flat, strict=True), strict=True)
    ]
    return tree_unflatten(joined, specs[0])


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Makes a function of one sample one of many, which runs each op once for all samples.

    Args:
        func: takes and returns tensors, or lists, tuples and dicts of them; keyword arguments are
            the same for all samples.
        in_dims: the dim of each argument along which samples lie, or None for one that is the same
            for all; an int for all arguments, or a tuple in their structure.
        out_dims: where samples shall lie in the results, in the same way.
        randomness: what random ops do: "error" refuses them, "different" draws for each sample,
            "same" draws once for all.
        chunk_size: how many samples to run at once; all when None. Smaller chunks take less memory.

    Returns:
        A function of the same arguments, with samples.

    Raises:
        ValueError: if in_dims or out_dims do not fit, or arguments differ in the number of samples.
        RuntimeError: inside, where a value is asked of a tensor that stands for many.

    An op that has no batching rule runs sample by sample, and warns of it once.

    Example:
        >>> dot = torch.func.vmap(torch.dot)
        >>> dot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2))
        tensor([3., 7.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)

        def run(size: int, leaves: list[Any]) -> Any:
            level = _C._open_batch_level(size, randomness)
            try:
                results = func(*_create_batched_inputs(dims, leaves, level, spec), **kwargs)
                return _unwrap_batched(results, out_dims, level, size, func)
            finally:
                _C._close_level(level)

        if chunk_size is None or chunk_size >= size:
            return run(size, leaves)
        state = get_rng_state() if randomness == "same" else None
        results = []
        for chunk in _split(leaves, dims, size, chunk_size):
            if state is not None:
                set_rng_state(state)
            results.append(run(*chunk))
        return _join(results, out_dims, _get_name(func))

    return vectorized
