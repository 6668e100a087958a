"""Collectives that leave every rank, or one, with a tensor of the same size; and the barriers.

Owns their signatures; arguments.py has the checks, and flat_collectives.py the work. Those that
divide tensors among ranks, or put them together, are in gathering.py.
"""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed import flat_collectives
from rushlight.distributed.arguments import (
    check_dtypes,
    check_tensor,
    check_tensors,
    checked_op,
    collect,
    group_rank,
)
from rushlight.distributed.errors import DistBackendError, DistStoreError
from rushlight.distributed.gathering import all_gather
from rushlight.distributed.group_calls import (
    AllreduceOptions,
    BarrierOptions,
    BroadcastOptions,
    ReduceOptions,
    delegate,
)
from rushlight.distributed.groups import member
from rushlight.distributed.process_group import BuiltinGroup, ProcessGroup
from rushlight.distributed.reduction import ReduceOp
from rushlight.distributed.store import seconds_of
from rushlight.distributed.work import Work, in_mode_of_caller

__all__ = [
    "all_gather_coalesced",
    "all_reduce",
    "all_reduce_coalesced",
    "barrier",
    "broadcast",
    "monitored_barrier",
    "reduce",
    "supports_complex",
]


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Returns whether a reduction exists for complex tensors."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until all ranks of the group have called it.

    Args:
        group: the ranks; all by default.
        async_op: whether to return the work at once.
        device_ids: with the backend "nccl", a list of one number: of the GPU to use.
        timeout: how long to wait for the others, the group's by default.

    Raises:
        DistError: if a rank does not come in time, ended, or called something else.
    """
    ranks = member(group, "barrier")
    if ranks is None:
        return None
    if not isinstance(ranks, BuiltinGroup):
        opts = BarrierOptions(timeout, device_ids=device_ids)
        return delegate(ranks, "barrier", async_op, opts)
    device = None if not device_ids else rl.device("cuda", device_ids[0]).index
    return ranks.wait_for_all(None if timeout is None else seconds_of(timeout), async_op, device)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Fills the tensors of all ranks with that of one.

    Args:
        tensor: of the same dtype and number of elements everywhere.
        src: the rank in the job whose tensor is sent.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.
        group_src: the rank in the group, instead of src.

    Returns:
        The work if async_op, else None.

    Raises:
        DistError: if a rank does not come in time, ended, or called something else.
    """
    ranks = member(group, "broadcast")
    check_tensor(tensor, "tensor")
    if ranks is None:
        return None
    root = group_rank(ranks, src, group_src)
    if not isinstance(ranks, BuiltinGroup):
        return delegate(ranks, "broadcast", async_op, [tensor], BroadcastOptions(rootRank=root))
    return collect(
        ranks,
        flat_collectives.broadcast,
        [tensor],
        [],
        tensor.dtype,
        tensor.numel(),
        lambda outs, _: (outs[0], root),
        async_op,
        root=root,
    )


def all_reduce(
    tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces the tensors of all ranks, element by element, in place.

    Every rank gets the same result, bit by bit.

    Args:
        tensor: of the same dtype and number of elements everywhere. Sparse ones (COO) must have the
            same shape, and may have elements at other places.
        op: what is computed; sparse tensors can only be added.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The work if async_op, else None.

    Raises:
        DistError: if a rank does not come in time, ended, or called something else.
        ValueError: for complex tensors and an op that needs an order or bits.
        RuntimeError: for sparse tensors and another op.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> torch.distributed.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    ranks = member(group, "all_reduce")
    if isinstance(tensor, Tensor) and tensor.layout is rl.sparse_coo:
        return None if ranks is None else _sum_sparse(tensor, op, ranks, async_op)
    check_tensor(tensor, "tensor")
    if ranks is None:
        return None
    if not isinstance(ranks, BuiltinGroup):
        return delegate(ranks, "allreduce", async_op, [tensor], AllreduceOptions(reduceOp=op))
    return collect(
        ranks,
        flat_collectives.all_reduce,
        [tensor],
        [],
        tensor.dtype,
        tensor.numel(),
        lambda outs, _: (outs[0], op),
        async_op,
        op=checked_op(op),
    )


def _sum_sparse(tensor: Tensor, op: ReduceOp, ranks: ProcessGroup, async_op: bool) -> Work | None:
    """all_reduce of a sparse tensor, whose work is done when it returns."""
    from rushlight.distributed.sparse_sum import sum_sparse

    if checked_op(op) is not ReduceOp.SUM:
        raise RuntimeError(
            f"all_reduce: unsupported reduction operation {op!r} for a sparse tensor, which can "
            "only be added. Use ReduceOp.SUM, or tensor.to_dense()."
        )
    with rl.no_grad():
        tensor.copy_(sum_sparse(tensor, ranks))
    if not async_op:
        return None
    work = Work([tensor])
    work.set_result([tensor])
    return work


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces the tensors of all ranks into that of one; the others keep theirs.

    Args:
        tensor: of the same dtype and number of elements everywhere.
        dst: the rank in the job that gets the result.
        op: what is computed.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.
        group_dst: the rank in the group, instead of dst.

    Returns:
        The work if async_op, else None.
    """
    ranks = member(group, "reduce")
    check_tensor(tensor, "tensor")
    if ranks is None:
        return None
    root = group_rank(ranks, dst, group_dst)
    if not isinstance(ranks, BuiltinGroup):
        opts = ReduceOptions(rootRank=root, reduceOp=op)
        return delegate(ranks, "reduce", async_op, [tensor], opts)
    is_root = ranks.rank() == root
    return collect(
        ranks,
        flat_collectives.reduce,
        [tensor] if is_root else [],
        [] if is_root else [tensor],
        tensor.dtype,
        tensor.numel(),
        lambda outs, ins: (*outs, *ins, root, op),
        async_op,
        op=checked_op(op),
        root=root,
    )


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.distributed.{name}` will be deprecated. Pass the tensors one by one.",
        FutureWarning,
        stacklevel=3,
    )


def all_reduce_coalesced(
    tensors: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Reduces several tensors of one dtype as all_reduce does, together.

    Returns:
        The future of all of them if async_op, else None.

    Raises:
        ValueError: if there are none.
    """
    _deprecated("all_reduce_coalesced")
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    check_tensors(tensors, "tensor")
    check_dtypes("all_reduce_coalesced", *tensors)
    if not tensors:
        raise ValueError("all_reduce_coalesced: requires non-empty tensor list.")
    whole = rl.cat([tensor.detach().flatten() for tensor in tensors])
    work = all_reduce(whole, op, group, async_op)

    def hand_out(_: Any = None) -> list[Tensor]:
        parts = whole.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.detach().copy_(part.view_as(tensor))
        return tensors

    if work is not None:
        return work.then(in_mode_of_caller(hand_out))
    hand_out()
    return None


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Gathers several tensors as all_gather does.

    Args:
        output_tensor_lists: for each rank, one tensor for each of its inputs.
        input_tensor_list: what this rank brings.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The future of all if async_op, else None.
    """
    _deprecated("all_gather_coalesced")
    check_tensors(input_tensor_list, "tensor")
    for outputs in output_tensor_lists:
        check_tensors(outputs, "output_tensor_lists")
    columns = zip(*output_tensor_lists, strict=True)
    works = [
        all_gather(list(outputs), tensor, group, async_op)
        for outputs, tensor in zip(columns, input_tensor_list, strict=True)
    ]
    return works[-1].get_future() if works and works[-1] is not None else None


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | float | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """Waits for all ranks, and names those that do not come.

    Args:
        group: the ranks; all by default.
        timeout: how long rank 0 waits; the group's timeout by default.
        wait_all_ranks: whether to name all that are missing, or the first.

    Raises:
        DistBackendError: on rank 0 if others do not come in time, and then on those that did.
    """
    ranks = member(group, "monitored_barrier")
    if ranks is None:
        return
    if not isinstance(ranks, BuiltinGroup):
        delegate(ranks, "monitored_barrier", True, timeout, wait_all_ranks)
        return
    if isinstance(timeout, (int, float)):
        timeout = timedelta(seconds=timeout)
    wait = ranks.timeout if timeout is None else timeout
    seconds = seconds_of(wait)
    number = ranks.store.add(f"barriers of rank {ranks.rank()}", 1)
    key = f"barrier {number}"
    ranks.store.set(f"{key}/{ranks.rank()}", b"")
    if ranks.rank() != 0:
        ranks.store.wait([f"{key}/done"], wait + timedelta(seconds=30))
        if missing := ranks.store.get(f"{key}/done"):
            raise DistBackendError(missing.decode())
        return
    import time

    end = time.monotonic() + seconds
    missing = []
    for rank in range(1, ranks.size()):
        try:
            rest = timedelta(seconds=max(0.0, end - time.monotonic()))
            ranks.store.wait([f"{key}/{rank}"], rest)
        except DistStoreError:
            missing.append(ranks.ranks[rank])
            if not wait_all_ranks:
                break
    text = ""
    if missing:
        names = ", ".join(map(str, missing))
        kind = "Ranks" if wait_all_ranks else "Rank"
        text = f"{kind} {names} failed to pass monitoredBarrier in {seconds * 1000:.0f} ms"
    ranks.store.set(f"{key}/done", text)
    if text:
        raise DistBackendError(text)
