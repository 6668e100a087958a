"""What a profiler noted: events with their times, averages over equal ones, tables and traces.

Owns the reading of the core's ranges (core/autograd/profiler.h). Times are microseconds, memory is
in bytes. Self times and memory leave out what ran inside.
"""

from __future__ import annotations

import enum
import gzip
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# (name, kind, start, end, parent, allocated, shapes, site) as the core gives them, times in ns.
Range = tuple[str, str, int, int, int, int, list[tuple[int, ...]], str]


class DeviceType(enum.Enum):
    """The device that an event belongs to."""

    CPU = 0
    CUDA = 1


@dataclass
class Interval:
    """A span of time in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Returns its length."""
        return self.end - self.start


class _Times:
    """What events and averages have in common: totals, and what PyTorch calls them."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    # Work on a GPU counts as the CPU's time of asking for it, so nothing is left for these.
    device_type = DeviceType.CPU
    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    device_time_str = device_time_total_str = self_device_time_total_str = "0.000us"
    device_memory_usage = self_device_memory_usage = 0
    is_async = is_legacy = is_remote = False
    node_id = -1

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """The mean time with its unit."""
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """The total time with its unit."""
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """The time outside of what ran inside, with its unit."""
        return format_time(self.self_cpu_time_total)


@dataclass(eq=False)
class FunctionEvent(_Times):
    """One op, node of the tape or named range that ran.

    Attributes:
        name: "aten::add" for an op, "AddBackward0" for a node, else the name of the range.
        time_range: when it ran.
        input_shapes: the shapes of its tensors, if they were noted.
        stack: the line of the program that called it, if it was noted.
        cpu_memory_usage: bytes allocated minus bytes freed, if they were noted.
        cpu_parent: the event that it ran in, or None.
        cpu_children: the events that ran in it.
        flops: operations of a product or elementwise op, if they were asked for, else 0; what it
            is made of counts none.
        is_user_annotation: whether it is a named range.
    """

    id: int
    name: str
    kind: str
    time_range: Interval
    thread: int
    input_shapes: list[list[int]]
    stack: list[str]
    cpu_memory_usage: int
    flops: int = 0
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    cpu_children: list[FunctionEvent] = field(default_factory=list, repr=False)
    count: int = 1

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def is_user_annotation(self) -> bool:
        """Whether it is a named range."""
        return self.kind == "user"

    @property
    def cpu_time_total(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The length of the time range."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time outside of what ran inside."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """The bytes outside of what ran inside."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)


@dataclass(eq=False)
class FunctionEventAvg(_Times):
    """Events of one name, and of the same shapes and line if these were asked for, added up."""

    key: str
    input_shapes: list[list[int]]
    stack: list[str]
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    flops: int = 0
    is_user_annotation: bool = False

    def add(self, event: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event, or the sums of others; returns itself."""
        self.count += event.count
        # What an op of the same name runs inside is in its total already.
        if not (isinstance(event, FunctionEvent) and _has_namesake_around(event)):
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops
        self.is_user_annotation = event.is_user_annotation
        return self


def _around(event: FunctionEvent) -> Iterator[FunctionEvent]:
    """Yields what an event ran in, the innermost first."""
    parent = event.cpu_parent
    while parent is not None:
        yield parent
        parent = parent.cpu_parent


def _has_namesake_around(event: FunctionEvent) -> bool:
    return any(outer.name == event.name for outer in _around(event))


_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}  # in microseconds, the longest first
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")  # each 1000 of the one before


def format_time(us: float) -> str:
    """Returns a time with its unit: 12.345ms.

    Args:
        us: microseconds.
    """
    return _time(us, next((unit for unit, size in _UNITS.items() if us >= size), "us"))


def format_memory(count: int) -> str:
    """Returns a number of bytes with its unit: 1.50 KB."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(count) >= 1024**power:
            return f"{count / 1024**power:.2f} {unit}"
    return f"{count} B"


_PRODUCTS = {"mm", "matmul", "bmm", "linear", "addmm", "baddbmm"}
_ELEMENTWISE = {"add", "mul", "sub", "div"}


def _flops(op: str, shapes: list[tuple[int, ...]]) -> int:
    if op in _ELEMENTWISE and shapes:
        return max(math.prod(shape) for shape in shapes)
    if op not in _PRODUCTS:
        return 0
    left, right = shapes[1:3] if op in ("addmm", "baddbmm") else shapes[:2]
    if not left or not right:
        return 0
    columns = right[0] if op == "linear" else right[-1]
    return 2 * math.prod(left) * (columns if len(right) > 1 else 1)


class EventList(list[FunctionEvent | FunctionEventAvg]):
    """Events in the order in which they began, or averages of them.

    Example:
        >>> with torch.profiler.profile() as profile:
        ...     total = (torch.ones(10) * 2).sum()
        >>> [event.name for event in profile.events()][:2]
        ['aten::ones', 'aten::mul']
    """

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each moment counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def total_average(self) -> FunctionEventAvg:
        """Returns the sums over all events."""
        total = FunctionEventAvg("Total", [], [])
        for event in self:
            total.count += event.count
            total.self_cpu_time_total += event.self_cpu_time_total
            total.cpu_time_total += event.self_cpu_time_total
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Returns the averages of events that have the same name.

        Args:
            group_by_input_shapes: only those with equal shapes together.
            group_by_stack_n: only those from the same line together, unless 0.
            group_by_overload_name, include_python_functions: accepted for PyTorch's sake: events
                have names of ops and of ranges of the program only.
        """
        averages: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shapes else []
            stack = event.stack[:group_by_stack_n]
            key = event.key, tuple(map(tuple, shapes)), tuple(stack)
            if key not in averages:
                averages[key] = FunctionEventAvg(event.key, shapes, stack)
            averages[key].add(event)
        return EventList(averages.values())

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Returns the events as a table.

        Args:
            sort_by: the attribute to sort by, greatest first: "cpu_time_total",
                "self_cpu_time_total", "cpu_time", "count", "cpu_memory_usage", ...; in the order of
                the events unless given.
            row_limit: rows that are shown; -1 shows all.
            max_src_column_width: characters of the line of the program.
            max_name_column_width: characters of the name.
            max_shapes_column_width: characters of the shapes.
            header: text above the table.
            top_level_events_only: leave out what ran inside another event.
            time_unit: "s", "ms" or "us" for all times; each by its size unless given.

        Raises:
            AttributeError: if the events have nothing to sort by of that name.
            ValueError: if there is no such unit.
        """
        if time_unit not in (None, *_UNITS):
            raise ValueError(f"table: time_unit is {time_unit!r}. It must be 's', 'ms' or 'us'.")
        rows: list[Any] = list(self)
        if sort_by is not None:
            # Times on a device are not noted here: what asks for them gets those of the CPU.
            name = sort_by.replace("cuda", "cpu").replace("device", "cpu").replace("xpu", "cpu")
            rows.sort(key=lambda event: getattr(event, name), reverse=True)
        if top_level_events_only:
            rows = [row for row in rows if getattr(row, "cpu_parent", None) is None]
        total = self.self_cpu_time_total
        columns = _columns(
            rows, total, time_unit, max_name_column_width, max_shapes_column_width,
            max_src_column_width,
        )  # fmt: skip
        shown = rows if row_limit < 0 else rows[:row_limit]
        cells = [
            [name for name, _ in columns],
            *([text(row) for _, text in columns] for row in shown),
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rule = "  ".join("-" * width for width in widths)
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        above = [] if header is None else ["=" * len(rule), header]
        text = [*above, rule, lines[0], rule, *lines[1:], rule]
        return "\n".join([*text, f"Self CPU time total: {_time(total, time_unit)}", ""])

    def export_chrome_trace(
        self, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Writes the events as a trace that chrome://tracing and Perfetto show.

        Args:
            path: a JSON file; compressed if it ends with ".gz".
            metadata: what else to say of the program.
        """
        events = [
            {
                "ph": "X",
                "cat": {"op": "cpu_op", "backward": "cpu_op", "user": "user_annotation"}[
                    event.kind
                ],
                "name": event.name,
                "pid": os.getpid(),
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.cpu_time_total,
                "args": {
                    **({"Input Dims": event.input_shapes} if event.input_shapes else {}),
                    **({"Call stack": event.stack[0]} if event.stack else {}),
                },
            }
            for event in self
            if isinstance(event, FunctionEvent)
        ]
        trace = {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}
        text = json.dumps({**(metadata or {}), **trace})
        if os.fspath(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Writes "outer;inner self-time" lines, as flame graph programs read them.

        Args:
            path: a text file.
            metric: "self_cpu_time_total", or "self_cuda_time_total", which is the same here.
        """
        if metric not in ("self_cpu_time_total", "self_cuda_time_total"):
            raise ValueError(
                f"export_stacks: metric should be one of: self_cpu_time_total, "
                f"self_cuda_time_total; got {metric!r}"
            )
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                if isinstance(event, FunctionEvent):
                    file.write(f"{_path_of(event)} {int(event.self_cpu_time_total)}\n")


def _path_of(event: FunctionEvent) -> str:
    names = [event.name, *event.stack]
    while event.cpu_parent is not None:
        event = event.cpu_parent
        names.append(event.name)
    return ";".join(name.replace(";", ",") for name in reversed(names))


def _time(us: float, unit: str | None) -> str:
    if unit is None:
        return format_time(us)
    return f"{us / _UNITS[unit]:.3f}{unit}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _columns(
    rows: Iterable[Any], total: float, unit: str | None, name: int, shapes: int, source: int
) -> list[tuple[str, Callable[[Any], str]]]:
    """The columns of a table: the title, and the text for an event."""

    def share(us: float) -> str:
        return f"{us / total * 100:.2f}%" if total else "0.00%"

    rows = list(rows)
    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda e: _cut(e.key, name)),
        ("Self CPU %", lambda e: share(e.self_cpu_time_total)),
        ("Self CPU", lambda e: _time(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: share(e.cpu_time_total)),
        ("CPU total", lambda e: _time(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: _time(e.cpu_time, unit)),
    ]
    if any(row.cpu_memory_usage for row in rows):
        columns += [
            ("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
        ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if any(row.input_shapes for row in rows):
        columns.append(("Input Shapes", lambda e: _cut(str(e.input_shapes), shapes)))
    if any(row.stack for row in rows):
        columns.append(("Source Location", lambda e: _cut(e.stack[0] if e.stack else "", source)))
    if counts := [row.flops for row in rows if row.flops]:
        power = min(int(math.log10(min(counts)) / 3), len(_FLOPS) - 1)
        columns.append(
            (
                f"Total {_FLOPS[power]}",
                lambda e: f"{e.flops / 1000**power:.3f}" if e.flops else "--",
            )
        )
    return columns


def events_of(ranges: list[Range], with_flops: bool) -> EventList:
    """Returns the events of what the core noted.

    Args:
        ranges: the core's ranges, in the order in which they began.
        with_flops: whether to count operations, for which shapes must have been noted.
    """
    events: list[FunctionEvent] = []
    thread = threading.get_ident()
    for name, kind, start, end, parent, allocated, shapes, site in ranges:
        event = FunctionEvent(
            id=len(events),
            name=f"aten::{name}" if kind == "op" else name,
            kind=kind,
            time_range=Interval(start / 1e3, end / 1e3),
            thread=thread,
            input_shapes=[list(shape) for shape in shapes],
            stack=[site] if site else [],
            cpu_memory_usage=allocated,
        )
        if parent >= 0:
            event.cpu_parent = events[parent]
            events[parent].cpu_children.append(event)
        if with_flops and kind == "op" and not any(outer.flops for outer in _around(event)):
            event.flops = _flops(name, shapes)
        events.append(event)
    return EventList(events)
