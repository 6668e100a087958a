"""What a rank is doing in a collective, in a form that ranks compare.

Each step of a collective carries this note. Ranks that are not in the same collective, or give it
tensors that do not fit together, learn it from the notes of the others before any data is mixed.
"""

from __future__ import annotations

import struct

import rushlight as rl
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.reduction import ReduceOp

__all__ = ["DTYPES", "DTYPE_NUMBERS", "Call", "DifferentCalls", "differing", "disagreeing"]

_NAMES = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
)
DTYPES = (
    rl.bool,
    rl.uint8,
    rl.uint16,
    rl.uint32,
    rl.uint64,
    rl.int8,
    rl.int16,
    rl.int32,
    rl.int64,
    rl.float16,
    rl.bfloat16,
    rl.float32,
    rl.float64,
    rl.complex64,
    rl.complex128,
)
_NUMBERS = {name: i for i, name in enumerate(_NAMES)}
DTYPE_NUMBERS = {dtype: i for i, dtype in enumerate(DTYPES)}
_NOTE = struct.Struct("<IBBBxiiQ8x")


class DifferentCalls(DistBackendError):
    """That all ranks found, before any data moved, that their calls do not fit together."""


class Call:
    """One collective.

    Args:
        name: of the collective.
        number: how many the group had before.
        dtype: of the elements.
        count: of elements that each rank contributes; 0 if they differ.
        timeout: seconds that a rank waits for another.
        op: the reduction.
        root: the rank that gives or gets all, -1 if none does.
    """

    SIZE = _NOTE.size

    __slots__ = ("dtype", "name", "note", "timeout")

    def __init__(
        self,
        name: str,
        number: int,
        dtype: rl.dtype,
        count: int,
        timeout: float,
        op: ReduceOp = ReduceOp.UNUSED,
        root: int = -1,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.timeout = timeout
        self.note = _NOTE.pack(
            number & 0xFFFFFFFF, _NUMBERS[name], DTYPE_NUMBERS[dtype], op, root, 0, count
        )

    def __str__(self) -> str:
        return self.name


def _described(note: bytes) -> str:
    number, name, dtype, op, root, _, count = _NOTE.unpack(note)
    text = f"{_NAMES[name]} (call {number}"
    if _NAMES[name] != "barrier":
        text += f", {count} elements" if count else ""
        text += f" of {DTYPES[dtype]}"
    if op != ReduceOp.UNUSED:
        text += f", ReduceOp.{ReduceOp(op).name}"
    if root >= 0:
        text += f", root {root}"
    return text + ")"


def differing(notes: dict[int, bytes]) -> DifferentCalls:
    """Returns the error of ranks whose notes are not all the same."""
    (first, note), *others = notes.items()
    rank, other = next((rank, other) for rank, other in others if other != note)
    return DifferentCalls(
        f"rank {first} calls {_described(note)}, but rank {rank} calls {_described(other)}. All "
        "ranks of a group must make the same calls in the same order, with tensors of the same "
        "dtype and number of elements."
    )


def disagreeing(giver: int, receiver: int, count: int, expected: int) -> DifferentCalls:
    """Returns the error of an all_to_all where one rank gives another what that does not expect."""
    return DifferentCalls(
        f"all_to_all: rank {giver} gives rank {receiver} {count} elements, but that expects "
        f"{expected}. The input split i of rank j must be as long as the output split j of rank i."
    )
