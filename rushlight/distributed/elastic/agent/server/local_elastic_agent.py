"""The agent whose processes are this machine's."""

from __future__ import annotations

import signal
from string import Template
from typing import Any

from rushlight.distributed.elastic.agent.server.api import (
    RunResult,
    SimpleElasticAgent,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)
from rushlight.distributed.elastic.metrics import prof
from rushlight.distributed.elastic.multiprocessing import LogsSpecs, PContext, start_processes
from rushlight.distributed.elastic.utils.api import local_rank_environment, macros

__all__ = ["LocalElasticAgent"]


class LocalElasticAgent(SimpleElasticAgent):
    """Starts and watches processes of this machine.

    When one fails, all are ended and start again, as often as spec.max_restarts says. They do so,
    too, when another machine comes, or one whose processes have failed comes back. Each finds its
    place in its environment, as those that the launcher starts.

    Args:
        spec: what they are like.
        logs_specs: where their outputs go.
        start_method: how a process that calls a function is made: "spawn", "fork" or "forkserver".
        exit_barrier_timeout: seconds to wait for the other agents when all went well.
        log_line_prefix_template: what stands before their lines on the terminal, with ${role_name},
            ${rank} and ${local_rank}.

    Example:
        >>> from rushlight.distributed.elastic.agent.server import WorkerSpec
        >>> from rushlight.distributed.elastic.agent.server.local_elastic_agent import (
        ...     LocalElasticAgent
        ... )
        >>> from rushlight.distributed.elastic.multiprocessing import DefaultLogsSpecs
        >>> from rushlight.distributed.elastic.rendezvous import RendezvousParameters
        >>> from rushlight.distributed.elastic.rendezvous.registry import get_rendezvous_handler
        >>> params = RendezvousParameters("c10d", "localhost:0", "job", 1, 1, "localhost")
        >>> handler = get_rendezvous_handler(params)
        >>> spec = WorkerSpec("trainer", 2, handler, entrypoint=divmod, args=(7, 2))
        >>> LocalElasticAgent(spec, DefaultLogsSpecs()).run().return_values
        {0: (3, 1), 1: (3, 1)}
        >>> handler.shutdown()
        True
    """

    def __init__(
        self,
        spec: WorkerSpec,
        logs_specs: LogsSpecs,
        start_method: str = "spawn",
        exit_barrier_timeout: float = 300,
        log_line_prefix_template: str | None = None,
    ) -> None:
        super().__init__(spec, exit_barrier_timeout)
        self._logs_specs = logs_specs
        self._start_method = start_method
        self._log_line_prefix_template = log_line_prefix_template
        self._pcontext: PContext | None = None

    @prof
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        spec = worker_group.spec
        assert spec.entrypoint is not None
        args: dict[int, tuple[Any, ...]] = {}
        envs: dict[int, dict[str, str]] = {}
        labels: dict[int, str] = {}
        for worker in worker_group.workers:
            rank = worker.local_rank
            places = {
                "RANK": worker.global_rank,
                "GROUP_RANK": worker_group.group_rank,
                "ROLE_RANK": worker.role_rank,
                "ROLE_NAME": spec.role,
                "LOCAL_WORLD_SIZE": spec.local_world_size,
                "WORLD_SIZE": worker.world_size,
                "GROUP_WORLD_SIZE": worker_group.group_world_size,
                "ROLE_WORLD_SIZE": worker.role_world_size,
                "MASTER_ADDR": worker_group.master_addr,
                "MASTER_PORT": worker_group.master_port,
                "TORCHELASTIC_RESTART_COUNT": spec.max_restarts - self._remaining_restarts,
                "TORCHELASTIC_MAX_RESTARTS": spec.max_restarts,
                "TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id(),
                "TORCHELASTIC_USE_AGENT_STORE": spec.rdzv_handler.use_agent_store,
            }
            envs[rank] = {name: str(value) for name, value in places.items()}
            envs[rank] |= local_rank_environment(rank, spec.virtual_local_rank)
            args[rank] = tuple(macros.substitute(list(spec.args), str(rank)))
            if self._log_line_prefix_template is not None:
                labels[rank] = Template(self._log_line_prefix_template).safe_substitute(
                    role_name=spec.role, rank=worker.global_rank, local_rank=rank
                )
        self._pcontext = start_processes(
            spec.role, spec.entrypoint, args, envs, self._logs_specs, labels, self._start_method
        )
        return self._pcontext.pids()

    @prof
    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown()

    @prof
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        assert self._pcontext is not None
        result = self._pcontext.wait(0)
        if result is None:
            return RunResult(WorkerState.HEALTHY)
        ranks = [worker.global_rank for worker in worker_group.workers]
        return RunResult(
            WorkerState.FAILED if result.is_failed() else WorkerState.SUCCEEDED,
            {ranks[rank]: value for rank, value in result.return_values.items()},
            {ranks[rank]: failure for rank, failure in result.failures.items()},
        )

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        if self._pcontext is not None:
            self._pcontext.close(death_sig, timeout)
