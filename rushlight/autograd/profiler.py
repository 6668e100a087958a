"""The profiler in PyTorch's older form; rushlight.profiler has the newer one."""

from __future__ import annotations

import os
from typing import Any

from rushlight.profiler.events import EventList, FunctionEvent, FunctionEventAvg
from rushlight.profiler.profiler import Recording, record_function

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]


class profile:
    """Notes what runs on this thread between entering and leaving.

    Args:
        enabled: False makes it do nothing.
        use_cuda: accepted.
        use_device: accepted.
        record_shapes: notes the shapes of inputs.
        with_flops: counts the operations of products and elementwise ops.
        profile_memory: notes the CPU memory that ops allocate.
        with_stack: notes the line of the program that called an op.
        with_modules: accepted.
        use_kineto: accepted.
        use_cpu: accepted.
        experimental_config: accepted.
        acc_events: accepted.
        custom_trace_id_callback: accepted.
        post_processing_timeout_s: accepted.
        activity_filters: accepted.

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> with torch.autograd.profiler.profile() as profile:
        ...     x.exp().sum().backward()
        >>> [event.key for event in profile.function_events if "Backward" in event.key]
        ['SumBackward0', 'ExpBackward0']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        self.enabled = enabled
        self._recording = Recording(record_shapes, profile_memory, with_stack, with_flops)

    def __enter__(self) -> profile:
        if self.enabled:
            self._recording.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.enabled:
            self._recording.stop()

    def __str__(self) -> str:
        return self.table()

    @property
    def function_events(self) -> EventList:
        """The events."""
        return self._recording.events

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events in microseconds, each moment counted once."""
        return self.function_events.self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Returns the averages of events by name; see EventList.key_averages."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """Returns the sums over all events."""
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Returns the events as a table; see EventList.table."""
        return self.function_events.table(sort_by, row_limit, **options)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace that chrome://tracing and Perfetto show."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Writes self times by path of calls, for flame graphs."""
        self.function_events.export_stacks(path, metric)


class _Ranges:
    """Would mark ops for a profiler of a hardware maker; entering it says that there are no marks.

    Args:
        enabled: False makes it do nothing.
        record_shapes: accepted.

    Raises:
        RuntimeError: when entered, unless disabled.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> _Ranges | None:
        if not self.enabled:
            return None
        raise RuntimeError(
            f"{type(self).__name__}: ops are not marked for other profilers. Use "
            "torch.profiler.profile, whose traces chrome://tracing and Perfetto show."
        )

    def __exit__(self, *exc_info: object) -> None:
        pass


class emit_nvtx(_Ranges):
    """Would mark ops for NVIDIA's profilers; entering it says that there are no such marks.

    Args:
        enabled: False makes it do nothing, so that a program may keep it.
        record_shapes: accepted.

    Raises:
        RuntimeError: when entered, unless disabled.

    Example:
        >>> with torch.autograd.profiler.emit_nvtx(enabled=False):
        ...     x = torch.ones(2) + 1
    """


class emit_itt(_Ranges):
    """Would mark ops for Intel's profilers; entering it says that there are no such marks.

    Args:
        enabled: False makes it do nothing, so that a program may keep it.
        record_shapes: accepted.

    Raises:
        RuntimeError: when entered, unless disabled.
    """
