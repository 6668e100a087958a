"""The ranks of a job as an array, with a group along each of its dims."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.groups import (
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
)
from rushlight.distributed.process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]

_entered: list[DeviceMesh] = []  # by with blocks, the innermost last
_existing: weakref.WeakValueDictionary[tuple[object, ...], DeviceMesh]
_existing = weakref.WeakValueDictionary()  # by what makes them equal


def current_mesh() -> DeviceMesh | None:
    """Returns the mesh of the innermost with block."""
    return _entered[-1] if _entered else None


class DeviceMesh:
    """An array of ranks. Ranks that differ along one dim alone are in one group.

    All ranks of the job make the same mesh, whether they are in it or not.

    Args:
        device_type: where the tensors are: "cpu" or "cuda".
        mesh: the ranks, as a tensor or nested lists.
        mesh_dim_names: a name for each dim.

    Raises:
        RuntimeError: if there are more ranks than in the job, or a rank is there twice.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        >>> mesh["tp"]
        DeviceMesh((tp=1), 'cpu', stride=(1,))
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Tensor | Sequence[Any] | None = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: Any = None,
    ) -> None:
        if mesh is None:
            raise TypeError("DeviceMesh: mesh must be a tensor or lists of ranks, not None.")
        if not is_initialized():
            init_process_group()
        ranks = mesh if isinstance(mesh, Tensor) else rl.tensor(mesh)
        ranks = ranks.detach().cpu().to(rl.int32)
        if ranks.numel() > get_world_size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {get_world_size()}, but found "
                f"{ranks.numel()} ranks!"
            )
        if ranks.unique().numel() < ranks.numel():
            raise RuntimeError(f"DeviceMesh cannot have duplicate values: {ranks.tolist()}")
        self._set(device_type, ranks, mesh_dim_names)
        self._groups = [self._group_along(dim) for dim in range(self.ndim)]
        _existing[self._key()] = self

    def _set(
        self,
        device_type: str,
        ranks: Tensor,
        names: tuple[str, ...] | None,
        root: DeviceMesh | None = None,
    ) -> None:
        self.device_type = device_type
        self.mesh = ranks
        self.mesh_dim_names = tuple(names) if names else None
        self._root = self if root is None else root
        self._flattened: dict[str, DeviceMesh] = {}
        self._joined: tuple[str, ...] = ()  # the dims that were made one, in a flattened mesh
        self._groups: list[ProcessGroup] | None = None  # until it is asked for
        places = (ranks == get_rank()).nonzero().tolist() if is_initialized() else []
        self._place = tuple(places[0]) if places else None

    def _group_along(self, dim: int) -> Any:
        """The group of the ranks that differ from this one along a dim alone."""
        if self._place is None:
            return None
        row = self.mesh[tuple(slice(None) if i == dim else at for i, at in enumerate(self._place))]
        if row.tolist() == list(range(get_world_size())):
            return group.WORLD
        name = self.mesh_dim_names[dim] if self.mesh_dim_names else f"dim_{dim}"
        return new_group(row.tolist(), group_desc=f"mesh_{name}", sort_ranks=False)

    @classmethod
    def _made(
        cls, root: DeviceMesh, ranks: Tensor, names: tuple[str, ...], groups: list[ProcessGroup]
    ) -> DeviceMesh:
        """A part of another mesh, whose groups exist."""
        made = cls.__new__(cls)
        made._set(root.device_type, ranks, names, root)
        made._groups = groups
        _existing[made._key()] = made
        return made

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Tensor | Sequence[Any] | None = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """Returns the mesh of groups that exist.

        Args:
            group: one group, or one for each dim of `mesh`.
            device_type: where the tensors are.
            mesh: the ranks; needed for several groups.
            mesh_dim_names: a name for each dim; needed for several groups.

        Raises:
            ValueError: if the groups and the mesh do not fit together.
        """
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            if mesh is not None and rl.as_tensor(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            mesh = ranks
        elif mesh is None or mesh_dim_names is None:
            what = "mesh" if mesh is None else "mesh_dim_names"
            raise ValueError(f"Must pass {what} if passing multiple ProcessGroups")
        array = rl.as_tensor(mesh).to(rl.int32)
        if array.dim() != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got "
                f"mesh {array.tolist()} and {len(groups)} ProcessGroups"
            )
        made = DeviceMesh.__new__(DeviceMesh)
        made._set(device_type, array, mesh_dim_names)
        made._groups = groups
        _existing[made._key()] = made
        return made

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Returns the part of the mesh along some dims that this rank is in.

        Raises:
            RuntimeError: if the dims have no names.
            KeyError: for names that are none.
        """
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._root._flattened:
            return self._root._flattened[names[0]]
        flat = self._root._flattened
        own = [own for name in names for own in (flat[name]._joined if name in flat else [name])]
        if any(name not in self.mesh_dim_names for name in own) or len(set(own)) < len(own):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                f"{[*self.mesh_dim_names, *flat]}, each dim once."
            )
        dims = [self.mesh_dim_names.index(name) for name in own]
        others = [dim for dim in range(self.ndim) if dim not in dims]
        part = self.mesh.permute(*others, *dims)
        part = part[tuple(self._place[dim] if self._place else 0 for dim in others)]
        sizes = [
            flat[name].size() if name in flat else self.size(self.mesh_dim_names.index(name))
            for name in names
        ]
        part = part.reshape(sizes)
        groups = [self.get_group(name) for name in names]
        return self._made(self._root, part, names, groups)

    def _flatten(
        self, mesh_dim_name: str | None = None, backend_override: Any = None
    ) -> DeviceMesh:
        """Returns a mesh of one dim with all ranks of this one; root[mesh_dim_name] is it too."""
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self.mesh_dim_names)
        if self.mesh_dim_names == (name,):
            return self
        if name in (self._root.mesh_dim_names or ()):
            raise ValueError(f"{name} already exists for submesh of the {self._root}.")
        if name not in self._root._flattened:
            flat = self._made(self._root, self.mesh.flatten(), (name,), [])
            flat._groups = [flat._group_along(0)]
            flat._joined = self.mesh_dim_names
            self._root._flattened[name] = flat
        return self._root._flattened[name]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Returns the group along a dim, that this rank is in.

        Args:
            mesh_dim: the dim or its name; not needed if there is one.

        Raises:
            RuntimeError: if it is needed.
            KeyError: for a name that is none.
        """
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` "
                "needs to be specified when device_mesh.ndim > 1."
            )
        if isinstance(mesh_dim, str):
            if mesh_dim in self._root._flattened:
                return self._root._flattened[mesh_dim].get_group()
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"Mesh dimension '{mesh_dim}' does not exist: {self}")
            mesh_dim = (self.mesh_dim_names or ()).index(mesh_dim)
        return self.get_all_groups()[mesh_dim or 0]

    def get_all_groups(self) -> list[ProcessGroup]:
        """Returns the groups along all dims."""
        if self._groups is None:  # it was unpickled; the other ranks do the same
            self._groups = [self._group_along(dim) for dim in range(self.ndim)]
        return list(self._groups)

    def size(self, mesh_dim: int | None = None) -> int:
        """Returns the number of ranks, or those along a dim."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dims."""
        return tuple(self.mesh.shape)

    def get_rank(self) -> int:
        """Returns this process's rank in the job."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Returns this process's rank along a dim; see get_group."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Returns where this process's rank stands in the array; None if it does not."""
        return self._place

    def __enter__(self) -> DeviceMesh:
        """Makes this the mesh of functions that are given none."""
        _entered.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _entered.pop()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (
            self.device_type,
            self.shape,
            tuple(self.mesh.flatten().tolist()),
            self.mesh_dim_names,
        )

    def __reduce__(self) -> Any:
        return unpickled_mesh, (self.device_type, self.mesh.tolist(), self.mesh_dim_names)

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        sizes = (
            f"({', '.join(f'{name}={size}' for name, size in zip(names, self.shape, strict=True))})"
            if names
            else str(self.shape)
        )
        text = f"DeviceMesh({sizes}, '{self.device_type}', stride={tuple(self.mesh.stride())}"
        if os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL":
            text += f", Mesh: {self.mesh.tolist()}"
        return text + ")"


def unpickled_mesh(device_type: str, ranks: list[Any], names: tuple[str, ...] | None) -> DeviceMesh:
    """Returns the mesh that exists, or one without groups yet: it may be read outside of any job.

    Args:
        device_type, names: as for DeviceMesh.
        ranks: as nested lists.
    """
    made = DeviceMesh.__new__(DeviceMesh)
    made._set(device_type, rl.tensor(ranks, dtype=rl.int32, device="cpu"), names)
    return _existing.setdefault(made._key(), made)


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Returns the mesh of ranks 0, 1, 2, ... in a shape; joins the job first if that was not done.

    Args:
        device_type: "cpu" or "cuda".
        mesh_shape: the sizes of the dims.
        mesh_dim_names: a name for each dim.
        backend_override: ignored; there is one backend.

    Raises:
        RuntimeError: if names are repeated or too few, or there are fewer ranks in the job.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names "
                f"{mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. If you maintained a "
            "'torch.device' object, it's recommended to pass in 'device.type'."
        )
    count = 1
    for size in mesh_shape:
        count *= size
    ranks = rl.arange(count, dtype=rl.int32, device="cpu").view(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
