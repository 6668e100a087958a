"""The sum of sparse tensors over processes, each of which has other elements."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist

__all__ = ["sum_sparse"]


def sum_sparse(tensor: Tensor, group: Any) -> Tensor:
    """Returns the sum of the sparse tensors of all processes.

    Args:
        tensor: of this process; of the same shape and sparse dims everywhere.
        group: the processes.
    """
    tensor = tensor.detach().coalesce()
    mine = rl.tensor([tensor._nnz()], device=tensor.device)
    counts = [rl.zeros_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(counts, mine, group)
    numbers = [int(count.item()) for count in counts]

    def from_all(part: Tensor) -> Tensor:
        """What all processes have of indices or values, which are padded to one length."""
        padded = part.new_zeros((max(numbers), *part.shape[1:]))
        padded[: len(part)] = part
        parts = [rl.empty_like(padded) for _ in numbers]
        dist.all_gather(parts, padded, group)
        return rl.cat([part[:number] for part, number in zip(parts, numbers, strict=True)])

    indices = from_all(tensor.indices().t().contiguous()).t()
    return rl.sparse_coo_tensor(indices, from_all(tensor.values()), tensor.shape).coalesce()
