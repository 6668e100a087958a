"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import Tensor
from rushlight.distributed.arguments import (
    check_tensor,
    cliques_for,
    flat_of,
    group_rank,
    queue,
    write_back,
)
from rushlight.distributed.calls import DTYPE_NUMBERS, DTYPES
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.group_calls import delegate
from rushlight.distributed.groups import get_process_group_ranks, member
from rushlight.distributed.process_group import BuiltinGroup, ProcessGroup
from rushlight.distributed.work import Work, in_mode_of_caller

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor to a rank, which calls recv, and returns when the tensor may be changed.

    Args:
        tensor: what is sent.
        dst: the rank in the job.
        group: the ranks that take part; all by default.
        tag: which of several messages it is, for the receiver to choose.
        group_dst: the rank in the group, instead of dst.

    Raises:
        ValueError: if the rank is this one.
        DistError: if the other does not take the message in time, or has ended.
    """
    ranks = member(group, "send")
    check_tensor(tensor, "tensor")
    if ranks is None:
        return
    rank = group_rank(ranks, dst, group_dst, "dst")
    if rank == ranks.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the "
            "current process."
        )
    if not isinstance(ranks, BuiltinGroup):
        delegate(ranks, "send", False, [tensor], rank, tag)
        return
    if _queued("send", tensor, ranks, rank, False):
        return
    operation = _sending(tensor, ranks, rank, tag)
    sender = ranks.mesh().sender(ranks.place(rank))
    if sender.is_idle():
        operation()
    else:
        sender.put(operation, [tensor]).wait()


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begins to send a tensor to a rank, which may be this one; see send.

    Returns:
        The work; the tensor must not be changed before its end.
    """
    ranks = member(group, "isend")
    check_tensor(tensor, "tensor")
    if ranks is None:
        return None
    rank = group_rank(ranks, dst, group_dst, "dst")
    if not isinstance(ranks, BuiltinGroup):
        return delegate(ranks, "send", True, [tensor], rank, tag)
    if queued := _queued("send", tensor, ranks, rank, True):
        return queued[0]
    operation = _sending(tensor, ranks, rank, tag)
    return ranks.mesh().sender(ranks.place(rank)).put(operation, [tensor])


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Fills a tensor with a message from a rank.

    Args:
        tensor: of the sent one's dtype and number of elements.
        src: the rank in the job; None for whoever sends, but not on a GPU with NCCL.
        group: the ranks that take part; all by default.
        tag: the one that the message was sent with; NCCL ignores it.
        group_src: the rank in the group, instead of src.

    Returns:
        The rank in the job that sent it; -1 if this one is not in the group.

    Raises:
        DistError: if no message comes in time, the sender has ended, or it sent another dtype or
            number of elements.
    """
    receipt = irecv(tensor, src, group, tag, group_src)
    if receipt is None:
        return -1
    receipt.wait()
    if src is not None:
        return src
    if group_src is not None:
        return get_process_group_ranks(group)[group_src]
    return receipt.source_rank()


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begins to wait for a message from a rank; see recv.

    Returns:
        The work, after whose end the tensor is filled.
    """
    ranks = member(group, "irecv")
    check_tensor(tensor, "tensor")
    if ranks is None:
        return None
    from rushlight.distributed.mesh import Receipt, channel_of

    has_source = src is not None or group_src is not None
    rank = group_rank(ranks, src, group_src, "src") if has_source else None
    if not isinstance(ranks, BuiltinGroup):
        if rank is None:
            return delegate(ranks, "recv_anysource", True, [tensor], tag)
        return delegate(ranks, "recv", True, [tensor], rank, tag)
    if queued := _queued("recv", tensor, ranks, rank, True):
        return queued[0]
    flat = flat_of(tensor)

    def check(sender: int, note: bytes, size: int) -> None:
        dtype = DTYPES[note[0]]
        if dtype is not tensor.dtype or size != flat.nbytes:
            raise DistBackendError(
                f"recv: rank {sender} sent {size // dtype.itemsize} elements of {dtype}, but rank "
                f"{ranks.place(ranks.rank())} receives {flat.numel()} of {tensor.dtype}. They must "
                "be the same."
            )

    receipt = Receipt(
        flat,
        None if rank is None else ranks.place(rank),
        channel_of(ranks.group_name, "messages"),
        tag,
        check,
        ranks.timeout.total_seconds(),
        lambda: rank is None or ranks.is_alive(rank),
        in_mode_of_caller(lambda: write_back([tensor], [flat])),
    )
    return ranks.mesh().receive(receipt)


def _sending(tensor: Tensor, ranks: BuiltinGroup, rank: int, tag: int) -> Callable[[], None]:
    """The operation that sends a tensor."""
    from rushlight.distributed.mesh import channel_of

    channel = channel_of(ranks.group_name, "messages")
    note = bytes([DTYPE_NUMBERS[tensor.dtype]])
    seconds = ranks.timeout.total_seconds()
    place = ranks.place(rank)
    return lambda: ranks.mesh().send(place, channel, tag, note, flat_of(tensor), seconds)


def _queued(
    name: str, tensor: Tensor, ranks: BuiltinGroup, rank: int | None, async_op: bool
) -> list[Work | None]:
    """Queues a message to or from a rank on the GPU, and returns its work; [] if NCCL does not."""
    cliques = cliques_for(ranks, name, [tensor])
    if cliques is None:
        return []
    if rank is None or rank == ranks.rank():
        raise ValueError(
            f"{name}: NCCL needs the rank of another process, not {rank}. Give src, or use "
            "batch_isend_irecv."
        )
    from rushlight.distributed.nccl_collectives import exchange

    clique = cliques.pair(tensor.device.index, rank)
    peer = clique.members.index(rank)

    def start(comm: Any, outs: Sequence[Tensor], ins: Sequence[Tensor]) -> Any:
        return exchange(comm, [(flat, peer) for flat in ins], [(flat, peer) for flat in outs])

    sent, received = ([tensor], []) if name == "send" else ([], [tensor])
    return [queue(ranks, clique, name, start, received, sent, async_op)]


class P2POp:
    """A message for batch_isend_irecv.

    Args:
        op: isend or irecv.
        tensor: what is sent or filled.
        peer: the other rank in the job.
        group: the ranks that take part; all by default.
        tag: which of several messages it is.
        group_peer: the rank in the group, instead of peer.

    Raises:
        ValueError: for another op.
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = group
        self.tag = tag
        ranks = member(group, "P2POp")
        if ranks is not None:
            self.group_peer = group_rank(ranks, peer, group_peer, "peer")
            self.peer = ranks.ranks[self.group_peer]

    def __repr__(self) -> str:
        kind = "isend" if self.op is isend else "irecv"
        return f"P2POp({kind} pg={self.group}, peer={self.peer}, {tuple(self.tensor.shape)})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begins several messages, in any order on each side, and returns their works.

    With NCCL on GPUs all of them have one work, and if this is the first collective of a group, all
    its ranks call it.

    Raises:
        ValueError: unless they are P2POps of one group.
    """
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    if any(each.group is not p2p_op_list[0].group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    if queued := _queued_batch(p2p_op_list):
        return queued
    works = [
        each.op(each.tensor, group=each.group, tag=each.tag, **_peer(each)) for each in p2p_op_list
    ]
    return [work for work in works if work is not None]


def _queued_batch(batch: list[P2POp]) -> list[Work]:
    """Queues messages on the GPU, and returns their work; [] if NCCL does not."""
    ranks = member(batch[0].group, "batch_isend_irecv")
    if not isinstance(ranks, BuiltinGroup):
        return []
    tensors = [each.tensor for each in batch]
    cliques = cliques_for(ranks, "batch_isend_irecv", tensors)
    if cliques is None:
        return []
    from rushlight.distributed.nccl_collectives import exchange

    sends = [each for each in batch if each.op is isend]
    receives = [each for each in batch if each.op is irecv]

    def start(comm: Any, outs: Sequence[Tensor], ins: Sequence[Tensor]) -> Any:
        return exchange(
            comm,
            [(flat, each.group_peer) for flat, each in zip(ins, sends, strict=True)],
            [(flat, each.group_peer) for flat, each in zip(outs, receives, strict=True)],
        )

    work = queue(
        ranks,
        cliques.whole(tensors[0].device.index),
        "batch_isend_irecv",
        start,
        [each.tensor for each in receives],
        [each.tensor for each in sends],
        True,
    )
    return [] if work is None else [work]


def _peer(each: P2POp) -> dict[str, int]:
    return {"group_dst" if each.op is isend else "group_src": each.group_peer}
