"""The average of sparse gradients over processes, each of which has other elements."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist

__all__ = ["sum_sparse"]


def sum_sparse(param: Tensor, grad: Tensor | None, group: Any, divisor: int | None) -> Tensor:
    """Returns the sum of the sparse gradients of a parameter over processes, divided.

    Args:
        param: has the shape of the dense gradient.
        grad: of this process, with one sparse dim; None stands for zeros.
        group: the processes.
        divisor: None is their number.
    """
    if grad is None:
        grad = rl.zeros_like(param).to_sparse(1)
    grad = grad.coalesce()
    counts = [
        rl.zeros(1, dtype=rl.int64, device=param.device) for _ in range(dist.get_world_size(group))
    ]
    dist.all_gather(counts, rl.tensor([grad._nnz()], device=param.device), group)
    numbers = [int(count.item()) for count in counts]

    def from_all(part: Tensor) -> Tensor:
        """What all processes have of indices or values, which are padded to one length."""
        padded = part.new_zeros((max(numbers), *part.shape[1:]))
        padded[: len(part)] = part
        parts = [rl.empty_like(padded) for _ in numbers]
        dist.all_gather(parts, padded, group)
        return rl.cat([part[:number] for part, number in zip(parts, numbers, strict=True)])

    indices = from_all(grad.indices().t().contiguous()).t()
    values = from_all(grad.values() / (divisor or len(numbers)))
    return rl.sparse_coo_tensor(indices, values, param.shape).coalesce()
