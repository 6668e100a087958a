"""PyTorch's kernels for blocks of sparse matrices, and what starts them; there are none here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "broadcast_batch_dims",
    "bsr_dense_addmm",
    "bsr_dense_mm",
    "launch_kernel",
    "prepare_inputs",
    "ptr_stride_extractor",
    "tile_to_blocksize",
]


def bsr_dense_mm(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuses to compute.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("sparse: there are no kernels of Triton here. Multiply with @.")


bsr_dense_addmm = broadcast_batch_dims = launch_kernel = bsr_dense_mm
prepare_inputs = ptr_stride_extractor = tile_to_blocksize = bsr_dense_mm
