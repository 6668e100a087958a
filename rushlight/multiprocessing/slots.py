"""Memory that two processes share and use again, for the large tensors that a channel carries.

Fresh pages cost several times what a copy costs: 20 MB take 20 ms of processor time in new shared
memory and 4 ms in old. So the sender keeps slots and writes each tensor into a free one. The
receiver makes a tensor on that memory, and when nobody holds it any more, its next message says so.
A forked child keeps the tensors of its parent, so what is lent at that time is not used again.
"""

from __future__ import annotations

import itertools
import mmap
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._copying import is_dense
from rushlight.multiprocessing.reductions import Descriptor

__all__ = ["Borrower", "Lender", "Loan"]

_MOST_LENT = 64  # slots that wait for their return: each holds an open file in both processes
_MOST_FREE = 16  # slots that wait for use; those of the sizes of long ago go first


class Loan(NamedTuple):
    """A tensor in a slot, as it is told to the other process.

    Args:
        number: of the slot.
        file: its memory, when the slot is told of for the first time.
        nbytes, dtype, sizes, strides: of the tensor, which begins where the slot does.
    """

    number: int
    file: Descriptor | None
    nbytes: int
    dtype: rl.dtype
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Lender:
    """The slots of the process that sends."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # messages may be sent and received by two threads
        self._free: dict[int, Tensor] = {}
        self._lent: dict[int, Tensor] = {}
        self._dropped: list[int] = []

    def lend(self, tensor: Tensor) -> Loan | None:
        """Writes a tensor into a free slot, or a new one; None when too many were not returned."""
        nbytes, sizes = tensor.nbytes, tuple(tensor.shape)
        with self._lock:
            if len(self._lent) >= _MOST_LENT:
                return None
            fitting = [n for n in self._free if nbytes <= self._free[n].numel() <= 2 * nbytes]
            if fitting:
                number = min(fitting, key=lambda n: self._free[n].numel())
                memory, file = self._free.pop(number), None
            else:
                number = next(self._numbers)
                memory = rl.empty(nbytes, dtype=rl.uint8).share_memory_()
                file = Descriptor(_C._storage_shared_file(memory), memory)
            self._lent[number] = memory
        flat = memory[:nbytes].view(tensor.dtype)
        strides = tensor.stride() if is_dense(tensor) else flat.view(sizes).stride()
        flat.as_strided(sizes, strides).copy_(tensor)
        return Loan(number, file, nbytes, tensor.dtype, sizes, strides)

    def take_back(self, returned: Iterable[tuple[int, bool]]) -> None:
        """Takes slots back: their numbers, and whether they may be used again."""
        with self._lock:
            for number, is_reusable in returned:
                memory = self._lent.pop(number)
                if is_reusable:
                    self._free[number] = memory
                else:
                    self._dropped.append(number)
            while len(self._free) > _MOST_FREE:
                oldest = next(iter(self._free))
                del self._free[oldest]
                self._dropped.append(oldest)

    def dropped(self) -> list[int]:
        """Returns the slots that are no more, since the last call."""
        with self._lock:
            dropped, self._dropped = self._dropped, []
        return dropped


class Borrower:
    """The slots of the other process, where this one has received tensors."""

    def __init__(self) -> None:
        self._maps: dict[int, mmap.mmap] = {}
        self._held: set[int] = set()
        self._forked: set[int] = set()  # lent when this process was forked
        self._returned: deque[tuple[int, bool]] = deque()

    def tensor(self, loan: Loan) -> Tensor:
        """Returns the tensor in a slot, which is returned when nobody holds that memory."""
        if loan.file is not None:
            self._maps[loan.number] = mmap.mmap(loan.file.number, 0)
        memory = memoryview(self._maps[loan.number])[: loan.nbytes]
        self._held.add(loan.number)
        weakref.finalize(memory, self._give_back, loan.number).atexit = False
        tensor = rl.empty(0, dtype=loan.dtype)
        flat = rl.frombuffer(memory, dtype=loan.dtype)
        _C._set_storage(tensor, flat, 0, loan.sizes, loan.strides)
        return tensor

    def forget(self, dropped: Iterable[int]) -> None:
        """Unmaps slots, as soon as nobody holds their memory."""
        for number in dropped:
            self._maps.pop(number, None)  # it may have been meant for a message that failed

    def returned(self) -> list[tuple[int, bool]]:
        """Returns the slots that came free since the last call, for Lender.take_back."""
        return [self._returned.popleft() for _ in range(len(self._returned))]

    def after_fork(self) -> None:
        """Notes that a child of this process sees all that is lent now."""
        self._forked |= self._held

    def _give_back(self, number: int) -> None:
        self._held.discard(number)
        self._returned.append((number, number not in self._forked))
        self._forked.discard(number)
