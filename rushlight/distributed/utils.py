"""What data parallelism does to whole modules, which it compares over processes and makes equal,
and to their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight import distributed as dist
from rushlight.nn import Module
from rushlight.utils._pytree import tree_map

__all__: list[str] = []

_ALIGNMENT = 16  # bytes: a view may have any dtype
_CHUNK = 250 << 20  # bytes that are sent at once


class Parcel:
    """Several tensors of one device in one piece of memory, to be sent at once.

    Args:
        tensors: of any shapes and dtypes.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._originals = tensors
        self.tensors = [tensor.detach() for tensor in tensors]
        sizes = [tensor.nbytes for tensor in tensors]
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
        self.bytes = rl.empty(starts[-1], dtype=rl.uint8, device=tensors[0].device)
        self.views = [
            self.bytes[start : start + size].view(tensor.dtype).view(tensor.shape)
            for tensor, start, size in zip(tensors, starts, sizes, strict=False)
        ]

    def become_memory(self) -> None:
        """Makes the tensors views of the parcel, so that nothing is copied any more."""
        with rl.no_grad():
            _C._foreach_copy_(self.views, self.tensors)
        for tensor, view in zip(self._originals, self.views, strict=True):
            tensor.data = view
        self.tensors = self.views = []

    def broadcast(self, group: Any, source: int) -> None:
        """Overwrites the tensors by those of one process.

        Args:
            group: the processes.
            source: its rank in the group.
        """
        is_source = dist.get_rank(group) == source
        with rl.no_grad():
            if is_source:
                _C._foreach_copy_(self.views, self.tensors)
            dist.broadcast(self.bytes, dist.get_global_rank(group, source), group)
            if not is_source:
                _C._foreach_copy_(self.tensors, self.views)


def in_parcels(tensors: Iterable[Tensor], size: int = _CHUNK) -> list[Parcel]:
    """Parcels of about `size` bytes, each of one device."""
    parcels = []
    filling: dict[rl.device, tuple[list[Tensor], int]] = {}  # with the bytes so far
    for tensor in tensors:
        kept, total = filling.pop(tensor.device, ([], 0))
        kept.append(tensor)
        total += tensor.nbytes
        if total >= size:
            parcels.append(Parcel(kept))
        else:
            filling[tensor.device] = kept, total
    return parcels + [Parcel(kept) for kept, _ in filling.values()]


def _verify_param_shape_across_processes(
    process_group: Any, tensors: Sequence[Tensor], names: Sequence[str] | None = None
) -> None:
    """Raises in every process if tensors differ between processes in number, shape or dtype.

    Args:
        process_group: the processes.
        tensors: the parameters of this one.
        names: what errors call them; names must agree too.

    Raises:
        RuntimeError: with the first parameter that differs.
    """
    if names is None:
        names = [f"parameter {i}" for i in range(len(tensors))]
    own = [
        (name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in zip(names, tensors, strict=True)
    ]
    of_all: list[Any] = [None] * dist.get_world_size(process_group)
    dist.all_gather_object(of_all, own, process_group)
    first = of_all[0]
    for rank, other in enumerate(of_all):
        for mine, theirs in zip(first, other, strict=False):
            if mine != theirs:
                (name, shape, dtype), (other_name, other_shape, other_dtype) = mine, theirs
                raise RuntimeError(
                    f"DDP: params differ between processes: {name} is {dtype} of shape {shape} in "
                    f"process 0, but {other_name} is {other_dtype} of shape {other_shape} in "
                    f"process {rank}. All processes must build the same model."
                )
        if len(other) != len(first):
            longer, lacking = (first, rank) if len(first) > len(other) else (other, 0)
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank 0 has {len(first)} params, "
                f"while rank {rank} has inconsistent {len(other)} params: process {lacking} lacks "
                f"{longer[min(len(first), len(other))][0]}."
            )


def _sync_params_and_buffers(
    process_group: Any,
    module_states: Sequence[Tensor],
    broadcast_bucket_size: int = _CHUNK,
    src: int = 0,
) -> None:
    """Overwrites tensors by those of one process.

    Args:
        process_group: the processes.
        module_states: the tensors, in the same order everywhere.
        broadcast_bucket_size: bytes that are sent at once.
        src: its rank in the group.
    """
    for parcel in in_parcels(module_states, broadcast_bucket_size):
        parcel.broadcast(process_group, src)


def _sync_module_states(
    module: Module,
    process_group: Any,
    broadcast_bucket_size: int = _CHUNK,
    src: int = 0,
    params_and_buffers_to_ignore: Iterable[str] = (),
    broadcast_buffers: bool = True,
) -> None:
    """Overwrites the parameters and buffers of a module by those of one process.

    Args:
        module: built alike everywhere.
        process_group: the processes.
        broadcast_bucket_size: bytes that are sent at once.
        src: its rank in the group.
        params_and_buffers_to_ignore: names of what stays.
        broadcast_buffers: whether buffers are sent too.
    """
    ignored = set(params_and_buffers_to_ignore)
    named: list[tuple[str, Tensor]] = list(module.named_parameters())
    if broadcast_buffers:
        named += module.named_buffers()
    states = [tensor for name, tensor in named if name not in ignored]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def cast_floating(tree: Any, dtype: rl.dtype | None) -> Any:
    """Returns a tree of values whose floating-point tensors have another dtype; None keeps them."""
    if dtype is None:
        return tree
    return tree_map(
        lambda x: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x, tree
    )


def cast_buffers(module: Module, dtype: rl.dtype | None) -> None:
    """Gives the floating-point buffers of a module another dtype; None keeps them."""
    for buffer in module.buffers():
        buffer.data = cast_floating(buffer.data, dtype)
