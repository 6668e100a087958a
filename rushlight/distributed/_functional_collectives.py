"""Collectives that return new tensors, by the names that libraries written for torch.compile use.

The results are there when a call returns, and gradients flow through all of them.
"""

from __future__ import annotations

from rushlight import Tensor, cat
from rushlight.distributed import groups
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.nn import functional
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.reduction import ReduceOp

Group = ProcessGroup | DeviceMesh | tuple[DeviceMesh, int] | str

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "wait_tensor",
]


class AsyncCollectiveTensor(Tensor):
    """A result that is still to come, which no tensor is; libraries ask for it by isinstance."""


def wait_tensor(tensor: Tensor) -> Tensor:
    """Returns the tensor, which is complete."""
    return tensor


def broadcast(self: Tensor, src: int, group: Group, tag: str = "") -> Tensor:
    """Returns the tensor of rank src.

    Args:
        self: of the same shape and dtype everywhere.
        src: the rank in the job.
        group: the ranks that take part: a group, its name, a mesh of one dim, or a mesh and a dim.
        tag: accepted for PyTorch's sake.
    """
    return functional.broadcast(self, src, _process_group(group))


def all_reduce(self: Tensor, reduceOp: str, group: Group, tag: str = "") -> Tensor:
    """Returns the reduction of all ranks' tensors.

    Args:
        self: of the same shape and dtype everywhere.
        reduceOp: "sum", "avg", "product", "min", "max", or another name of a ReduceOp.
        group, tag: see broadcast.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> group = torch.distributed.group.WORLD
        >>> torch.distributed._functional_collectives.all_reduce(torch.ones(2), "sum", group)
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    return functional.all_reduce(self, _reduction(reduceOp), _process_group(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Group, tag: str = "") -> Tensor:
    """Returns all ranks' tensors, one behind the other along a dim.

    Args:
        self: of the same shape and dtype everywhere.
        gather_dim: that dim.
        group, tag: see broadcast.
    """
    return cat(functional.all_gather(self, _process_group(group)), dim=gather_dim)


def reduce_scatter_tensor(
    self: Tensor,
    reduceOp: str,
    scatter_dim: int,
    group: Group,
    tag: str = "",
) -> Tensor:
    """Returns this rank's part of the reduction of all ranks' tensors.

    Args:
        self: of the same shape and dtype everywhere.
        reduceOp: see all_reduce.
        scatter_dim: the dim to be cut, which the number of ranks divides.
        group, tag: see broadcast.

    Raises:
        ValueError: if it does not.
    """
    members = _process_group(group)
    if self.shape[scatter_dim] % members.size():
        raise ValueError(
            f"reduce_scatter_tensor: input dimension {scatter_dim} ({self.shape[scatter_dim]}) "
            f"must be a multiple of group_size {members.size()}."
        )
    parts = [part.contiguous() for part in self.chunk(members.size(), scatter_dim)]
    output = parts[0].detach().clone()
    return functional.reduce_scatter(output, parts, _reduction(reduceOp), members)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Group,
    tag: str = "",
) -> Tensor:
    """Returns what all ranks give to this one, one behind the other along dim 0.

    Args:
        self: what this rank gives, one part for each along dim 0.
        output_split_sizes, input_split_sizes: the parts' lengths; equal ones by default.
        group, tag: see broadcast.
    """
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.detach().new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(
        output, self.contiguous(), output_split_sizes, input_split_sizes, _process_group(group)
    )


all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single


def _process_group(group: Group) -> ProcessGroup:
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple):
        mesh, dim = group
        return mesh.get_group(dim)
    return groups.named(group) if isinstance(group, str) else group


def _reduction(name: str) -> ReduceOp:
    try:
        return ReduceOp[name.upper()]
    except KeyError:
        raise ValueError(f"Invalid reduce operation {name}. It is none of ReduceOp.") from None
