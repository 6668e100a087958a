"""vmap: a function of one sample becomes one of many, which runs once for all of them.

How ops see samples is Note [Lifted tensors] in core/tensor/lift.h.
"""

from __future__ import annotations

import functools
from typing import Any

from rushlight import _C, Tensor
from rushlight.utils._pytree import (
    broadcast_prefix,
    tree_flatten,
    tree_unflatten,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["vmap"]


def _is_dim(x: Any) -> bool:
    return x is None or isinstance(x, int)


def _read_inputs(
    in_dims: Any, args: tuple[Any, ...], name: str
) -> tuple[list[Any], list[int | None], Any, int]:
    """The leaves of args, the dim of samples of each, their spec and the number of samples."""
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
    dims = broadcast_prefix(in_dims, args, _is_dim)
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
    return leaves, dims, spec, next(iter(sizes.values()))


def _samples_first(leaf: Any, dim: int | None) -> Any:
    if dim is None:
        return leaf
    if dim != 0:
        return leaf.movedim(dim, 0)
    # What func sets, like requires_grad, is not for the tensor of the caller.
    has_more = leaf.requires_grad or _C._lift_of(leaf) is not None
    return leaf if has_more else leaf.detach()


def _run(
    func: Callable[..., Any],
    leaves: list[Any],
    dims: list[int | None],
    spec: Any,
    size: int,
    randomness: str,
    out_dims: Any,
    kwargs: dict[str, Any],
) -> tuple[list[Any], Any]:
    """The leaves of the result with the samples along dim 0, and its spec."""
    level = _C._open_batch_level(size, randomness)
    try:
        lifted = [
            leaf if dim is None else _C._lift_samples(leaf, level)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        results, result_spec = tree_flatten(func(*tree_unflatten(lifted, spec), **kwargs))
        _check_results(results, result_spec, out_dims, level, _name(func))
        samples = [
            _C._samples_of(result, level) if isinstance(result, Tensor) else result
            for result in results
        ]
        return samples, result_spec
    finally:
        _C._close_level(level)


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", repr(func))


def _read_out_dims(results: list[Any], spec: Any, out_dims: Any, name: str) -> list[int | None]:
    if not all(_is_dim(dim) for dim in tree_flatten(out_dims, _is_dim)[0]):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims!r}): `out_dims` must be an int, None or a "
            "python collection of ints representing where in the outputs the samples lie."
        )
    dims = broadcast_prefix(out_dims, tree_unflatten(results, spec), _is_dim)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1 and spec.is_leaf():
        dims = [out_dims[0]]
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            "the structure of outputs. out_dims has structure "
            f"{tree_flatten(out_dims, _is_dim)[1]} but outputs has structure {spec}."
        )
    return dims


def _check_results(results: list[Any], spec: Any, out_dims: Any, level: int, name: str) -> None:
    for result, dim in zip(results, _read_out_dims(results, spec, out_dims, name), strict=True):
        if not isinstance(result, Tensor):
            if dim is None:
                continue
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. "
                "Did you mean to set out_dims= to None for output?"
            )
        lift = _C._lift_of(result) if dim is None else None
        if lift is not None and lift[1] == level:
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a tensor that depends on the sample "
                "when out_dim is None"
            )


def _place_samples(results: list[Any], spec: Any, out_dims: Any, name: str) -> Any:
    placed = []
    for result, dim in zip(results, _read_out_dims(results, spec, out_dims, name), strict=True):
        if dim is None:
            placed.append(result[0] if isinstance(result, Tensor) else result)
            continue
        if not -result.dim() <= dim < result.dim():
            raise IndexError(
                f"vmap: Dimension out of range (expected to be in range of [{-result.dim()}, "
                f"{result.dim() - 1}], but got out_dims={dim})"
            )
        placed.append(result if dim == 0 else result.movedim(0, dim))
    return tree_unflatten(placed, spec)


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
        name = _name(func)
        leaves, dims, spec, size = _read_inputs(in_dims, args, name)
        leaves = [_samples_first(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]
        step = size if chunk_size is None else chunk_size
        if step >= size:
            results, result_spec = _run(
                func, leaves, dims, spec, size, randomness, out_dims, kwargs
            )
            return _place_samples(results, result_spec, out_dims, name)
        chunks, result_spec = [], None
        for start in range(0, size, step):
            part = [
                leaf if dim is None else leaf[start : start + step]
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            found, result_spec = _run(
                func, part, dims, spec, min(step, size - start), randomness, out_dims, kwargs
            )
            chunks.append(found)
        from rushlight import cat

        joined = [
            cat(parts) if isinstance(parts[0], Tensor) else parts[0]
            for parts in zip(*chunks, strict=True)
        ]
        return _place_samples(joined, result_spec, out_dims, name)

    return vectorized
