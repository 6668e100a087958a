"""The agent of a machine finds those of the others, starts processes, and starts them again.

LocalElasticAgent, in local_elastic_agent.py, is the one whose processes are on its machine.
"""

from rushlight.distributed.elastic.agent.server.api import (
    ElasticAgent,
    RunResult,
    SimpleElasticAgent,
    Worker,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)

__all__ = [
    "ElasticAgent",
    "RunResult",
    "SimpleElasticAgent",
    "Worker",
    "WorkerGroup",
    "WorkerSpec",
    "WorkerState",
]
