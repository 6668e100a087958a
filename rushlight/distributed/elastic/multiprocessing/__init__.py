"""Starting and watching several processes of this machine: start_processes.

run.py is the launcher of whole jobs, of which programs are a part; this is for programs that start
processes themselves.
"""

from rushlight.distributed.elastic.multiprocessing.api import (
    MultiprocessContext,
    PContext,
    RunProcsResult,
    SignalException,
    SubprocessContext,
    start_processes,
    to_map,
)
from rushlight.distributed.elastic.multiprocessing.errors import ProcessFailure, record
from rushlight.distributed.elastic.multiprocessing.logs import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    Std,
)

__all__ = [
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "ProcessFailure",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "record",
    "start_processes",
    "to_map",
]
