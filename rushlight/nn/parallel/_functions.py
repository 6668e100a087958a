"""Scattering, gathering and broadcasting under the names of PyTorch's autograd functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn.parallel import comm

__all__ = ["Broadcast", "Gather", "Scatter"]


class Broadcast:
    """See comm.broadcast_coalesced."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        """Returns copies of the tensors on each GPU, those of one after those of the other."""
        copies = comm.broadcast_coalesced(inputs, target_gpus)
        return tuple(tensor for of_gpu in copies for tensor in of_gpu)


class Scatter:
    """See comm.scatter."""

    @staticmethod
    def apply(
        target_gpus: Sequence[Any], chunk_sizes: Sequence[int] | None, dim: int, input: Tensor
    ) -> tuple[Tensor, ...]:
        """Returns the parts of a tensor, each on its GPU."""
        return tuple(comm.scatter(input, target_gpus, chunk_sizes, dim))


class Gather:
    """See comm.gather."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Tensor) -> Tensor:
        """Returns the parts as one tensor."""
        return comm.gather(inputs, dim, target_device)
