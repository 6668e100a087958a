"""The way of collectives between processes of one machine: memory that all of them map.

Owns the layout of that memory and the waiting. Each rank has a seat (core/device/meeting.h), a note
that says which collective it is in, and two slots for its bytes, used in turn. A step is: write the
own slot, take the seat, wait for the others, read their slots. What a rank reads it may read until
its next step: a slot is written again two steps later, when all have come to the step between.

A rank locks its byte of the file. The kernel drops the lock when the process ends, however it does,
and so the others see that it is gone.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Sequence

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.distributed.calls import Call, differing
from rushlight.distributed.errors import DistBackendError, DistNetworkError
from rushlight.distributed.store import Store

__all__ = ["Arena", "host_id"]

_LINE = 64  # bytes of a seat, and what everything is aligned to
_NOTICE = 4096  # bytes at the start: why the group gave up
_NOTE = Call.SIZE
_MOST = 1 << 21  # bytes of a slot: both slots of a few ranks fit the cache that the cores share
_ALL = 1 << 25  # bytes of all slots of many ranks
_SMALL = 1 << 14  # bytes: up to here, all ranks reducing everything is faster than a second step
_AWAKE = 50e-6  # seconds: falling asleep and being woken costs about as much
_LOOK = 0.1  # seconds between looks at the others' health
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, len, pid


def host_id() -> str:
    """Returns what processes have in common that can map each other's memory."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')} {os.getuid()}"
    except OSError:  # hidden by a sandbox
        return f"alone {os.urandom(16).hex()}"


def _place(giver: int, receiver: int) -> int:
    """Which part of its slot a rank gives to another; there is none for itself."""
    return receiver - (receiver > giver)


class Arena:
    """The memory of a group, as one rank sees it.

    Args:
        file: the open file of that memory, which the arena closes.
        rank: of this process in the group.
        size: the number of ranks.
    """

    small = _SMALL

    def __init__(self, file: int, rank: int, size: int) -> None:
        self._file = file
        self.rank = rank
        self.size = size
        self._memory = mmap.mmap(file, self.bytes_of(size))
        self._bytes = memoryview(self._memory)
        whole = rl.frombuffer(self._bytes, dtype=rl.uint8)
        self._seats = whole[_NOTICE : _NOTICE + size * _LINE]
        self._notes = [_NOTICE + size * (_LINE + turn * _NOTE) for turn in range(2)]
        self._slots = {rl.uint8: self._slots_of(whole[self._start(size) :])}
        self._meeting = 0
        self.show_limit = self._slot(size)
        self.give_limit = self.show_limit // max(size - 1, 1) // _LINE * _LINE
        # Who waits awake keeps a core from those it waits for, if there are not enough.
        self._awake = _AWAKE if size <= len(os.sched_getaffinity(0)) else 0.0
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, rank)

    @staticmethod
    def _start(size: int) -> int:
        """Where the slots begin."""
        return (_NOTICE + size * (_LINE + 2 * _NOTE) + _LINE - 1) // _LINE * _LINE

    @staticmethod
    def _slot(size: int) -> int:
        """The bytes of a slot: at least a line for each receiver."""
        return max(min(_MOST, _ALL // (2 * size)) // _LINE, size) * _LINE

    @classmethod
    def bytes_of(cls, size: int) -> int:
        """Returns how much memory an arena of `size` ranks takes."""
        return cls._start(size) + 2 * size * cls._slot(size)

    @classmethod
    def open(cls, store: Store, rank: int, size: int) -> Arena | None:
        """Makes the arena of a group, all of whose ranks call this; None where they cannot."""
        arena = None
        try:
            if rank == 0:
                file = os.memfd_create("rushlight-arena")
                os.posix_fallocate(file, 0, cls.bytes_of(size))
                arena = cls(file, rank, size)
                store.set("arena", f"/proc/{os.getpid()}/fd/{file}")
            else:
                path = store.get("arena").decode()
                arena = cls(os.open(path, os.O_RDWR | os.O_CLOEXEC), rank, size)
        except OSError:
            pass  # no memory, or another user's process
        if rank == 0 and arena is None:
            store.set("arena", "/nowhere")
        store.set(f"mapped/{rank}", b"1" if arena is not None else b"0")
        mapped = store.multi_get([f"mapped/{other}" for other in range(size)])
        if all(flag == b"1" for flag in mapped):
            return arena
        if arena is not None:
            arena.close()
        return None

    def show(self, call: Call, mine: Tensor | None, counts: Sequence[int]) -> list[Tensor]:
        """Shows the others a flat tensor, and returns theirs.

        Args:
            call: the collective that this is a step of.
            mine: at most `show_limit` bytes.
            counts: how many elements each rank shows.

        Returns:
            What each rank shows, to be read until the next step.
        """
        turn = (self._meeting + 1) & 1
        slots = self._typed(call.dtype)[turn]
        if mine is not None:
            slots[self.rank][: mine.numel()].copy_(mine)
        self._meet(call, turn)
        return [slot[:count] for slot, count in zip(slots, counts, strict=True)]

    def give(
        self, call: Call, parts: Sequence[Tensor | None], counts: Sequence[int]
    ) -> list[Tensor]:
        """Gives each of the others a flat tensor of its own, and returns what they give.

        Args:
            call: the collective that this is a step of.
            parts: by receiver, at most `give_limit` bytes each.
            counts: how many elements each rank gives to this one.

        Returns:
            What each rank gives, to be read until the next step; the own part as it is.
        """
        turn = (self._meeting + 1) & 1
        slots = self._typed(call.dtype)[turn]
        step = self.give_limit // call.dtype.itemsize
        mine = slots[self.rank]
        for receiver, tensor in enumerate(parts):
            if tensor is not None and receiver != self.rank:
                start = step * _place(self.rank, receiver)
                mine[start : start + tensor.numel()].copy_(tensor)
        self._meet(call, turn)
        got = []
        for giver, (slot, count) in enumerate(zip(slots, counts, strict=True)):
            start = step * _place(giver, self.rank)
            got.append(slot[start : start + count])
        own = parts[self.rank]
        if own is not None:
            got[self.rank] = own
        return got

    def is_alive(self, rank: int) -> bool:
        """Returns whether the process of another rank runs and has not closed the group."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, rank, 1, 0)
        return _FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK

    def give_up(self, reason: str) -> None:
        """Tells the others that this rank will not come any more."""
        if self._file >= 0 and not self._bytes[0]:
            text = reason.encode()[: _NOTICE - 8]
            self._bytes[8 : 8 + len(text)] = text
            self._bytes[1:8] = struct.pack("<HI", self.rank, len(text)) + b"\0"
            self._bytes[0] = 1

    def close(self) -> None:
        """Leaves the group. The memory goes when the last tensor on it does."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    __del__ = close

    def _slots_of(self, slots: Tensor) -> list[list[Tensor]]:
        """The slots by turn and rank."""
        return [list(of_turn) for of_turn in slots.view(2, self.size, -1)]

    def _typed(self, dtype: rl.dtype) -> list[list[Tensor]]:
        """The slots as tensors of a dtype."""
        if dtype not in self._slots:
            self._slots[dtype] = [
                [slot.view(dtype) for slot in slots] for slots in self._slots[rl.uint8]
            ]
        return self._slots[dtype]

    def _meet(self, call: Call, turn: int) -> None:
        """Waits until all ranks have come to this step, and sees that it is the same for all."""
        note, notes = call.note, self._notes[turn]
        start = notes + self.rank * _NOTE
        self._bytes[start : start + _NOTE] = note
        self._meeting = meeting = (self._meeting + 1) & 0xFFFFFFFF
        late = _C._meet(self._seats, self.rank, meeting, self._awake, _LOOK)
        if late >= 0:
            self._wait(call, meeting, late)
        if self._bytes[0]:
            self._check_notice(call)
        everyone = self._bytes[notes : notes + self.size * _NOTE]
        if everyone != note * self.size:
            starts = range(0, len(everyone), _NOTE)
            raise differing({rank: bytes(everyone[i : i + _NOTE]) for rank, i in enumerate(starts)})

    def _wait(self, call: Call, meeting: int, late: int) -> None:
        """Waits on for a rank that is late, and others, until somebody is missed for good."""
        end = time.monotonic() + call.timeout - _LOOK
        while late >= 0:
            # Who comes and then ends has taken its seat: look whether it is alive first.
            is_gone = not self.is_alive(late)
            missing = _C._meet(self._seats, self.rank, meeting, 0.0, 0.0 if is_gone else _LOOK)
            if missing < 0:
                return
            self._check_notice(call)
            if missing == late and is_gone:
                raise DistNetworkError(
                    f"{call}: rank {late} has ended, or left the group, while rank {self.rank} "
                    "waited for it. See its output for the reason."
                )
            if time.monotonic() >= end:
                raise DistBackendError(
                    f"{call}: timed out after {call.timeout:g} s at rank {self.rank}, which waited "
                    f"for rank {missing}. All ranks must make the same calls; a longer timeout can "
                    "be given to init_process_group."
                )
            late = missing

    def _check_notice(self, call: Call) -> None:
        """Raises if a rank, this one perhaps, gave up."""
        if self._bytes[0]:
            rank, size = struct.unpack("<HI", self._bytes[1:7])
            reason = bytes(self._bytes[8 : 8 + size]).decode(errors="replace")
            raise DistBackendError(f"{call}: rank {rank} gave up: {reason}")
