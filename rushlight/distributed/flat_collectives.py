"""The collectives, on flat tensors of the CPU, written once for both ways between processes.

A way (Arena on one machine, Wire between several) has two steps, which all ranks of the group take
together: `show` a tensor to all others, or `give` each of the others one of its own. Both return
what the others showed or gave, to be read until the next step, and take a limited number of bytes;
so large tensors go piece by piece. Results are the same on all ranks, bit by bit: a piece is
reduced by one rank, in the order of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.calls import Call, disagreeing
from rushlight.distributed.reduction import ReduceOp, finish, fold


class Way(Protocol):
    """How the ranks of a group reach each other."""

    rank: int
    size: int
    small: int  # bytes up to which one step is better than two shorter ones
    show_limit: int  # bytes that one step shows
    give_limit: int  # bytes that one step gives to each

    def show(self, call: Call, mine: Tensor | None, counts: Sequence[int]) -> list[Tensor]: ...

    def give(
        self, call: Call, parts: Sequence[Tensor | None], counts: Sequence[int]
    ) -> list[Tensor]: ...

    def is_alive(self, rank: int) -> bool: ...

    def give_up(self, reason: str) -> None: ...

    def close(self) -> None: ...


__all__ = [
    "Way",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _ranges(count: int, step: int) -> Iterator[tuple[int, int]]:
    """The pieces of so many elements; one, without any, if there are none."""
    for start in range(0, max(count, 1), step):
        yield start, min(start + step, count)


def _only(way: Way, root: int, count: int) -> list[int]:
    """Counts of elements that come from one rank alone."""
    return [count if rank == root else 0 for rank in range(way.size)]


def barrier(way: Way, call: Call) -> None:
    """Returns when all ranks have called it."""
    way.show(call, rl.zeros(1, dtype=call.dtype), [1] * way.size)


def broadcast(way: Way, call: Call, flat: Tensor, root: int) -> None:
    """Fills `flat` with that of the root."""
    for start, end in _ranges(flat.numel(), way.show_limit // flat.itemsize):
        piece = flat[start:end]
        is_root = way.rank == root
        shown = way.show(call, piece if is_root else None, _only(way, root, end - start))
        if not is_root:
            piece.copy_(shown[root])


def all_reduce(way: Way, call: Call, flat: Tensor, op: ReduceOp) -> None:
    """Reduces `flat` over all ranks: each reduces a part and shows it, small ones as a whole."""
    if flat.nbytes <= way.small:
        shown = way.show(call, flat, [flat.numel()] * way.size)
        total = shown[0].clone() if way.rank else flat
        for other in shown[1:]:
            fold(op, total, other)
        finish(op, total, way.size)
        if way.rank:
            flat.copy_(total)
        return
    for start, end in _ranges(flat.numel(), way.give_limit // flat.itemsize * way.size):
        parts = flat[start:end].tensor_split(way.size)
        mine = parts[way.rank]
        given = way.give(call, parts, [mine.numel()] * way.size)
        for rank, other in enumerate(given):
            if rank != way.rank:
                fold(op, mine, other)
        finish(op, mine, way.size)
        shown = way.show(call, mine, [part.numel() for part in parts])
        for rank, (part, theirs) in enumerate(zip(parts, shown, strict=True)):
            if rank != way.rank:
                part.copy_(theirs)


def reduce(way: Way, call: Call, flat: Tensor, root: int, op: ReduceOp) -> None:
    """Reduces `flat` over all ranks at the root; the others keep theirs."""
    for start, end in _ranges(flat.numel(), way.give_limit // flat.itemsize):
        mine = flat[start:end]
        counts = [end - start if way.rank == root else 0] * way.size
        given = way.give(call, _to_one(way, root, mine), counts)
        if way.rank == root:
            for rank, other in enumerate(given):
                if rank != root:
                    fold(op, mine, other)
            finish(op, mine, way.size)


def _to_one(way: Way, root: int, mine: Tensor) -> list[Tensor | None]:
    """What this rank gives when only the root gets something."""
    return [mine if rank == root else None for rank in range(way.size)]


def all_gather(way: Way, call: Call, outputs: Sequence[Tensor], mine: Tensor) -> None:
    """Fills one output for each rank with what it brings."""
    for start, end in _ranges(mine.numel(), way.show_limit // mine.itemsize):
        shown = way.show(call, mine[start:end], [end - start] * way.size)
        for output, theirs in zip(outputs, shown, strict=True):
            output[start:end].copy_(theirs)


def gather(way: Way, call: Call, outputs: Sequence[Tensor] | None, mine: Tensor, root: int) -> None:
    """Fills one output of the root for each rank with what it brings."""
    for start, end in _ranges(mine.numel(), way.give_limit // mine.itemsize):
        counts = [0 if outputs is None else end - start] * way.size
        given = way.give(call, _to_one(way, root, mine[start:end]), counts)
        for output, theirs in zip(outputs or (), given, strict=outputs is not None):
            output[start:end].copy_(theirs)


def scatter(
    way: Way, call: Call, output: Tensor, inputs: Sequence[Tensor] | None, root: int
) -> None:
    """Fills the output of each rank with one of the root's inputs."""
    for start, end in _ranges(output.numel(), way.give_limit // output.itemsize):
        parts = [None] * way.size if inputs is None else [part[start:end] for part in inputs]
        given = way.give(call, parts, _only(way, root, end - start))
        output[start:end].copy_(given[root])


def reduce_scatter(
    way: Way, call: Call, output: Tensor, inputs: Sequence[Tensor], op: ReduceOp
) -> None:
    """Reduces the inputs for each rank over all ranks, and fills its output with the result."""
    longest = max(part.numel() for part in inputs)
    for start, end in _ranges(longest, way.give_limit // output.itemsize):
        mine = output[start:end]
        given = way.give(call, [part[start:end] for part in inputs], [mine.numel()] * way.size)
        mine.copy_(given[0])
        for other in given[1:]:
            fold(op, mine, other)
        finish(op, mine, way.size)


def all_to_all(
    way: Way, sizes: Call, call: Call, outputs: Sequence[Tensor], inputs: Sequence[Tensor]
) -> None:
    """Fills an output for each rank with its input for this one. Their sizes may all differ.

    Args:
        sizes: the step in which the ranks learn how much they give each other.
        call: the steps that bring it.

    Raises:
        DistBackendError: on all ranks, if one gives another more or less than that expects.
    """
    numels = [part.numel() for part in (*inputs, *outputs)]
    shown = way.show(sizes, rl.tensor(numels, dtype=sizes.dtype), [2 * way.size] * way.size)
    table = [row.tolist() for row in shown]
    for giver, row in enumerate(table):
        for receiver, count in enumerate(row[: way.size]):
            expected = table[receiver][way.size + giver]
            if count != expected:
                raise disagreeing(giver, receiver, count, expected)
    longest = max(max(row) for row in table)
    for start, end in _ranges(longest, way.give_limit // call.dtype.itemsize):
        pieces = [output[start:end] for output in outputs]
        given = way.give(
            call, [part[start:end] for part in inputs], [piece.numel() for piece in pieces]
        )
        for piece, theirs in zip(pieces, given, strict=True):
            piece.copy_(theirs)
