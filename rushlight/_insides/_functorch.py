"""torch._C._functorch: the tensors of vmap, as libraries make, know and undo them."""

from rushlight import _C, Tensor
from rushlight._functorch.vmap import _add_batch_dim, _remove_batch_dim
from rushlight.func import debug_unwrap

__all__ = ["_add_batch_dim", "_remove_batch_dim", "get_unwrapped", "is_batchedtensor"]


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor stands for the samples of a vmap."""
    lift = _C._lift_of(tensor)
    return lift is not None and lift[0] == "batch"


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor behind one that a transform made, one level down; another as it is."""
    return debug_unwrap(tensor, recurse=False)
