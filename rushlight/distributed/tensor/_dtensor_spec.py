"""Where the parts of a distributed tensor are: the arithmetic of shapes, without any exchange.

A dim that several dims of the mesh shard is cut by the first of them, and the parts by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import rushlight as rl
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    chunk_sizes,
)

Placements = tuple[Placement, ...]

__all__ = ["DTensorSpec", "TensorMeta", "gradient_placements", "normalized"]


def gradient_placements(placements: Placements) -> Placements:
    """Returns how gradients lie: every addend of a Partial has the gradient of the sum."""
    return tuple(Replicate() if p.is_partial() else p for p in placements)


def normalized(
    function: str, placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int
) -> Placements:
    """Returns placements with dims counted from the front; copies everywhere for None.

    Raises:
        ValueError: if there is not one for each dim of the mesh.
        IndexError: for a dim that the tensor does not have.
    """
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"{function}: `placements` must have the same length as `device_mesh.ndim`! Found "
            f"placements length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    found: list[Placement] = []
    for placement in placements:
        if not isinstance(placement, (Shard, Replicate, Partial)):
            raise TypeError(
                f"{function}: placements must be Shard, Replicate or Partial, not {placement!r}."
            )
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise IndexError(
                    f"{function}: {placement!r} is no dim of a tensor with {ndim} dims."
                )
            placement = Shard(placement.dim % ndim)
        found.append(placement)
    return tuple(found)


class TensorMeta(NamedTuple):
    """How libraries describe a whole tensor without its elements; layouts keep its shape."""

    shape: rl.Size
    stride: tuple[int, ...]
    dtype: rl.dtype


@dataclass(frozen=True, init=False)
class DTensorSpec:
    """The layout of a distributed tensor.

    Args:
        mesh: the ranks.
        placements: one for each dim of the mesh, with dims counted from the front.
        tensor_meta: of the whole tensor, or its shape, which is what a layout keeps of it.
    """

    mesh: DeviceMesh
    placements: Placements
    shape: rl.Size

    def __init__(
        self, mesh: DeviceMesh, placements: Sequence[Placement], tensor_meta: TensorMeta | rl.Size
    ) -> None:
        shape = tensor_meta.shape if isinstance(tensor_meta, TensorMeta) else tensor_meta
        for name, value in ("mesh", mesh), ("placements", tuple(placements)), ("shape", shape):
            object.__setattr__(self, name, value)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks."""
        return self.mesh

    @property
    def ndim(self) -> int:
        """How many dims the whole tensor has."""
        return len(self.shape)

    def coordinate(self, mesh_dim: int) -> int:
        """Returns this rank's place along a dim of the mesh.

        Raises:
            RuntimeError: if it is not in the mesh.
        """
        place = self.mesh.get_coordinate()
        if place is None:
            raise RuntimeError(
                f"DTensor: rank {self.mesh.get_rank()} is not in {self.mesh}. Only ranks of the "
                "mesh take part in what is computed on it."
            )
        return place[mesh_dim]

    def sharders(self, dim: int) -> Iterable[int]:
        """Returns the dims of the mesh that shard a dim of the tensor."""
        return (m for m, p in enumerate(self.placements) if p.is_shard(dim))

    def parts(self, mesh_dim: int, dim: int) -> list[int]:
        """Returns the sizes of the parts along a dim of the mesh, of what those before it leave."""
        length = self.shape[dim]
        for m in self.sharders(dim):
            if m < mesh_dim:
                length = chunk_sizes(length, self.mesh.size(m))[self.coordinate(m)]
        return chunk_sizes(length, self.mesh.size(mesh_dim))

    def local_shape(self) -> rl.Size:
        """Returns the shape of this rank's part."""
        sizes = list(self.shape)
        for dim in range(len(sizes)):
            for m in self.sharders(dim):
                sizes[dim] = self.parts(m, dim)[self.coordinate(m)]
        return rl.Size(sizes)

    def offset(self, dim: int) -> int:
        """Returns where this rank's part of a dim begins in the whole."""
        return sum(sum(self.parts(m, dim)[: self.coordinate(m)]) for m in self.sharders(dim))
