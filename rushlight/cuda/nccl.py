"""Questions about NCCL, which joins GPUs; rushlight.distributed has what it does for tensors."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import _C, Tensor

__all__ = ["is_available", "unique_id", "version"]


def is_available(tensors: Sequence[Tensor]) -> bool:
    """Returns whether NCCL is there, and could use these tensors.

    Args:
        tensors: contiguous ones on a GPU each.
    """
    devices = {
        str(tensor.device) for tensor in tensors if tensor.is_cuda and tensor.is_contiguous()
    }
    return not _C._nccl_problem() and len(devices) == len(tensors)


def version() -> tuple[int, int, int]:
    """Returns NCCL's version.

    Raises:
        RuntimeError: without NCCL, with where it was looked for.
    """
    number = _C._nccl_version()
    return number // 10000, number // 100 % 100, number % 100


def unique_id() -> bytes:
    """Returns a new name for a communicator, as NCCL makes them.

    Raises:
        RuntimeError: without NCCL.
    """
    return _C._nccl_make_id()
