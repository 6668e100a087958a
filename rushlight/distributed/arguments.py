"""What the collectives are given: checks, and the flat tensors that they work on.

Flat tensors are contiguous, of one dim and on the CPU. Those on a GPU, and those that are not
contiguous, are copied there and back.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.groups import default_group, get_group_rank
from rushlight.distributed.reduction import ReduceOp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from rushlight.distributed.calls import Call
    from rushlight.distributed.flat_collectives import Way
    from rushlight.distributed.process_group import ProcessGroup
    from rushlight.distributed.work import Work

__all__ = [
    "check_dtypes",
    "check_list",
    "check_room",
    "check_tensor",
    "check_tensors",
    "checked_op",
    "collect",
    "flat_of",
    "group_rank",
    "is_flat",
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


def check_list(name: str, param: str, tensors: Sequence[Tensor], other: Tensor, size: int) -> None:
    """Raises a ValueError unless there is a tensor for each rank, all of them like another."""
    if len(tensors) != size:
        raise ValueError(
            f"{name}: {param} has {len(tensors)} tensors. It needs one for each of the {size} "
            "ranks."
        )
    check_dtypes(name, other, *tensors)
    for i, tensor in enumerate(tensors):
        if tensor.numel() != other.numel():
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
        if group is default_group() and not 0 <= rank < group.size():
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


def checked_op(op: Any) -> ReduceOp:
    """Returns a reduction, or raises a TypeError if it is none."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op must be a torch.distributed.ReduceOp, not {op!r}.")
    return op


def is_flat(tensor: Tensor) -> bool:
    """Returns whether the algorithms can work on the tensor's own memory."""
    return tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_conj()


def flat_of(tensor: Tensor) -> Tensor:
    """Returns the elements in a row on the CPU: the tensor's memory if it is flat, else a copy."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if not is_flat(tensor):
        tensor = tensor.cpu().resolve_conj().contiguous()
    return tensor.view(-1)


def write_back(tensors: Iterable[Tensor], flats: Iterable[Tensor]) -> None:
    """Copies flat tensors to those they were made of, where they are copies."""
    for tensor, flat in zip(tensors, flats, strict=True):
        if not is_flat(tensor):
            tensor.detach().copy_(flat.view(tensor.shape))


def collect(
    group: ProcessGroup,
    name: str,
    operation: Callable[..., None],
    outputs: Sequence[Tensor],
    dtype: rl.dtype,
    count: int,
    args: Callable[[list[Tensor]], tuple[object, ...]],
    async_op: bool,
    **options: Any,
) -> Work | None:
    """Runs a collective that fills the outputs.

    Args:
        operation: of flat_collectives.py.
        args: makes its arguments of the flat outputs.
        dtype, count, options: see ProcessGroup.collective.
    """
    if all(map(is_flat, outputs)):
        flat = args([flat_of(output) for output in outputs])
        return group.collective(
            name, operation, dtype, count, flat, list(outputs), async_op, **options
        )

    def copying(way: Way, *calls: Call) -> None:
        flats = [flat_of(output) for output in outputs]
        operation(way, *calls, *args(flats))
        write_back(outputs, flats)

    return group.collective(name, copying, dtype, count, (), list(outputs), async_op, **options)
