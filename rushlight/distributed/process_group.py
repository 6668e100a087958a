"""A group of processes that call the same collectives in the same order.

Owns what all groups have and, of those that are built in, the choice of the way between the
processes, the order of what a process does in the group, and the flat tensors of the CPU that the
algorithms work on. A collective that nobody must wait for runs in a thread; the others run in the
caller's, after those.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.distributed import flat_collectives
from rushlight.distributed.arena import Arena, host_id
from rushlight.distributed.backend import Backend, BackendConfig
from rushlight.distributed.calls import Call, DifferentCalls
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.errors import DistBackendError, DistError
from rushlight.distributed.flat_collectives import Way
from rushlight.distributed.group_calls import GroupCalls
from rushlight.distributed.mesh import Mesh
from rushlight.distributed.reduction import ReduceOp, check_reducible
from rushlight.distributed.store import Store
from rushlight.distributed.work import Work, Worker

if TYPE_CHECKING:
    from rushlight.distributed.coalescing import Coalescing
    from rushlight.distributed.nccl import Cliques

__all__ = ["BuiltinGroup", "ProcessGroup"]

_TRANSPORT = "RUSHLIGHT_TRANSPORT"  # of the environment: "shared_memory", "tcp", or what fits

_groups: weakref.WeakSet[BuiltinGroup] = weakref.WeakSet()


class ProcessGroup(GroupCalls):
    """Some ranks of a job; init_process_group and new_group make them.

    A class of your own that inherits from it, and has methods for the collectives, is a backend
    once Backend.register_backend has given it a name.

    Args:
        rank: of this process in the group.
        size: the number of its processes.
    """

    store: Store
    backend: BackendConfig
    coalescing: Coalescing | None = None  # while its collectives are put together
    group_name = ""
    group_desc = "undefined"
    _timeout = default_pg_timeout.total_seconds()

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._size = size
        self.ranks = list(range(size))

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r}, rank {self.rank()} of {self.size()}>"

    def rank(self) -> int:
        """Returns this process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """Returns the number of processes."""
        return self._size

    def name(self) -> str:
        """Returns the name of the backend."""
        return self.getBackendName()

    def getBackendName(self) -> str:
        """Returns the name of the backend, for a class of your own to define."""
        return Backend.UNDEFINED

    def _get_backend_name(self) -> str:
        return self.name()

    def get_backend(self, device: rl.device) -> ProcessGroup:
        """Returns the group itself, which serves all devices that it has a backend for.

        Raises:
            RuntimeError: for another type of device.
        """
        if device.type not in self.backend.get_device_backend_map():
            raise RuntimeError(f"No backend type associated with device type {device.type}")
        return self

    _get_backend = get_backend

    @property
    def timeout(self) -> timedelta:
        """How long a rank waits for another."""
        return timedelta(seconds=self._timeout)

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long this rank waits for another from now on."""
        self._timeout = timeout.total_seconds()

    def shutdown(self) -> None:
        """Ends what was begun and leaves the group."""

    def abort(self) -> None:
        """Leaves the group at once."""
        self.shutdown()


class BuiltinGroup(ProcessGroup):
    """A group whose ranks meet in shared memory, over TCP, or by NCCL.

    Args:
        store: where its ranks find each other, for this group alone.
        rank: of this process in the group.
        size: the number of its processes.
        timeout: how long a rank waits for another.
        ranks: the ranks in the job, by rank in the group; 0, 1, ... by default.
        group_name: the same in all its processes, and unique in the job.
        group_desc: what it is for.
        mesh: gives the connections of the job, when they are needed.
        backend: of each type of device.
        device: the number of the GPU that is bound to it; None for whichever is used.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta = default_pg_timeout,
        *,
        ranks: Sequence[int] | None = None,
        group_name: str = "",
        group_desc: str = "undefined",
        mesh: Callable[[], Mesh],
        backend: BackendConfig,
        device: int | None = None,
    ) -> None:
        super().__init__(rank, size)
        self._timeout = timeout.total_seconds()
        if ranks is not None:
            self.ranks = list(ranks)
        self.group_name = group_name
        self.group_desc = group_desc
        self.store = store
        self.backend = backend
        self._device = device
        self._pid = os.getpid()
        self._calls = 0
        self._worker = Worker()
        self._order = threading.Lock()
        store.set_timeout(timeout)
        self.mesh = mesh
        self.way: Way = self._shared_memory() or self._wire()
        _groups.add(self)

    def getBackendName(self) -> str:
        """Returns the name of the backend; of the CPU's if there are two."""
        names = self.backend.device_backend_map
        return names.get("cpu") or next(iter(names.values()))

    @functools.cached_property
    def cliques(self) -> Cliques | None:
        """The GPUs of its ranks, if NCCL joins them; without it tensors go through the CPU."""
        if self.backend.device_backend_map.get("cuda") != Backend.NCCL:
            return None
        from rushlight.distributed.nccl import WITHOUT, Cliques

        problem = _C._nccl_problem()
        if problem:
            rank = self.ranks[self._rank]
            self.store.set(WITHOUT, f"rank {rank} has no NCCL, but this one has: {problem}")
            warnings.warn(
                f"tensors on a GPU go through the memory of the CPU, which is slow. {problem} The "
                "backend 'gloo' does so without this warning.",
                stacklevel=5,
            )
            return None
        return Cliques(self, self._device)

    def is_alive(self, rank: int) -> bool:
        """Returns False if it is known that the process of a rank of the group has ended."""
        return self.way.is_alive(rank)

    def has_died(self, rank: int) -> bool:
        """Returns whether it is known that a rank's process ended without leaving the group."""
        return not self.is_alive(rank) and not self.store.check([f"left/{rank}"])

    def _say_goodbye(self) -> None:
        """Tells those who still wait for a GPU that this rank has not died."""
        with contextlib.suppress(DistError, OSError):  # the store may be gone
            self.store.set(f"left/{self._rank}", b"")

    def _shared_memory(self) -> Arena | None:
        """The arena, if all ranks are on this machine and may share memory."""
        wanted = os.environ.get(_TRANSPORT, "")
        if wanted not in ("", "tcp", "shared_memory"):
            raise ValueError(f'{_TRANSPORT}={wanted}: use "shared_memory", "tcp" or nothing.')
        self.store.set(f"host/{self._rank}", f"rank {self._rank}" if wanted == "tcp" else host_id())
        hosts = self.store.multi_get([f"host/{rank}" for rank in range(self._size)])
        is_one = len(set(hosts)) == 1 and wanted != "tcp"
        arena = Arena.open(self.store, self._rank, self._size) if is_one else None
        if arena is None and wanted == "shared_memory":
            raise DistBackendError(
                f"{_TRANSPORT}=shared_memory, but the ranks cannot share memory: they run on "
                "different machines, in different containers or as different users. Leave it unset."
            )
        return arena

    def _wire(self) -> Way:
        """The way over the connections of the job."""
        from rushlight.distributed.wire import Wire

        places = [self.place(rank) for rank in range(self._size)]
        return Wire(self.mesh(), places, self._rank, self.group_name, self._timeout)

    def place(self, rank: int) -> int:
        """Returns the number that a rank of the group has in the mesh, that of the job."""
        return self.ranks[rank]

    def collective(
        self,
        name: str,
        operation: Callable[..., None],
        dtype: rl.dtype,
        count: int,
        args: tuple[object, ...],
        results: list[Tensor],
        async_op: bool = False,
        op: ReduceOp = ReduceOp.UNUSED,
        root: int = -1,
        before: tuple[Call, ...] = (),
        timeout: float | None = None,
    ) -> Work | None:
        """Runs operation(way, *before, call, *args), now or in the group's thread.

        Args:
            name: of the collective, for comparison with the other ranks as the next three are.
            operation: a function of flat_collectives.py, or one that calls it.
            dtype, count, op, root: see Call.
            args: what the operation gets after the call.
            results: the tensors that it fills, for Work.result.
            async_op: whether to return at once.
            before: the calls of steps that come before.
            timeout: seconds, instead of the group's.

        Returns:
            The work, if async_op.
        """
        if op is not ReduceOp.UNUSED:
            check_reducible(name, op, dtype)
        self._calls += 1
        call = Call(
            name, self._calls, dtype, count, self._timeout if timeout is None else timeout, op, root
        )
        if async_op:
            return self._worker.put(lambda: self._run(operation, (*before, call), args), results)
        if not self._worker.is_idle():
            self._worker.put(lambda: self._run(operation, (*before, call), args), results).wait()
        else:
            self._run(operation, (*before, call), args)
        return None

    def call(self, name: str, dtype: rl.dtype, count: int) -> Call:
        """Returns a call for steps before a collective."""
        self._calls += 1
        return Call(name, self._calls, dtype, count, self._timeout)

    def _run(
        self, operation: Callable[..., None], calls: tuple[Call, ...], args: tuple[object, ...]
    ) -> None:
        try:
            with self._order:
                operation(self.way, *calls, *args)
        except DifferentCalls:
            raise  # all ranks stopped at the same step, so the group goes on
        except BaseException as error:
            self.way.give_up(f"{type(error).__name__}: {error}")
            raise

    def wait_for_all(
        self, timeout: float | None = None, async_op: bool = False, device: int | None = None
    ) -> Work | None:
        """Waits for all ranks; with the backend "nccl" for the collectives of a GPU, too."""
        if self.name() == Backend.NCCL and self.cliques is not None:
            from rushlight.distributed import arguments, nccl_collectives

            clique = self.cliques.whole(self.cliques.device if device is None else device)
            token = rl.zeros(1, device=f"cuda:{clique.device}")
            work = arguments.queue(
                self,
                clique,
                "barrier",
                lambda comm, outs, _: nccl_collectives.all_reduce(comm, outs[0], ReduceOp.SUM),
                [token],
                [],
                True,
                blocks=True,
            )
            if async_op or work is None:
                return work
            work.wait(None if timeout is None else timedelta(seconds=timeout))
            return None
        return self.collective(
            "barrier", flat_collectives.barrier, rl.uint8, 0, (), [], async_op, timeout=timeout
        )

    def shutdown(self) -> None:
        """Ends what was begun and leaves the group."""
        if cliques := self.__dict__.get("cliques"):
            cliques.close()
            self._say_goodbye()
        self._worker.stop()
        self.way.close()

    def abort(self) -> None:
        """Leaves the group at once: what was begun here or waits for this rank elsewhere fails."""
        if cliques := self.__dict__.get("cliques"):
            cliques.abort()
        self.way.give_up("the group was aborted")
        self.shutdown()


def _at_exit() -> None:
    """Stops threads before the interpreter goes, and tells those who wait for this rank."""
    for group in list(_groups):
        if group._pid == os.getpid():  # a forked child has no part in it
            if not group._worker.is_idle():
                group.way.give_up("its process has ended")
            group._worker.stop()
            if group.__dict__.get("cliques"):  # left alone: others may still need what is queued
                group._say_goodbye()
            group.way.close()


atexit.register(_at_exit)
