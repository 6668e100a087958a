"""The GPUs of a group's ranks, joined by NCCL: who is joined, the order of the work, its failures.

Owns a stream beside those of the program for each communicator. A collective waits there for what
the caller's stream has done, and the caller's stream waits for it, now or in Work.wait; the CPU
waits for neither. A thread watches: when a rank has ended or is late, it gives the work up, so that
nothing hangs, and whoever waits for the GPU next is told.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, cuda
from rushlight.distributed.errors import DistBackendError, DistStoreError
from rushlight.distributed.process_group import BuiltinGroup
from rushlight.distributed.store import PrefixStore, Store, seconds_of
from rushlight.distributed.work import Work
from rushlight.futures import Future

# Queues work on a communicator, and returns pairs of tensors: what is copied to, and from,
# when it is done.
Start = Callable[[Any], "list[tuple[Tensor, Tensor]]"]
_Pending = tuple[str, float, cuda.Event]  # a name, when it was queued, and its end

__all__ = ["Clique", "Cliques", "NcclWork", "grouped"]

_LOOK = 0.25  # seconds between looks at what is pending
_PATIENCE = 10.0  # seconds for NCCL to end a communicator
WITHOUT = "without NCCL"  # in a group's store: which rank has none, and why


@contextlib.contextmanager
def grouped() -> Generator[None, None, None]:
    """Has NCCL do together what is called in the scope."""
    _C._nccl_begin_group()
    try:
        yield
    finally:
        _C._nccl_end_group()


class Clique:
    """One GPU of each of some ranks, and the work that they do together.

    Args:
        group: the group that the ranks are in.
        members: their ranks in the group.
        device: the number of this rank's GPU.
        name: the same for all of them, and never used before in the group.

    Raises:
        DistError: if others do not come in time or have ended, or NCCL cannot join the GPUs.
    """

    def __init__(self, group: BuiltinGroup, members: Sequence[int], device: int, name: str) -> None:
        self.device = device
        self.members = list(members)
        self._group = weakref.ref(group)
        self._order = threading.Lock()  # of the calls
        self._looking = threading.Lock()
        self._pending: collections.deque[_Pending] = collections.deque()
        self._calling: tuple[str, float] | None = None  # what is being queued, and since when
        self._error: str | None = None
        self._is_captured = False
        self._others = [member for member in self.members if member != group.rank()]
        rank = self.members.index(group.rank())
        identity = self._meet(group, name, rank)
        self.stream = cuda.Stream(device, priority=-1)
        self._comm = self._join(identity, rank)
        _watch(self)

    @property
    def _timeout(self) -> float:
        """Seconds that a rank waits for another."""
        group = self._group()
        return 0.0 if group is None else group.timeout.total_seconds()

    def _meet(self, group: BuiltinGroup, name: str, rank: int) -> bytes:
        """Waits for the others in the store, where nothing can hang; returns NCCL's name for us."""
        store = PrefixStore(f"nccl {name}", group.store)
        if rank == 0:
            try:
                store.set("id", _C._nccl_make_id())
            except RuntimeError as error:
                store.set("id", str(error))
        store.set(f"here/{rank}", b"")
        here = [f"here/{other}" for other in range(len(self.members))]
        problem = self._wait_for(group, store, here)
        # One word decides for all, as nothing ends the wait of those who go on alone.
        verdict = store.compare_set("verdict", "", problem or "go").decode()
        if verdict != "go":
            raise DistBackendError(verdict)
        identity = store.get("id")
        if len(identity) != 128:
            raise DistBackendError(identity.decode())
        return identity

    def _join(self, identity: bytes, rank: int) -> Any:
        """Makes the communicator, which waits for all members inside of NCCL."""
        made: list[Any] = []

        def make() -> None:
            try:
                made.append(_C._NcclCommunicator(identity, len(self.members), rank, self.device))
            except RuntimeError as error:
                made.append(error)

        _aside(make).join(self._timeout)
        result = made[0] if made else f"NCCL did not join the ranks in {self._timeout:g} s."
        if not isinstance(result, str | RuntimeError):
            return result
        hint = " Choose a GPU for each rank, by torch.cuda.set_device or the tensors' device."
        is_shared = "Duplicate GPU" in str(result)
        raise DistBackendError(f"cuda:{self.device}: {result}{hint if is_shared else ''}")

    def _wait_for(self, group: BuiltinGroup, store: Store, here: list[str]) -> str:
        """Waits until all members have set their keys; returns what is wrong, or ""."""
        end = time.monotonic() + self._timeout
        while True:
            rest = end - time.monotonic()
            with contextlib.suppress(DistStoreError):
                store.wait(here, timedelta(seconds=min(1.0, max(0.0, rest))))
                return ""
            if group.store.check([WITHOUT]):
                problem = group.store.get(WITHOUT).decode()
                group.way.give_up(problem)  # which is where that rank waits
                return problem
            missing = [
                member
                for member, key in zip(self.members, here, strict=True)
                if not store.check([key])
            ]
            for member in missing:
                if not group.is_alive(member):
                    return f"rank {group.ranks[member]} has ended."
            if rest <= 0 and missing:
                names = ", ".join(str(group.ranks[member]) for member in missing)
                return (
                    f"NCCL: timed out after {self._timeout:g} s waiting for ranks {names}. All of "
                    f"{[group.ranks[member] for member in self.members]} must call the first "
                    "collective, or send and recv between two ranks."
                )

    def run(
        self,
        name: str,
        start: Start,
        tensors: Sequence[Tensor],
        results: list[Tensor],
        async_op: bool,
        blocks: bool = False,
    ) -> NcclWork | None:
        """Queues work after what the current stream has done.

        Args:
            name: of the collective, for errors.
            start: queues it on the current stream, which is the clique's then.
            tensors: all that it uses.
            results: those that it fills, for Work.result.
            async_op: whether to return the work, instead of having the current stream wait for it.
            blocks: whether the CPU waits in the work's wait().
        """
        self.check()
        current = cuda.current_stream(self.device)
        with self._order, cuda.stream(self.stream), rl.no_grad():
            self.stream.wait_stream(current)
            self._calling = name, time.monotonic()
            try:
                for target, source in start(self._comm):
                    target.copy_(source)
            except cuda.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self.fail(f"{name}: {error}")
                self.check()
            finally:
                self._calling = None
            end = self.stream.record_event()
            if cuda.is_current_stream_capturing():
                self._is_captured = True
            else:
                self._pending.append((name, time.monotonic(), end))
        if not async_op:
            current.wait_event(end)
            self.check()
            return None
        for tensor in tensors:
            tensor.record_stream(self.stream)
        return NcclWork(self, name, results, end, blocks)

    def check(self) -> None:
        """Raises what went wrong, if anything did."""
        if self._error is not None:
            raise DistBackendError(self._error)

    @property
    def error(self) -> str | None:
        """What went wrong, or None."""
        return self._error

    def fail(self, text: str) -> None:
        """Gives everything up: what is queued, and what waits for other ranks in this process."""
        if self._error is not None:
            return
        self._error = text
        if self._pending:
            _C._cuda_report(text)
        self._pending.clear()
        _aside(self._comm.abort)

    def look(self) -> None:
        """Forgets work that is done, and fails if something is wrong or late."""
        with self._looking:
            try:
                while self._pending and self._pending[0][2].query():
                    self._pending.popleft()
                oldest = self._calling or next(iter(self._pending), None)
                if oldest is None:
                    return
                name, began, *_ = oldest
                problem = self._comm.error()
            except RuntimeError as error:  # the GPU failed
                self.fail(str(error))
                return
            group = self._group()
            dead = group and next(filter(group.has_died, self._others), None)
            if group and dead is not None:
                self.fail(f"{name}: rank {group.ranks[dead]} has ended.")
            elif problem:
                self.fail(f"{name}: NCCL error: {problem}.")
            elif time.monotonic() - began > self._timeout:
                self.fail(
                    f"{name}: timed out after {self._timeout:g} s. Another rank is late, has ended "
                    "or called something else."
                )

    def close(self) -> None:
        """Ends it after what is queued; all members do."""
        while self._pending and self._error is None:
            self.look()
            time.sleep(0.0005)
        group = self._group()
        with _lock:
            _cliques.discard(self)
        # NCCL waits for the end of graphs that use a communicator: it stays then.
        if self._error is None and not self._is_captured:
            is_whole = group is not None and all(map(group.is_alive, self._others))
            _aside(self._comm.destroy if is_whole else self._comm.abort).join(_PATIENCE)
        self._error = self._error or "the group was destroyed."


def _aside(function: Callable[[], None]) -> threading.Thread:
    """Begins what NCCL may never finish, in a thread that holds nobody up."""

    def run() -> None:
        with contextlib.suppress(RuntimeError):
            function()

    thread = threading.Thread(target=run, name="NCCL end", daemon=True)
    thread.start()
    return thread


class Cliques:
    """The cliques of a group, which are made when they are needed, in the same order everywhere.

    Args:
        group: the group.
        device: the GPU that barriers use; None for the one used first.
    """

    def __init__(self, group: BuiltinGroup, device: int | None) -> None:
        self._group = weakref.ref(group)
        self._device = device
        self._made: dict[tuple[int, int | None], Clique] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        self._is_closed = False
        self._lock = threading.Lock()

    def whole(self, device: int) -> Clique:
        """Returns the clique of all ranks, of which this one uses a GPU."""
        group = self._group()
        assert group is not None
        return self._find(group, device, None, range(group.size()))

    def pair(self, device: int, peer: int) -> Clique:
        """Returns the clique of this rank and another one of the group, for messages."""
        group = self._group()
        assert group is not None
        return self._find(group, device, peer, sorted((group.rank(), peer)))

    def _find(
        self, group: BuiltinGroup, device: int, peer: int | None, members: Sequence[int]
    ) -> Clique:
        if self._is_closed:
            raise DistBackendError("the group was destroyed or aborted.")
        key = device, peer
        if key not in self._made:
            if cuda.is_current_stream_capturing():
                raise RuntimeError(
                    "the first collective joins the GPUs, which cannot be captured into a CUDA "
                    "graph. Run the work once before."
                )
            with self._lock:
                if key not in self._made:
                    name = "all" if peer is None else "-".join(map(str, members))
                    self._counts[name] += 1
                    self._made[key] = Clique(group, members, device, f"{name} {self._counts[name]}")
        return self._made[key]

    @property
    def device(self) -> int:
        """The GPU for what belongs to no tensor: a bound one, one in use, or one by the rank."""
        if self._device is not None:
            return self._device
        for device, _ in self._made:
            return device
        group = self._group()
        assert group is not None
        return group.ranks[group.rank()] % max(cuda.device_count(), 1)

    def abort(self) -> None:
        """Gives everything up."""
        for clique in self._made.values():
            clique.fail("the group was aborted.")

    def close(self) -> None:
        """Ends all cliques after what is queued."""
        for clique in self._made.values():
            clique.close()
        self._made.clear()
        self._is_closed = True


class QueuedResult(Future):
    """A result that is there when a stream comes to the end of what is queued now.

    Whoever waits for it has the current stream wait, not the CPU; what `then` calls is queued on
    the result's stream.
    """

    def __init__(self, stream: cuda.Stream) -> None:
        super().__init__()
        self._stream = stream
        self._event: cuda.Event | None = None

    def _finish(self, value: Any, error: BaseException | None) -> None:
        self._event = self._stream.record_event()
        super()._finish(value, error)

    def wait(self) -> Any:
        value = super().wait()
        assert self._event is not None
        current = cuda.current_stream(self._stream.device_index)
        current.wait_event(self._event)
        for tensor in value if isinstance(value, list | tuple) else [value]:
            if isinstance(tensor, Tensor) and tensor.is_cuda:
                tensor.record_stream(current)
        return value

    def then(self, callback: Callable[[Future], Any]) -> Future:
        following = QueuedResult(self._stream)

        def follow(future: Future) -> None:
            with cuda.stream(self._stream):
                try:
                    following.set_result(callback(future))
                except Exception as error:
                    following.set_exception(error)

        self.add_done_callback(follow)
        return following


class NcclWork(Work):
    """A collective that is queued on a GPU.

    Args:
        clique: what it belongs to.
        name: of the collective.
        results: the tensors that it fills.
        event: its end.
        blocks: whether the CPU waits in wait().
    """

    def __init__(
        self,
        clique: Clique,
        name: str,
        results: list[Tensor],
        event: cuda.Event,
        blocks: bool,
    ) -> None:
        super().__init__(results)
        self.name = name
        self.event = event
        self._clique = clique
        self._blocks = blocks
        self.set_result(results)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Has the current stream wait for the end and returns True; see Work.wait.

        Args:
            timeout: has the CPU wait, at most so long.

        Raises:
            DistBackendError: if it failed, or takes longer than `timeout`.
        """
        self._clique.check()
        if timeout is not None or self._blocks:
            self._wait_here(None if timeout is None else seconds_of(timeout))
        self.event.wait(cuda.current_stream(self._clique.device))
        return True

    def _wait_here(self, seconds: float | None) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while not self.event.query():
            self._clique.check()
            if end is not None and time.monotonic() > end:
                raise DistBackendError(
                    f"Work.wait: {self.name} did not end within {seconds:g} s on the GPU."
                )
            time.sleep(0.0002)
        self._clique.check()

    def synchronize(self) -> None:
        """Has the current stream wait for the end."""
        self.wait()

    def is_completed(self) -> bool:
        """Returns whether the GPU has done it, well or not."""
        return self._clique.error is not None or self.event.query()

    def is_success(self) -> bool:
        """Returns whether the GPU has done it well."""
        return self._clique.error is None and self.event.query()

    def exception(self) -> BaseException | None:
        """Returns what went wrong."""
        error = self._clique.error
        return None if error is None else DistBackendError(error)

    def get_future(self) -> Future:
        """Returns the future of the results, for then(), whose callback runs beside the program."""
        queued = QueuedResult(self._clique.stream)
        queued.set_result(self._results)
        return queued

    def then(self, callback: Callable[[Future], Any]) -> Future:
        return self.get_future().then(callback)


# The thread that watches

_cliques: weakref.WeakSet[Clique] = weakref.WeakSet()
_lock = threading.Lock()
_end = threading.Event()
_thread: threading.Thread | None = None


def _watch(clique: Clique) -> None:
    global _thread
    with _lock:
        _cliques.add(clique)
    if _thread is None:
        _thread = threading.Thread(target=_look_on, name="NCCL watch", daemon=True)
        _thread.start()
        atexit.register(_stop)


def _look_on() -> None:
    while not _end.wait(_LOOK):
        with _lock:
            cliques = list(_cliques)
        for clique in cliques:
            clique.look()
        del cliques


def _stop() -> None:
    _end.set()
    if _thread is not None:
        _thread.join(1.0)  # it may be held up by a GPU
