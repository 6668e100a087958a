"""The collectives on flat tensors of GPUs, by NCCL. flat_collectives.py has those of the CPU, under
the same names and with the same arguments, but for the first.

Each queues its work on the current stream, and returns what is to be copied when that is done, as
pairs of tensors: to and from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.nccl import grouped
from rushlight.distributed.reduction import ReduceOp

Copies = list[tuple[Tensor, Tensor]]

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "exchange",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

# By ncclRedOp_t.
_REDUCTIONS = {
    ReduceOp.SUM: 0,
    ReduceOp.PRODUCT: 1,
    ReduceOp.MAX: 2,
    ReduceOp.MIN: 3,
    ReduceOp.AVG: 4,
}
_NOT_REDUCED = (rl.int16, rl.uint16, rl.float8_e4m3fn, rl.float8_e5m2)


def check_reducible(name: str, op: ReduceOp, dtype: rl.dtype) -> None:
    """Sees that NCCL has a reduction for a dtype.

    Raises:
        ValueError: for a reduction that it has not, or not for this dtype.
        TypeError: for a dtype that it cannot reduce.
    """
    if op not in _REDUCTIONS:
        raise ValueError(f"{name}: Cannot use ReduceOp.{op.name} with NCCL.")
    if dtype in _NOT_REDUCED:
        raise TypeError(
            f"{name}: NCCL does not reduce tensors of {dtype}. Convert them to another dtype."
        )
    if dtype.is_complex and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(
            f"{name} does not support ReduceOp.{op.name} on complex tensors. Use SUM or AVG."
        )
    if dtype is rl.bool and op is ReduceOp.AVG:
        raise ValueError(f"{name}: cannot use ReduceOp.AVG with {dtype}. Convert it to a float.")


def all_reduce(comm: Any, flat: Tensor, op: ReduceOp) -> Copies:
    comm.all_reduce(flat, _REDUCTIONS[op])
    return []


def reduce(comm: Any, flat: Tensor, root: int, op: ReduceOp) -> Copies:
    comm.reduce(flat, _REDUCTIONS[op], root)
    return []


def broadcast(comm: Any, flat: Tensor, root: int) -> Copies:
    comm.broadcast(flat, root)
    return []


def _joined(parts: Sequence[Tensor]) -> tuple[Tensor, bool]:
    """Memory for all parts, one after another, and whether it is their own."""
    first = parts[0]
    at, own = first.data_ptr(), True
    for part in parts:
        own &= part.data_ptr() == at
        at += part.nbytes
    total = sum(part.numel() for part in parts)
    offset = first.storage_offset()
    if own and (offset + total) * first.itemsize <= first.untyped_storage().nbytes():
        return first.as_strided((total,), (1,), offset), True
    return first.new_empty(total), False


def all_gather(comm: Any, outputs: Sequence[Tensor], mine: Tensor) -> Copies:
    """Outputs of different lengths are filled by a broadcast each."""
    if len({output.numel() for output in outputs}) > 1:
        outputs[comm.rank].copy_(mine)
        with grouped():
            for root, output in enumerate(outputs):
                comm.broadcast(output, root)
        return []
    whole, is_own = _joined(outputs)
    comm.all_gather(whole, mine)
    return [] if is_own else list(zip(outputs, whole.split(mine.numel()), strict=True))


def reduce_scatter(comm: Any, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp) -> Copies:
    """Inputs of different lengths are reduced one by one."""
    if len({part.numel() for part in inputs}) > 1:
        parts = [part.clone() for part in inputs]
        with grouped():
            for root, part in enumerate(parts):
                comm.reduce(part, _REDUCTIONS[op], root)
        return [(output, parts[comm.rank])]
    whole, is_own = _joined(inputs)
    if not is_own:
        rl.cat(list(inputs), out=whole)
    comm.reduce_scatter(whole, output, _REDUCTIONS[op])
    return []


def exchange(comm: Any, sent: Iterable[tuple[Tensor, int]], received: Any) -> Copies:
    """Sends flat tensors to ranks and receives others from ranks, all at once."""
    with grouped():
        for flat, peer in sent:
            if flat.numel():
                comm.send(flat, peer)
        for flat, peer in received:
            if flat.numel():
                comm.receive(flat, peer)
    return []


def gather(comm: Any, outputs: Sequence[Tensor] | None, mine: Tensor, root: int) -> Copies:
    if outputs is None:
        return exchange(comm, [(mine, root)], [])
    outputs[root].copy_(mine)
    others = [(output, rank) for rank, output in enumerate(outputs) if rank != root]
    return exchange(comm, [], others)


def scatter(comm: Any, output: Tensor, inputs: Sequence[Tensor] | None, root: int) -> Copies:
    if inputs is None:
        return exchange(comm, [], [(output, root)])
    output.copy_(inputs[root])
    return exchange(comm, [(part, rank) for rank, part in enumerate(inputs) if rank != root], [])


def all_to_all(comm: Any, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Copies:
    ranks = range(len(inputs))
    return exchange(comm, zip(inputs, ranks, strict=True), zip(outputs, ranks, strict=True))
