"""The way of collectives between machines: each step is a message from every rank to every other.

Owns a connection to each rank of the group, and the exchange over all at once, by the thread that
waits for it. Reducing parts and showing them costs each rank as many bytes as a ring does, in
two steps instead of 2 (N - 1). A message carries its call's note, which the receiver compares with
its own before it takes the rest.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.calls import Call, differing
from rushlight.distributed.errors import DistBackendError, DistNetworkError
from rushlight.distributed.mesh import Mesh, channel_of

__all__ = ["Wire"]

_HEADER = struct.Struct(f"<Q{Call.SIZE}s")  # number of bytes, note
_GIVEN_UP = b"\xff" * Call.SIZE  # the note of a rank's last message, the reason
_LAST = 4096  # bytes of a reason at most
_ENDED = select.POLLRDHUP
_LOOK = 0.2  # seconds between looks at what other threads did


class Wire:
    """The connections of a group, as one rank uses them.

    Args:
        mesh: the connections of the job.
        ranks: the numbers of the group's ranks in the mesh.
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
        self.give_limit = max(self.show_limit // self.size, 1 << 16)
        self._broken = ""
        channel = channel_of(group_name, "collectives")
        self._connections: dict[int, socket.socket] = {}
        for other in range(self.size):
            if other != rank:
                connection = mesh.own_connection(ranks[other], channel, timeout)
                connection.setblocking(False)
                self._connections[other] = connection
        self._flows: list[_Flow] = []  # of the step that goes on, or failed

    def show(self, call: Call, mine: Tensor | None, counts: Sequence[int]) -> list[Tensor]:
        """Shows the others a flat tensor, and returns theirs; see Arena.show."""
        return self.give(call, [mine] * self.size, counts)

    def give(
        self, call: Call, parts: Sequence[Tensor | None], counts: Sequence[int]
    ) -> list[Tensor]:
        """Gives each of the others a flat tensor, and returns what they give; see Arena.give."""
        self._check()
        own = parts[self.rank]
        given = [own if own is not None else rl.empty(0, dtype=call.dtype)] * self.size
        flows = []
        for rank, connection in self._connections.items():
            flow = _Flow(call, connection, self.rank, rank)
            part, count = parts[rank], counts[rank]
            if part is not None and part.numel():
                flow.sends(part)
            if count:
                given[rank] = rl.empty(count, dtype=call.dtype)
                flow.receives(given[rank])
            flows.append(flow)
        self._exchange(call, flows)
        return given

    def _exchange(self, call: Call, flows: list[_Flow]) -> None:
        """Sends and receives all that a step's flows have."""
        self._flows = flows
        end = time.monotonic() + call.timeout
        waiting = select.poll()
        open_flows = {}
        for flow in flows:
            flow.send()
            if flow.events():
                open_flows[flow.connection.fileno()] = flow
                waiting.register(flow.connection, flow.events() | _ENDED)
        while open_flows:
            rest = end - time.monotonic()
            if rest <= 0:
                late = min(flow.rank for flow in open_flows.values())
                raise DistBackendError(
                    f"{call}: timed out after {call.timeout:g} s at rank {self.rank}, which waited "
                    f"for rank {late}. All ranks must make the same calls; a longer timeout can be "
                    "given to init_process_group."
                )
            self._check()  # another thread may have given up
            for descriptor, events in waiting.poll(1000 * min(rest, _LOOK)):
                flow = open_flows[descriptor]
                if events & select.POLLOUT:
                    flow.send()
                if events & ~select.POLLOUT:
                    flow.receive()
                if flow.events():
                    waiting.modify(descriptor, flow.events() | _ENDED)
                else:
                    waiting.unregister(descriptor)
                    del open_flows[descriptor]
        self._flows = []

    def _check(self) -> None:
        if self._broken:
            raise DistBackendError(self._broken)

    def is_alive(self, rank: int) -> bool:
        """Returns False if the process of another rank has ended, or left the group."""
        try:
            return self._connections[rank].recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except (OSError, KeyError):
            return rank == self.rank

    def give_up(self, reason: str) -> None:
        """Tells the others that this rank will not come any more."""
        if self._broken:
            return
        self._broken = f"rank {self.rank} gave up: {reason}"
        text = reason.encode()[:_LAST]
        inside = {flow.rank for flow in self._flows if flow.is_inside()}
        for rank, connection in self._connections.items():
            with contextlib.suppress(OSError):  # it may have ended, or take nothing more
                if rank not in inside:
                    connection.sendmsg([_HEADER.pack(len(text), _GIVEN_UP), text])
                connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Leaves the group."""
        self._broken = self._broken or "the group was destroyed"
        for connection in self._connections.values():
            connection.close()


class _Flow:
    """What goes both ways over one connection in a step.

    Args:
        call: the step.
        connection: to the other rank, which does not block.
        mine: this rank, for messages.
        rank: the other one.
    """

    def __init__(self, call: Call, connection: socket.socket, mine: int, rank: int) -> None:
        self.connection = connection
        self.rank = rank
        self._call = call
        self._mine = mine
        self._out: list[memoryview] = []
        self._out_size = 0
        self._into: memoryview | None = None  # what is filled next
        self._header = bytearray(_HEADER.size)
        self._has_header = False
        self._payload: memoryview | None = None
        self._reason: bytearray | None = None

    def sends(self, part: Tensor) -> None:
        """Has a tensor sent."""
        header = memoryview(_HEADER.pack(part.nbytes, self._call.note))
        self._out = [header, memoryview(part.view(rl.uint8))]
        self._out_size = _HEADER.size + part.nbytes

    def receives(self, tensor: Tensor) -> None:
        """Has a tensor received."""
        self._payload = memoryview(tensor.view(rl.uint8))
        self._into = memoryview(self._header)

    def events(self) -> int:
        """Returns what it waits for; 0 when all is done."""
        return (select.POLLOUT if self._out else 0) | (select.POLLIN if self._into else 0)

    def is_inside(self) -> bool:
        """Returns whether a message was sent in part."""
        return bool(self._out) and sum(map(len, self._out)) < self._out_size

    def send(self) -> None:
        """Sends as much as the network takes."""
        try:
            while self._out:
                count = self.connection.sendmsg(self._out)
                while self._out and count >= len(self._out[0]):
                    count -= len(self._out.pop(0))
                if self._out:
                    self._out[0] = self._out[0][count:]
        except BlockingIOError:
            pass
        except OSError:
            self._out = []
            self.receive()  # what came last says why

    def receive(self) -> None:
        """Takes what has come; something that should not come says why the other has ended."""
        if self._into is None:
            self._into = memoryview(self._header)
        try:
            while self._into:
                count = self.connection.recv_into(self._into)
                if count == 0:
                    raise ConnectionResetError
                self._into = self._into[count:]
                if not self._into:
                    self._into = self._next()
        except BlockingIOError:
            pass
        except OSError:
            raise DistNetworkError(
                f"{self._call}: rank {self.rank} has ended, or left the group, while rank "
                f"{self._mine} waited for it. See its output for the reason."
            ) from None

    def _next(self) -> memoryview | None:
        """What is filled after what was filled last: the header comes before all else."""
        if self._reason is not None:
            text = self._reason.decode(errors="replace")
            raise DistBackendError(f"{self._call}: rank {self.rank} gave up: {text}")
        if self._has_header:
            return None
        self._has_header = True
        size, note = _HEADER.unpack(self._header)
        if note == _GIVEN_UP:
            self._reason = bytearray(min(size, _LAST))
            return memoryview(self._reason)
        if note != self._call.note:
            notes = {self._mine: self._call.note, self.rank: note}
            raise DistBackendError(str(differing(dict(sorted(notes.items())))))
        if self._payload is None or size != len(self._payload):
            raise DistBackendError(
                f"{self._call}: rank {self.rank} sent {size} bytes that were not expected."
            )
        return self._payload
