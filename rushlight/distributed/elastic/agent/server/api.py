"""What an agent does, apart from how it starts processes: SimpleElasticAgent._invoke_run.

It finds the other machines, gives its processes their ranks, and starts all of them again when one
fails or another machine comes.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rushlight.distributed.elastic.events import Event, EventSource, record
from rushlight.distributed.elastic.metrics import prof, put_metric
from rushlight.distributed.elastic.multiprocessing import ProcessFailure, SignalException
from rushlight.distributed.elastic.rendezvous import RendezvousGracefulExitError, RendezvousHandler
from rushlight.distributed.elastic.utils.store import barrier
from rushlight.distributed.errors import DistError
from rushlight.distributed.store import Store

__all__ = [
    "ElasticAgent",
    "RunResult",
    "SimpleElasticAgent",
    "Worker",
    "WorkerGroup",
    "WorkerSpec",
    "WorkerState",
]

DEFAULT_ROLE = "default"

logger = logging.getLogger(__name__)


@dataclass
class WorkerSpec:
    """What the processes of an agent are like.

    Args:
        role: ROLE_NAME of the processes.
        local_world_size: how many there are on this machine.
        rdzv_handler: how the agent finds those of the other machines.
        fn: the older name of entrypoint.
        entrypoint: a function, or the path of a program.
        args: its arguments, in which macros.local_rank stands for the rank.
        max_restarts: how often all may be started again.
        monitor_interval: seconds between looks at them.
        master_addr, master_port: where they have their store; what the handler says by default.
        event_log_handler: where events go; see elastic.events.
        virtual_local_rank: whether each sees its GPU alone, as number 0.
        local_addr, numa_options, duplicate_stdout_filters, duplicate_stderr_filters: accepted for
            PyTorch's sake.

    Raises:
        ValueError: without an entrypoint, or for numbers that are not more than 0.
    """

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Callable[..., Any] | None = None
    entrypoint: Callable[..., Any] | str | None = None
    args: tuple[Any, ...] = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False

    def __post_init__(self) -> None:
        if self.fn is not None:
            warnings.warn(
                "WorkerSpec.fn will be deprecated, please use WorkerSpec.entrypoint instead",
                DeprecationWarning,
                stacklevel=3,
            )
            self.entrypoint = self.fn
        if not self.entrypoint or self.local_world_size <= 0 or self.monitor_interval <= 0:
            raise ValueError(
                f"WorkerSpec: entrypoint {self.entrypoint}, local_world_size "
                f"{self.local_world_size}, monitor_interval {self.monitor_interval}. Give a "
                "function or a path, and numbers greater than 0."
            )

    def get_entrypoint_name(self) -> str:
        """Returns the name of the function or program."""
        if isinstance(self.entrypoint, str):
            return os.path.basename(self.entrypoint)
        return getattr(self.entrypoint, "__qualname__", type(self.entrypoint).__name__)


@dataclass
class Worker:
    """A process.

    Args:
        local_rank: its rank among those of this machine.
        global_rank: among all.
        role_rank: among all of its role.
        world_size: how many there are.
        role_world_size: how many of its role.
        id: what the agent knows it by, such as its number in the system.
    """

    local_rank: int
    global_rank: int = -1
    role_rank: int = -1
    world_size: int = -1
    role_world_size: int = -1
    id: Any = None


class WorkerState(StrEnum):
    """How the processes of an agent are doing."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """Returns whether they run."""
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


class WorkerGroup:
    """The processes of an agent.

    Args:
        spec: what they are like.

    Attributes:
        workers: one by one.
        store: which the agents of all machines share.
        group_rank, group_world_size: which of the machines this is, and how many there are.
        master_addr, master_port: where the processes have their store.
        state: how they are doing.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self.workers = [Worker(rank) for rank in range(spec.local_world_size)]
        self.store: Store | None = None
        self.group_rank: int | None = None
        self.group_world_size: int | None = None
        self.master_addr: str | None = None
        self.master_port: int | None = None
        self.state = WorkerState.INIT


@dataclass
class RunResult:
    """How the processes of this machine ended, by their ranks among all.

    Attributes:
        state: how they are doing.
        return_values: what functions have returned.
        failures: of those that failed.
    """

    state: WorkerState
    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Returns whether one failed."""
        return self.state is WorkerState.FAILED


class ElasticAgent(ABC):
    """Who starts and watches the processes of a machine."""

    @abstractmethod
    def run(self, role: str = DEFAULT_ROLE) -> RunResult | None:
        """Runs the processes to their end.

        Returns:
            How they ended; None if the rendezvous has no place for this machine.

        Raises:
            RendezvousError: if the machines do not find each other.
            SignalException: if a signal asks this process to end.
        """

    @abstractmethod
    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """Returns the processes."""


class SimpleElasticAgent(ElasticAgent):
    """An agent whose processes are all alike. Subclasses say how they are started.

    Args:
        spec: what they are like.
        exit_barrier_timeout: seconds to wait for the other agents when all went well.
        shutdown_timeout: seconds that processes have to end.
    """

    def __init__(
        self, spec: WorkerSpec, exit_barrier_timeout: float = 300, shutdown_timeout: int = 30
    ) -> None:
        self._worker_group = WorkerGroup(spec)
        self._remaining_restarts = spec.max_restarts
        self._store: Store | None = None
        self._exit_barrier_timeout = exit_barrier_timeout
        self._shutdown_timeout = shutdown_timeout
        self._total_execution_time = 0

    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """Returns the processes."""
        return self._worker_group

    @abstractmethod
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Starts the processes; the id of each by its local rank."""

    @abstractmethod
    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        """Ends those that run."""

    @abstractmethod
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """Looks how they are doing."""

    @abstractmethod
    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        """Ends everything, by this signal and, after so many seconds, by force."""

    @prof
    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        """Finds the other machines, and gives the processes their ranks."""
        spec = worker_group.spec
        with self.record_duration("RENDEZVOUS"):
            info = spec.rdzv_handler.next_rendezvous()
        self._store = worker_group.store = info.store
        worker_group.group_rank, worker_group.group_world_size = info.rank, info.world_size
        place = info.bootstrap_store_info
        worker_group.master_addr = spec.master_addr or place.master_addr
        worker_group.master_port = spec.master_port or place.master_port
        with self.record_duration("ASSIGN_WORKER_RANKS"):
            worker_group.workers = self._assign_worker_ranks(
                info.store, info.rank, info.world_size, spec
            )
        logger.info(
            "[%s] machine %s of %s has the ranks %s; the store is at %s:%s",
            spec.role,
            info.rank,
            info.world_size,
            [worker.global_rank for worker in worker_group.workers],
            worker_group.master_addr,
            worker_group.master_port,
        )

    @prof
    def _assign_worker_ranks(
        self, store: Store, group_rank: int, group_world_size: int, spec: WorkerSpec
    ) -> list[Worker]:
        """The processes with their ranks: those of a machine follow those of the one before."""
        prefix = "torchelastic/role_info/"
        own = json.dumps([spec.role, spec.local_world_size])
        store.set(f"{prefix}{group_rank}", own)
        told = store.multi_get([f"{prefix}{rank}" for rank in range(group_world_size)])
        sizes = [tuple(json.loads(text)) for text in told]
        before, all_of_role = Counter(), Counter()
        for role, size in sizes[:group_rank]:
            before[role] += size
        for role, size in sizes:
            all_of_role[role] += size
        return [
            Worker(
                rank,
                before.total() + rank,
                before[spec.role] + rank,
                all_of_role.total(),
                all_of_role[spec.role],
            )
            for rank in range(spec.local_world_size)
        ]

    @prof
    def _initialize_workers(self, worker_group: WorkerGroup) -> None:
        """Finds the other machines, and starts the processes."""
        self._rendezvous(worker_group)
        for rank, known_by in self._start_workers(worker_group).items():
            worker = worker_group.workers[rank]
            worker.id = known_by
            event = self._construct_event("START", EventSource.WORKER, worker)
            record(event, worker_group.spec.event_log_handler)
        worker_group.state = WorkerState.HEALTHY

    @prof
    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        """Ends the processes, and starts them again."""
        self._stop_workers(worker_group)
        worker_group.state = WorkerState.STOPPED
        self._initialize_workers(worker_group)

    @prof
    def run(self, role: str = DEFAULT_ROLE) -> RunResult | None:
        """See ElasticAgent."""
        start = time.monotonic()
        death_sig = signal.SIGTERM
        try:
            result = self._invoke_run(role)
            self._total_execution_time = int(time.monotonic() - start)
            self._record_metrics(result)
            self._record_worker_events(result)
            return result
        except RendezvousGracefulExitError as error:
            logger.info("the rendezvous has no place for this machine: %s", error)
            return None
        except SignalException as error:
            death_sig = error.sigval
            raise
        finally:
            self._shutdown(death_sig, timeout=self._shutdown_timeout)
            self._total_execution_time = int(time.monotonic() - start)

    def _invoke_run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Starts the processes, and watches them to their end."""
        group, spec = self._worker_group, self._worker_group.spec
        self._initialize_workers(group)
        while True:
            time.sleep(spec.monitor_interval)
            result = self._monitor_workers(group)
            group.state = result.state
            put_metric(f"workers.{spec.role}.remaining_restarts", self._remaining_restarts)
            put_metric(f"workers.{spec.role}.{result.state.lower()}", 1)
            if result.state is WorkerState.SUCCEEDED:
                self._exit_barrier()
                return result
            if result.state in (WorkerState.UNHEALTHY, WorkerState.FAILED):
                if self._remaining_restarts == 0:
                    self._stop_workers(group)
                    group.state = WorkerState.FAILED
                    return result
                self._remaining_restarts -= 1
                logger.info(
                    "[%s] starting again, %s times at most", spec.role, self._remaining_restarts + 1
                )
                self._restart_workers(group)
            elif result.state is not WorkerState.HEALTHY:
                raise RuntimeError(f"[{spec.role}] the processes are in state {result.state}.")
            elif spec.rdzv_handler.num_nodes_waiting() > 0:
                logger.info("[%s] other machines have come: all start again", spec.role)
                self._restart_workers(group)

    def _exit_barrier(self) -> None:
        """Waits for the other agents, whose processes may need this machine's store."""
        group = self._worker_group
        if self._store is None or group.group_world_size is None:
            return
        try:
            barrier(
                self._store,
                group.group_world_size,
                key_prefix="torchelastic/agent/terminal_state",
                barrier_timeout=self._exit_barrier_timeout,
            )
        except DistError:
            logger.exception("[%s] not all other agents have ended", group.spec.role)

    @contextmanager
    def record_duration(self, state: str) -> Iterator[None]:
        """Records how long a with block took."""
        start = time.perf_counter()
        try:
            yield
        finally:
            taken = (time.perf_counter() - start) * 1000
            event = self._construct_event(state, EventSource.AGENT, duration_ms=taken)
            record(event, self._worker_group.spec.event_log_handler)

    def get_event_succeeded(self) -> Event:
        """Returns an event that says that all went well."""
        return self._construct_event("SUCCEEDED", EventSource.AGENT)

    def get_event_failed(self) -> Event:
        """Returns an event with the error that is being handled."""
        return self._construct_event("FAILED", EventSource.AGENT, raw_error=traceback.format_exc())

    def _construct_event(
        self,
        state: str,
        source: EventSource,
        worker: Worker | None = None,
        raw_error: str | None = None,
        duration_ms: float | None = None,
        exit_code: int | None = None,
        worker_pid: int | None = None,
    ) -> Event:
        group, spec = self._worker_group, self._worker_group.spec
        more: dict[str, Any] = {
            "group_world_size": group.group_world_size,
            "entry_point": spec.get_entrypoint_name(),
        }
        if worker is not None:
            more |= {
                "local_rank": worker.local_rank,
                "role_rank": worker.role_rank,
                "role_world_size": worker.role_world_size,
                "exit_code": exit_code,
                "worker_pid": worker_pid,
            }
        return Event(
            f"torchelastic.worker.status.{state}",
            source,
            metadata={
                "run_id": spec.rdzv_handler.get_run_id(),
                "global_rank": None if worker is None else worker.global_rank,
                "group_rank": group.group_rank,
                "worker_id": None if worker is None else str(worker.id),
                "role": spec.role,
                "hostname": socket.gethostname(),
                "state": state,
                "total_run_time": self._total_execution_time,
                "rdzv_backend": spec.rdzv_handler.get_backend(),
                "raw_error": raw_error,
                "metadata": json.dumps(more),
                "agent_restarts": spec.max_restarts - self._remaining_restarts,
                "duration_ms": duration_ms,
            },
        )

    def _record_worker_events(self, result: RunResult) -> None:
        for worker in self._worker_group.workers:
            failure = result.failures.get(worker.global_rank)
            ended_for_another = result.is_failed() and failure is None
            event = self._construct_event(
                "TERMINATED" if ended_for_another else result.state.value,
                EventSource.WORKER,
                worker,
                raw_error=None if failure is None else failure.message,
                exit_code=None if failure is None else failure.exitcode,
                worker_pid=None if failure is None else failure.pid,
            )
            record(event, self._worker_group.spec.event_log_handler)

    def _record_metrics(self, result: RunResult) -> None:
        spec = self._worker_group.spec
        failed = result.is_failed()
        retried = self._remaining_restarts != spec.max_restarts
        numbers = {
            "run_total": 1,
            "run_success_with_retries": not failed and retried,
            "run_success_no_retries": not failed and not retried,
            "run_failed_with_retries": failed and retried,
            "run_failed_no_retries": failed and not retried,
            "flakiness": 100
            if failed
            else 100 - 100 * (self._remaining_restarts + 1) / (spec.max_restarts + 1),
        }
        for name, value in numbers.items():
            put_metric(f"workers.{spec.role}.{name}", int(value))
