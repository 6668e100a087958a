"""Messages from one rank to another."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.distributed.arguments import check_tensor, flat_of, group_rank, write_back
from rushlight.distributed.calls import DTYPE_NUMBERS, DTYPES
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.groups import member, mesh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.distributed.mesh import Receipt
    from rushlight.distributed.process_group import ProcessGroup
    from rushlight.distributed.work import Work

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
    operation = _sending(tensor, ranks, rank, tag)
    sender = mesh().sender(ranks.ranks[rank])
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
    operation = _sending(tensor, ranks, rank, tag)
    return mesh().sender(ranks.ranks[rank]).put(operation, [tensor])


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
        src: the rank in the job; None for whoever sends.
        group: the ranks that take part; all by default.
        tag: the one that the message was sent with.
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
    return receipt.source_rank()


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Receipt | None:
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
    flat = flat_of(tensor)

    def check(sender: int, note: bytes, size: int) -> None:
        dtype = DTYPES[note[0]]
        if dtype is not tensor.dtype or size != flat.nbytes:
            raise DistBackendError(
                f"recv: rank {sender} sent {size // dtype.itemsize} elements of {dtype}, but rank "
                f"{mesh().rank} receives {flat.numel()} of {tensor.dtype}. They must be the same."
            )

    receipt = Receipt(
        flat,
        None if rank is None else ranks.ranks[rank],
        channel_of(ranks.group_name, "messages"),
        tag,
        check,
        ranks.timeout.total_seconds(),
        lambda: rank is None or ranks.is_alive(rank),
        lambda: write_back([tensor], [flat]),
    )
    return mesh().receive(receipt)


def _sending(tensor: Tensor, ranks: ProcessGroup, rank: int, tag: int) -> Callable[[], None]:
    """The operation that sends a tensor."""
    from rushlight.distributed.mesh import channel_of

    channel = channel_of(ranks.group_name, "messages")
    note = bytes([DTYPE_NUMBERS[tensor.dtype]])
    seconds = ranks.timeout.total_seconds()
    return lambda: mesh().send(ranks.ranks[rank], channel, tag, note, flat_of(tensor), seconds)


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
    works = [
        each.op(each.tensor, group=each.group, tag=each.tag, **_peer(each)) for each in p2p_op_list
    ]
    return [work for work in works if work is not None]


def _peer(each: P2POp) -> dict[str, int]:
    return {"group_dst" if each.op is isend else "group_src": each.group_peer}
