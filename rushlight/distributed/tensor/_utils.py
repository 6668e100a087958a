"""Which part of a tensor a rank has, for libraries that read parts from files themselves."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, normalized
from rushlight.distributed.tensor.placement_types import Placement

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int],
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    skip_offset: bool = False,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the shape of this rank's part of a tensor, and where it begins in the whole.

    Args:
        global_shape: of the whole tensor.
        mesh: the ranks.
        placements: one for each dim of the mesh.
        skip_offset: whether the second result is ().

    Raises:
        ValueError: if there is not one placement for each dim of the mesh.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> part = torch.distributed.tensor._utils.compute_local_shape_and_global_offset
        >>> part((4, 3), mesh, [torch.distributed.tensor.Shard(0)])
        ((4, 3), (0, 0))
        >>> torch.distributed.destroy_process_group()
    """
    ndim = len(global_shape)
    places = normalized("compute_local_shape_and_global_offset", placements, mesh, ndim)
    spec = DTensorSpec(mesh, places, rl.Size(global_shape))
    offsets = () if skip_offset else tuple(map(spec.offset, range(ndim)))
    return tuple(spec.local_shape()), offsets
