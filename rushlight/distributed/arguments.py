"""What the collectives are given: checks, and the flat tensors that they work on.

Flat tensors are contiguous and of one dim; others are copied there and back. They are on the CPU,
or, where NCCL joins the ranks, on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.flat_collectives import Way
from rushlight.distributed.groups import GroupMember, get_group_rank
from rushlight.distributed.process_group import BuiltinGroup, ProcessGroup
from rushlight.distributed.reduction import ReduceOp
from rushlight.distributed.work import Work

if TYPE_CHECKING:
    from rushlight.distributed.calls import Call
    from rushlight.distributed.nccl import Clique, Cliques

__all__ = [
    "check_dtypes",
    "check_list",
    "check_room",
    "check_tensor",
    "check_tensors",
    "checked_op",
    "cliques_for",
    "collect",
    "flat_of",
    "group_rank",
    "is_flat",
    "queue",
    "write_back",
]


def check_tensor(value: Any, param: str) -> None:
    """Raises a TypeError unless an argument is a tensor with memory."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{param}` of type torch.Tensor but got "
            f"{type(value)} instead."
        )
    if value.layout is not rl.strided or value.device.type == "meta":
        raise TypeError(
            f"Invalid function argument. Parameter `{param}` is a tensor of layout {value.layout} "
            f"on {value.device}, but the collectives take strided ones on the CPU or a GPU."
        )


def check_tensors(value: Any, param: str) -> None:
    """Raises a TypeError unless an argument is a list of tensors with memory."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{param}` of type List[torch.Tensor] "
            f"but got {type(value)} instead."
        )
    for item in value:
        check_tensor(item, param)


def check_dtypes(name: str, *tensors: Tensor) -> None:
    """Raises a ValueError unless all tensors have the same dtype."""
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"{name}: Invalid usage of tensors with different dtypes. Found {tensors[0].dtype} "
                f"and {tensor.dtype}."
            )


def check_list(
    name: str,
    param: str,
    tensors: Sequence[Tensor],
    other: Tensor,
    ranks: ProcessGroup,
    is_even: bool = True,
) -> None:
    """Raises a ValueError unless there is a tensor for each rank, all of them like another.

    Args:
        is_even: whether all have as many elements, or only that of this rank has to.
    """
    if len(tensors) != ranks.size():
        raise ValueError(
            f"{name}: {param} has {len(tensors)} tensors. It needs one for each of the "
            f"{ranks.size()} ranks."
        )
    check_dtypes(name, other, *tensors)
    for i, tensor in enumerate(tensors):
        if tensor.numel() != other.numel() and (is_even or i == ranks.rank()):
            raise ValueError(
                f"{name}: {param}[{i}] has shape {tuple(tensor.shape)}, but the tensors of all "
                f"ranks must have as many elements as {tuple(other.shape)}."
            )


def check_room(name: str, whole: Tensor, part: Tensor, size: int, names: tuple[str, str]) -> None:
    """Raises a ValueError unless a tensor has room for a part for each rank."""
    check_dtypes(name, whole, part)
    if whole.numel() != size * part.numel():
        raise ValueError(
            f"{name}: {names[0]} has {whole.numel()} elements, {names[1]} has {part.numel()}. It "
            f"must have {size} times as many, once for each rank."
        )


def group_rank(
    group: ProcessGroup, rank: int | None, in_group: int | None, name: str = "global_rank"
) -> int:
    """Returns the rank in the group, of which either that or the one in the job is given.

    Raises:
        ValueError: unless it is given once, and in the group.
        RuntimeError: if the job has no such rank.
    """
    if in_group is None:
        if rank is None:
            raise ValueError(f"Must specify {name} or group_rank")
        if group is GroupMember.WORLD and not 0 <= rank < group.size():
            raise RuntimeError(
                f"rank {rank} does not exist. Ranks go from 0 to {group.size() - 1}, one less than "
                "the number of processes."
            )
        return get_group_rank(group, rank)
    if rank is not None:
        raise ValueError(f"Can't specify both group_rank and {name}")
    if not 0 <= in_group < group.size():
        raise ValueError(f"Group rank {in_group} is not part of group {group}")
    return in_group


def root_rank(group: ProcessGroup, rank: int | None, in_group: int | None) -> int:
    """Returns group_rank, where rank 0 of the job is meant unless another is given."""
    return group_rank(group, 0 if rank is None and in_group is None else rank, in_group)


def checked_op(op: Any) -> ReduceOp:
    """Returns a reduction, or raises a TypeError if it is none."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op must be a torch.distributed.ReduceOp, not {op!r}.")
    return op


def is_flat(tensor: Tensor, device: str = "cpu") -> bool:
    """Returns whether the algorithms can work on the tensor's own memory."""
    return tensor.device.type == device and tensor.is_contiguous() and not tensor.is_conj()


def flat_of(tensor: Tensor, device: str = "cpu") -> Tensor:
    """Returns the elements in a row, on the CPU: the tensor's memory if it is flat, else a copy.

    Args:
        tensor: of any layout.
        device: "cuda" for where it is, on a GPU.
    """
    if tensor.requires_grad:
        tensor = tensor.detach()
    if not is_flat(tensor, device):
        tensor = (tensor.cpu() if device == "cpu" else tensor).resolve_conj().contiguous()
    return tensor.view(-1)


def write_back(tensors: Iterable[Tensor], flats: Iterable[Tensor]) -> None:
    """Copies flat tensors of the CPU to those they were made of, where they are copies."""
    for tensor, flat in zip(tensors, flats, strict=True):
        if not is_flat(tensor):
            tensor.detach().copy_(flat.view(tensor.shape))


def cliques_for(group: BuiltinGroup, name: str, tensors: Sequence[Tensor]) -> Cliques | None:
    """Returns the GPUs of the group's ranks, if NCCL is to move tensors; None if the CPU is.

    Raises:
        ValueError: if they are on several devices.
    """
    if not any(tensor.is_cuda for tensor in tensors) or group.cliques is None:
        return None
    first = tensors[0].device
    if any(tensor.device != first for tensor in tensors):
        devices = ", ".join(sorted({str(tensor.device) for tensor in tensors}))
        raise ValueError(
            f"{name}: the tensors are on {devices}. With NCCL all those of a rank must be on one "
            "GPU."
        )
    return group.cliques


def queue(
    group: BuiltinGroup,
    clique: Clique,
    name: str,
    operation: Callable[..., list[tuple[Tensor, Tensor]]],
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    async_op: bool,
    blocks: bool = False,
) -> Work | None:
    """Queues operation(comm, outputs, inputs) on flat tensors of a GPU.

    Args:
        operation: of nccl_collectives.py, or one that calls it.
        outputs, inputs: tensors of any layout; tensors that are both count as outputs.
        blocks: whether the CPU waits in Work.wait.
    """

    def start(comm: Any) -> list[tuple[Tensor, Tensor]]:
        flats = [flat_of(output, "cuda") for output in outputs]
        copies = operation(comm, flats, [flat_of(part, "cuda") for part in inputs])
        for output, flat in zip(outputs, flats, strict=True):
            if not is_flat(output, "cuda"):
                copies.append((output.detach(), flat.view(output.shape)))
        return copies

    tensors = [*outputs, *inputs]
    if group.coalescing is not None:
        group.coalescing.add(clique, start, tensors, list(outputs))
        return None
    return clique.run(name, start, tensors, list(outputs), async_op, blocks)


def collect(
    group: BuiltinGroup,
    operation: Callable[..., None],
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    dtype: rl.dtype,
    count: int,
    args: Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[object, ...]],
    async_op: bool,
    **options: Any,
) -> Work | None:
    """Runs a collective on GPUs, or on the CPU.

    Args:
        operation: of flat_collectives.py, where its name is the collective's.
        outputs: the tensors that it fills, which it may read too.
        inputs: the others.
        args: makes the operation's arguments of the flat outputs and inputs.
        dtype, count, options: see ProcessGroup.collective.
    """
    name = operation.__name__
    cliques = cliques_for(group, name, (*outputs, *inputs))
    if cliques is not None:
        from rushlight.distributed import nccl_collectives

        if "op" in options:
            nccl_collectives.check_reducible(name, options["op"], dtype)
        function = getattr(nccl_collectives, name)
        return queue(
            group,
            cliques.whole((*outputs, *inputs)[0].device.index),
            name,
            lambda comm, outs, ins: function(comm, *args(outs, ins)),
            outputs,
            inputs,
            async_op,
        )
    if group.coalescing is not None:
        async_op = True
    if all(map(is_flat, outputs)):
        flats = args([flat_of(output) for output in outputs], [flat_of(part) for part in inputs])
        work = group.collective(
            name, operation, dtype, count, flats, list(outputs), async_op, **options
        )
    else:

        def copying(way: Way, *calls: Call) -> None:
            flats = [flat_of(output) for output in outputs]
            operation(way, *calls, *args(flats, [flat_of(part) for part in inputs]))
            write_back(outputs, flats)

        work = group.collective(name, copying, dtype, count, (), list(outputs), async_op, **options)
    if group.coalescing is not None and work is not None:
        group.coalescing.works.append(work)
        return None
    return work
