"""functorch.experimental: what is in torch.func now, under its old names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight._functorch.vmap import _process_batched_inputs, vmap
from rushlight.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

__all__ = [
    "chunk_vmap",
    "functionalize",
    "hessian",
    "jacfwd",
    "jvp",
    "replace_all_batch_norm_modules_",
]


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """Makes what vmap makes, in a number of chunks; old, see the chunk_size of vmap.

    Example:
        >>> from rushlight._functorch.package.experimental import chunk_vmap
        >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 2))
        tensor([2., 2., 2.])
    """

    @functools.wraps(func)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        size = _process_batched_inputs(in_dims, args, func)[0]
        step = max(1, -(-size // chunks))
        return vmap(func, in_dims, out_dims, randomness, chunk_size=step)(*args, **kwargs)

    return vectorized
