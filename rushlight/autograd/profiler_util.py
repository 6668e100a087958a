"""What a profiler noted, under PyTorch's name of the module; see rushlight.profiler.events."""

from rushlight.profiler.events import (
    DeviceType,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
)

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]
