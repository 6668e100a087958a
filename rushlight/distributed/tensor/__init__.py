"""Tensors that are spread over the ranks of a mesh, and compute as one.

docs/dtensor.md tells how. DTensor is in _api.py, what makes one in _making.py, what ops do with it
in _dispatch.py and _rules.py.
"""

from __future__ import annotations

from rushlight import _later
from rushlight.distributed.device_mesh import DeviceMesh as DeviceMesh
from rushlight.distributed.device_mesh import init_device_mesh as init_device_mesh
from rushlight.distributed.tensor._api import DTensor
from rushlight.distributed.tensor._making import (
    distribute_module,
    distribute_tensor,
    empty,
    full,
    linspace,
    logspace,
    ones,
    rand,
    randn,
    zeros,
)
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "linspace",
    "logspace",
    "ones",
    "rand",
    "randn",
    "zeros",
]

for _public in (DTensor, distribute_module, distribute_tensor):
    _public.__module__ = __name__


__getattr__ = _later.imports(__name__, ("debug", "device_mesh", "experimental", "parallel"))
