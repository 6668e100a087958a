"""Whether plain tensors among the arguments of an op are taken for copies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rushlight import Tensor
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._api import DTensor, wrap
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec
from rushlight.distributed.tensor.placement_types import Replicate

__all__ = ["as_copies", "implicit_replication", "is_implicit"]

_state = threading.local()


def is_implicit() -> bool:
    """Returns whether implicit_replication is in force on this thread."""
    return getattr(_state, "depth", 0) > 0


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Lets ops take plain tensors beside DTensors in a with block: as copies, alike on all ranks.

    Raises:
        RuntimeError: by ops outside of it.
    """
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        yield
    finally:
        _state.depth -= 1


def as_copies(tensor: Tensor, mesh: DeviceMesh) -> DTensor:
    """Returns a plain tensor, which all ranks of a mesh have alike, as a DTensor."""
    return wrap(tensor, DTensorSpec(mesh, (Replicate(),) * mesh.ndim, tensor.shape))
