"""Remote procedure calls: functions that run in another process of the job.

init_rpc gives this process a name, rpc_sync and rpc_async call, remote leaves the result where it
is. docs/rpc.md tells how. Calls are pickles, which can run any code: they are for processes that
trust each other, as those of one job do.
"""

from __future__ import annotations

from rushlight.distributed.rpc import functions
from rushlight.distributed.rpc._agent import WorkerInfo
from rushlight.distributed.rpc._agent import _is_current_rpc_agent_set as _is_current_rpc_agent_set
from rushlight.distributed.rpc._rref import PyRRef, RRef
from rushlight.distributed.rpc.api import (
    get_rpc_timeout,
    get_worker_info,
    init_rpc,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from rushlight.distributed.rpc.options import (
    BackendType,
    RpcBackendOptions,
    TensorPipeRpcBackendOptions,
)

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "functions",
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]


def is_available() -> bool:
    """Returns True: calls go over TCP, which is everywhere."""
    return True
