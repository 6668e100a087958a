"""What updates along sparse gradients share.

Owns the two ways between a dense tensor and the entries of a gradient, which must be coalesced.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor


def with_values(grad: Tensor, values: Tensor) -> Tensor:
    """Returns a sparse tensor with the entries of a gradient and other values."""
    return rl.sparse_coo_tensor(
        grad.indices(), values, grad.shape, is_coalesced=True, check_invariants=False
    )


def values_at(tensor: Tensor, grad: Tensor) -> Tensor:
    """Returns a copy of the elements of a dense tensor where a gradient has entries."""
    return tensor.sparse_mask(grad).values()
