"""The way of collectives between machines: each step is a message from every rank to every other.

Reducing parts and showing them costs each rank as many bytes as a ring does, in two steps instead
of 2 (N - 1). A message carries its call's note, which the receiver compares with its own.
"""

from __future__ import annotations

import hashlib

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.calls import Call, differing
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.mesh import Mesh, Receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Wire", "channel_of"]


def channel_of(group_name: str, purpose: str) -> int:
    """Returns the number that messages of a group carry."""
    name = f"{group_name} {purpose}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little")


class Wire:
    """The connections of a group, as one rank uses them.

    Args:
        mesh: the connections of the job.
        ranks: the group's ranks in the job.
        rank: of this process in the group.
        group_name: the same for all of them.
        timeout: seconds that connecting may take.
    """

    small = 1 << 14
    show_limit = 1 << 22

    def __init__(
        self, mesh: Mesh, ranks: list[int], rank: int, group_name: str, timeout: float
    ) -> None:
        self.rank = rank
        self.size = len(ranks)
        self.give_limit = max(1 << 22 // self.size, 1 << 16)
        self._mesh = mesh
        self._ranks = ranks
        self._channel = channel_of(group_name, "collectives")
        self._step = 0
        # All at once, so that the end of any process is seen by all.
        for other in ranks:
            if other != mesh.rank:
                mesh.connect(other, timeout)

    def show(self, call: Call, mine: Tensor | None, counts: Sequence[int]) -> list[Tensor]:
        """Shows the others a flat tensor, and returns theirs; see Arena.show."""
        return self.give(call, [mine] * self.size, counts)

    def give(
        self, call: Call, parts: Sequence[Tensor | None], counts: Sequence[int]
    ) -> list[Tensor]:
        """Gives each of the others a flat tensor, and returns what they give; see Arena.give."""
        self._mesh.check(self._channel)
        self._step += 1
        own = parts[self.rank]
        given = [own if own is not None else rl.empty(0, dtype=call.dtype)] * self.size
        receipts = []
        for rank, count in enumerate(counts):
            if count and rank != self.rank:
                given[rank] = rl.empty(count, dtype=call.dtype)
                receipts.append(self._mesh.receive(self._receipt(call, rank, given[rank])))
        for distance in range(1, self.size):  # so that not all begin with the same rank
            rank = (self.rank + distance) % self.size
            part = parts[rank]
            if part is not None and part.numel():
                to = self._ranks[rank]
                self._mesh.send(to, self._channel, self._step, call.note, part, call.timeout)
        for receipt in receipts:
            receipt.wait()
        return given

    def _receipt(self, call: Call, rank: int, into: Tensor) -> Receipt:
        def check(sender: int, note: bytes, size: int) -> None:
            if note != call.note:
                error = differing(dict(sorted({self.rank: call.note, rank: note}.items())))
                raise DistBackendError(str(error))
            if size != into.nbytes:
                raise DistBackendError(
                    f"{call}: rank {rank} sent {size} bytes, but {into.nbytes} were expected."
                )

        source = self._ranks[rank]
        return Receipt(into, source, self._channel, self._step, check, call.timeout)

    def give_up(self, reason: str) -> None:
        """Tells the others that this rank will not come any more."""
        self._mesh.give_up(self._ranks, self._channel, reason)

    def close(self) -> None:
        """Leaves the connections to the job's other groups."""
