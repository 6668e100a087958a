"""The profiler: where the time of a program goes, by op.

It notes the ops, nodes of the tape and named ranges that run on the thread that started it. Work on
a GPU is noted by the time that it takes to ask for it.
"""

from rushlight.profiler.events import DeviceType
from rushlight.profiler.profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
