"""The collectives as methods of a ProcessGroup, with settings in objects.

They are the functions of rushlight.distributed, begun at once: lists stand for several devices of a
process, of which there is one. Roots and peers are ranks of the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.reduction import ReduceOp

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "delegate",
]


@dataclass
class _Options:
    """Settings of every collective; the group's timeout and a thread of its own serve all."""

    timeout: timedelta | None = None
    asyncOp: bool = True


@dataclass
class _Reducing(_Options):
    reduceOp: Any = ReduceOp.SUM


@dataclass
class _Rooted(_Options):
    rootRank: int = 0


class AllreduceOptions(_Reducing):
    """Settings of allreduce: reduceOp."""


class AllreduceCoalescedOptions(_Reducing):
    """Settings of allreduce_coalesced: reduceOp."""


class ReduceScatterOptions(_Reducing):
    """Settings of reduce_scatter: reduceOp."""


class BroadcastOptions(_Rooted):
    """Settings of broadcast: rootRank; rootTensor can only be 0."""

    rootTensor = 0


class GatherOptions(_Rooted):
    """Settings of gather: rootRank."""


class ScatterOptions(_Rooted):
    """Settings of scatter: rootRank."""


@dataclass
class ReduceOptions(_Rooted):
    """Settings of reduce: rootRank and reduceOp; rootTensor can only be 0."""

    reduceOp: Any = ReduceOp.SUM
    rootTensor: int = 0


class AllgatherOptions(_Options):
    """Settings of allgather."""


class AllToAllOptions(_Options):
    """Settings of alltoall."""


@dataclass
class BarrierOptions(_Options):
    """Settings of barrier: device_ids and timeout."""

    device_ids: list[int] | None = None


def _tensor(items: Any) -> Tensor:
    """A tensor, or the one in a list."""
    if isinstance(items, Tensor):
        return items
    if len(items) != 1:
        raise ValueError(f"expected one tensor per process, but got {len(items)}.")
    return items[0]


def _list(items: Any) -> list[Tensor]:
    """A list of tensors, or the one in a list of lists."""
    if not items or isinstance(items[0], Tensor):
        return items
    if len(items) != 1:
        raise ValueError(f"expected one list of tensors per process, but got {len(items)}.")
    return items[0]


def _op(opts: Any) -> Any:
    return getattr(opts, "reduceOp", opts)


def _root(opts: Any) -> int:
    return getattr(opts, "rootRank", opts)


class GroupCalls:
    """What ProcessGroup inherits. Each method returns the work; opts may be the op or the root."""

    def allreduce(self: Any, tensors: Any, opts: Any = ReduceOp.SUM) -> Any:
        """Begins all_reduce."""
        return dist.all_reduce(_tensor(tensors), _op(opts), self, True)

    def allreduce_coalesced(self: Any, tensors: list[Tensor], opts: Any = ReduceOp.SUM) -> Any:
        """Begins all_reduce of several tensors, and returns the work of the last."""
        return [self.allreduce(tensor, opts) for tensor in tensors][-1]

    def broadcast(self: Any, tensors: Any, opts: Any = 0) -> Any:
        """Begins broadcast."""
        return dist.broadcast(_tensor(tensors), None, self, True, _root(opts))

    def reduce(self: Any, tensors: Any, opts: Any = 0, op: ReduceOp = ReduceOp.SUM) -> Any:
        """Begins reduce."""
        op = getattr(opts, "reduceOp", op)
        return dist.reduce(_tensor(tensors), None, op, self, True, _root(opts))

    def allgather(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
        """Begins all_gather."""
        return dist.all_gather(_list(output_tensors), _tensor(input_tensors), self, True)

    def _allgather_base(self: Any, output: Tensor, input: Tensor, opts: Any = None) -> Any:
        return dist.all_gather_single(output, input, self, True)

    def allgather_into_tensor_coalesced(
        self: Any, output_tensors: list[Tensor], input_tensors: list[Tensor], opts: Any = None
    ) -> Any:
        """Begins all_gather_into_tensor of several tensors, and returns the work of the last."""
        pairs = zip(output_tensors, input_tensors, strict=True)
        return [self._allgather_base(output, input, opts) for output, input in pairs][-1]

    def gather(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = 0) -> Any:
        """Begins gather; only the root has output_tensors."""
        outputs = _list(output_tensors) or None
        return dist.gather(_tensor(input_tensors), outputs, None, self, True, _root(opts))

    def gather_single(self: Any, output: Tensor, input: Tensor, opts: Any = 0) -> Any:
        """Begins gather_single; what `output` is counts on the root only."""
        return dist.gather_single(input, output, None, self, True, _root(opts))

    gather_into_tensor = gather_single

    def scatter(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = 0) -> Any:
        """Begins scatter; only the root has input_tensors."""
        inputs = _list(input_tensors) or None
        return dist.scatter(_tensor(output_tensors), inputs, None, self, True, _root(opts))

    def reduce_scatter(
        self: Any, output_tensors: Any, input_tensors: Any, opts: Any = ReduceOp.SUM
    ) -> Any:
        """Begins reduce_scatter."""
        inputs = _list(input_tensors)
        return dist.reduce_scatter(_tensor(output_tensors), inputs, _op(opts), self, True)

    def _reduce_scatter_base(
        self: Any, output: Tensor, input: Tensor, opts: Any = ReduceOp.SUM
    ) -> Any:
        return dist.reduce_scatter_single(output, input, _op(opts), self, True)

    def reduce_scatter_tensor_coalesced(
        self: Any,
        output_tensors: list[Tensor],
        input_tensors: list[Tensor],
        opts: Any = ReduceOp.SUM,
    ) -> Any:
        """Begins reduce_scatter_tensor of several tensors, and returns the work of the last."""
        pairs = zip(output_tensors, input_tensors, strict=True)
        return [self._reduce_scatter_base(output, input, opts) for output, input in pairs][-1]

    def alltoall(
        self: Any, output_tensors: list[Tensor], input_tensors: list[Tensor], opts: Any = None
    ) -> Any:
        """Begins all_to_all."""
        return dist.all_to_all(output_tensors, input_tensors, self, True)

    def alltoall_base(
        self: Any,
        output: Tensor,
        input: Tensor,
        output_split_sizes: list[int],
        input_split_sizes: list[int],
        opts: Any = None,
    ) -> Any:
        """Begins all_to_all_single; without sizes the parts are equal."""
        sizes = output_split_sizes or None, input_split_sizes or None
        return dist.all_to_all_single(output, input, *sizes, self, True)

    def send(self: Any, tensors: Any, dst: int, tag: int = 0) -> Any:
        """Begins to send a tensor."""
        return dist.isend(_tensor(tensors), None, self, tag, dst)

    def recv(self: Any, tensors: Any, src: int, tag: int = 0) -> Any:
        """Begins to wait for a message."""
        return dist.irecv(_tensor(tensors), None, self, tag, src)

    def recv_anysource(self: Any, tensors: Any, tag: int = 0) -> Any:
        """Begins to wait for a message from any rank."""
        return dist.irecv(_tensor(tensors), None, self, tag)

    def barrier(self: Any, opts: Any = None) -> Any:
        """Begins barrier."""
        devices, timeout = (getattr(opts, name, None) for name in ("device_ids", "timeout"))
        return dist.barrier(self, True, devices, timeout)

    def monitored_barrier(
        self: Any, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """Calls monitored_barrier."""
        dist.monitored_barrier(self, timeout, wait_all_ranks)


def delegate(group: Any, name: str, async_op: bool, *args: Any) -> Any:
    """Has a group of a registered backend do a collective by its own method.

    Args:
        name: of the method.
        async_op: whether to return the work at once.
        args: what the method gets.

    Raises:
        RuntimeError: if the group has no such method.
    """
    method = getattr(group, name)
    if getattr(method, "__func__", None) is getattr(GroupCalls, name):
        raise RuntimeError(
            f"{name}: the backend {group.name()!r} does not support it. {type(group).__name__} has "
            "to define a method of this name."
        )
    work = method(*args)
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None
