"""The profiler as a context manager, its schedule, and named ranges."""

from __future__ import annotations

import enum
import functools
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rushlight import _C, _named_ranges
from rushlight.profiler.events import EventList, events_of

F = TypeVar("F", bound=Callable[..., Any])


class ProfilerActivity(enum.Enum):
    """What a profiler is asked to note; here it is always what the CPU does."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Returns the activities that can be noted."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Returns whether PyTorch's library Kineto is used: never."""
    return False


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Returns a plan for profile(schedule=...): which steps of a loop are noted.

    After skip_first steps come cycles of wait, warmup and active steps.

    Args:
        wait: steps at the start of a cycle that are not noted.
        warmup: steps that run with the profiler on, but are thrown away.
        active: steps that are noted, at least one.
        repeat: cycles; 0 goes on until the end.
        skip_first: steps before the first cycle.
        skip_first_wait: nonzero leaves out the wait of the first cycle.

    Example:
        >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"schedule: Invalid profiler schedule arguments: wait {wait}, warmup {warmup}, active "
            f"{active}, repeat {repeat}, skip_first {skip_first}. active is at least 1, the others "
            "at least 0."
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"schedule: Step must be non-negative, got {step}")
        cycle = wait + warmup + active
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _default_schedule_fn(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Returns a function for profile(on_trace_ready=...) that writes traces into a folder.

    Args:
        dir_name: the folder; made if there is none.
        worker_name: begins the names of the files; the host and process unless given.
        use_gzip: compresses them.
    """

    def write(done: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".gz" if use_gzip else ""
        name = f"{worker}.{time.time_ns()}.pt.trace.json{ending}"
        done.export_chrome_trace(os.path.join(dir_name, name))

    return write


class record_function:
    """Gives a part of the program a name in the profile; also a decorator.

    Args:
        name: shown in tables and traces.
        args: accepted as in PyTorch, where it is an input of the range; the name stays as it is.

    Example:
        >>> with torch.profiler.profile() as profile:
        ...     with torch.profiler.record_function("forward"):
        ...         total = torch.ones(3).sum()
        >>> [event.name for event in profile.events()]
        ['forward', 'aten::ones', 'aten::sum']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._ranges: list[tuple[int, int]] = []

    def __enter__(self) -> record_function:
        self._ranges.append(_C._begin_range(self.name))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._end_range(*self._ranges.pop())

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]


class Recording:
    """One stretch of profiling: starts, stops, and then holds the events."""

    def __init__(self, shapes: bool, memory: bool, stack: bool, flops: bool) -> None:
        self._notes = shapes or flops, memory, stack
        self._with_flops = flops
        self.events = EventList()

    def start(self) -> None:
        """Begins to note what this thread does."""
        _named_ranges.is_profiling = True
        _C._start_profile(*self._notes)

    def stop(self) -> None:
        """Ends it and reads what was noted."""
        _named_ranges.is_profiling = False
        self.events = events_of(_C._stop_profile(), self._with_flops)


class profile:
    """Notes what runs on this thread, for tables and traces.

    Args:
        activities: accepted, alone or as keys of dicts; what the CPU does is noted.
        schedule: from step to ProfilerAction, as schedule() makes it; everything between start and
            stop is noted unless given.
        on_trace_ready: called with the profiler whenever the events of a cycle are complete.
        record_shapes: notes the shapes of inputs.
        profile_memory: notes the CPU memory that ops allocate.
        with_stack: notes the line of the program that called an op.
        with_flops: counts the operations of products and elementwise ops.
        with_modules: accepted.
        experimental_config: accepted.
        execution_trace_observer: accepted.
        acc_events: keeps the events of all cycles, not just of the last.
        use_cuda: accepted.
        custom_trace_id_callback: accepted.
        post_processing_timeout_s: accepted.

    Example:
        >>> with torch.profiler.profile(record_shapes=True) as profile:
        ...     product = torch.ones(8, 8) @ torch.ones(8, 2)
        >>> [(e.key, e.count) for e in profile.key_averages() if e.key == "aten::matmul"]
        [('aten::matmul', 1)]
        >>> profile.events()[-1].input_shapes[:2]
        [[8, 8], [8, 2]]
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        # A dict names the events of an activity that are wanted.
        each = [item if isinstance(item, dict) else (item,) for item in activities or ()]
        self.activities = {activity for some in each for activity in some}
        self.activities = self.activities or supported_activities()
        self.schedule = schedule or _default_schedule_fn
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self._marks_steps = schedule is not None
        self._recording: Recording | None = None
        self._step_range: record_function | None = None
        self._events = EventList()
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with step 0."""
        self._turn_to(self.schedule(self.step_num))

    def stop(self) -> None:
        """Ends; events that are not complete by the schedule are handed over, too."""
        self._end_step()
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._save()
        elif self._recording is not None:
            self._stop_recording()
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """Tells that a step of the loop has ended and the next one begins."""
        self._end_step()
        self.step_num += 1
        if self.current_action is ProfilerAction.RECORD_AND_SAVE:
            self._save()
        self._turn_to(self.schedule(self.step_num))

    def _end_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__()
            self._step_range = None

    def _turn_to(self, action: ProfilerAction) -> None:
        # What ran while warming up is thrown away.
        warmed_up = (
            self.current_action is ProfilerAction.WARMUP and action is not self.current_action
        )
        if warmed_up or action is ProfilerAction.NONE:
            self._stop_recording()
        if self._recording is None and action is not ProfilerAction.NONE:
            self._recording = Recording(
                self.record_shapes, self.profile_memory, self.with_stack, self.with_flops
            )
            self._recording.start()
        self.current_action = action
        if self._recording is not None and self._marks_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _stop_recording(self) -> EventList:
        recording, self._recording = self._recording, None
        if recording is None:
            return EventList()
        recording.stop()
        return recording.events

    def _save(self) -> None:
        events = self._stop_recording()
        if self.acc_events:
            self._events.extend(events)
        else:
            self._events = events
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def events(self) -> EventList:
        """Returns the events of the last cycle."""
        return self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Returns the averages of events by name; see EventList.key_averages and .table."""
        return self._events.key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace that chrome://tracing and Perfetto show."""
        self._events.export_chrome_trace(path, self._metadata)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a value, given as JSON, to the trace."""
        self._metadata[key] = json.loads(value)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Writes self times by path of calls, for flame graphs."""
        self._events.export_stacks(path, metric)
