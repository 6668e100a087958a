"""Blocks of a program that may take so long and no longer: else its launcher kills the process.

The launcher has a LocalTimerServer, its processes a LocalTimerClient of the same queue.
"""

from rushlight.distributed.elastic.timer.api import (
    RequestQueue,
    TimerClient,
    TimerRequest,
    TimerServer,
    configure,
    expires,
)
from rushlight.distributed.elastic.timer.local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "LocalTimerClient",
    "LocalTimerServer",
    "RequestQueue",
    "TimerClient",
    "TimerRequest",
    "TimerServer",
    "configure",
    "expires",
]
