"""A job whose processes each call one function: run.py's launcher, from within a program.

Processes that call functions are FunctionProcess's; the rest is run.py's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rushlight.distributed.elastic.multiprocessing.api import FunctionProcess, result_of
from rushlight.distributed.run import Job, parse_args

__all__ = ["LaunchConfig", "elastic_launch"]


@dataclass
class LaunchConfig:
    """What a job is like; the names are PyTorch's.

    Attributes:
        min_nodes, max_nodes: the number of machines, which cannot change here.
        nproc_per_node: processes on each.
        run_id: the job's name, the same on all machines.
        role: ROLE_NAME of the processes.
        rdzv_endpoint: host:port of machine 0; empty for this machine alone, on any free port.
        rdzv_backend: has no effect: every job has the store of machine 0.
        rdzv_configs: "rank" is which of the machines this is, "join_timeout" how many seconds the
            others have to come.
        rdzv_timeout: the older form of join_timeout; -1 leaves it as it is.
        max_restarts: how often all may be started again.
        monitor_interval: seconds between looks at them.
        start_method: how a process that calls a function is made: "spawn", "fork" or "forkserver".
        log_line_prefix_template, metrics_cfg, local_addr: accepted for PyTorch's sake.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "static"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None

    def command_line(self, program: list[str]) -> list[str]:
        """Returns the same as the options of the launcher."""
        options = {
            "nnodes": f"{self.min_nodes}:{self.max_nodes}",
            "nproc-per-node": self.nproc_per_node,
            "role": self.role,
            "max-restarts": self.max_restarts,
            "monitor-interval": self.monitor_interval,
        }
        if self.rdzv_endpoint:
            options["rdzv-endpoint"] = self.rdzv_endpoint
            options["rdzv-id"] = self.run_id or "none"
            options["node-rank"] = self.rdzv_configs.get("rank", 0)
            timeout = self.rdzv_configs.get("join_timeout", self.rdzv_timeout)
            if timeout != -1:
                options["rdzv-conf"] = f"join_timeout={timeout}"
        given = [f"--{name}={value}" for name, value in options.items()]
        return [*given, *([] if self.rdzv_endpoint else ["--standalone"]), *program]


class elastic_launch:
    """Calls a function, or runs a command, in all processes of a job.

    Args:
        config: what the job is like.
        entrypoint: a function, which start_method="spawn" looks up by its name in its module; or
            the path of a program, which is run as it is.

    Raises:
        ChildFailedError: if some processes failed, as often as they may.

    Example:
        >>> from rushlight.distributed.launcher import LaunchConfig, elastic_launch
        >>> config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2)
        >>> elastic_launch(config, divmod)(7, 2)
        {0: (3, 1), 1: (3, 1)}
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        self._config = config
        self._entrypoint = entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        """Returns the results of this machine's processes by their local ranks."""
        if self._entrypoint is None:
            raise ValueError("elastic_launch: there is no entrypoint. Give a function or a path.")
        if isinstance(self._entrypoint, str):
            line = self._config.command_line([self._entrypoint, *map(str, args)])
            Job(parse_args(["--no-python", *line])).run()
            return dict.fromkeys(range(self._config.nproc_per_node))
        with tempfile.TemporaryDirectory(prefix="rushlight-launch-") as folder:
            _Calls(self._config, self._entrypoint, args, Path(folder)).run()
            return {
                rank: result_of(_result(Path(folder), rank))
                for rank in range(self._config.nproc_per_node)
            }


class _Calls(Job):
    """A job whose processes call a function and leave the results in a folder."""

    def __init__(
        self,
        config: LaunchConfig,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        folder: Path,
    ) -> None:
        name = getattr(function, "__qualname__", type(function).__name__)
        super().__init__(parse_args(config.command_line([name])))
        self._start_method = config.start_method
        self._call = (function, args)
        self._results = folder

    def _start(self, local_rank: int, attempt: int) -> FunctionProcess:
        environment = self._environment(local_rank, attempt)
        result = _result(self._results, local_rank)
        return FunctionProcess(*self._call, environment, result, self._start_method)


def _result(folder: Path, local_rank: int) -> Path:
    return folder / f"{local_rank}.pickle"
