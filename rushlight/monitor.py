"""torch.monitor: events that a program logs, statistics over intervals, and who is told of them.

Handlers are called where the event is logged, by the thread that logs it.
"""

from __future__ import annotations

import datetime
import enum
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

data_value_t = str | float | int | bool
_STAT_EVENT = "torch.monitor.Stat"


class Aggregation(enum.IntEnum):
    """What a Stat tells of the values that it was given."""

    VALUE = 0  # the last one
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


class Event:
    """Something that happened.

    Args:
        name: what kind of event it is; a fixed text, with dots.
        timestamp: when.
        data: numbers, texts and bools that belong to it, by name.

    Raises:
        TypeError: if an argument is something else.
    """

    def __init__(
        self, name: str, timestamp: datetime.datetime, data: Mapping[str, data_value_t]
    ) -> None:
        for value, kind in ((name, str), (timestamp, datetime.datetime)):
            if not isinstance(value, kind):
                raise TypeError(f"Event: expected {kind.__name__}, got {type(value).__name__}")
        self.name = name
        self.timestamp = timestamp
        self.data = dict(data)
        for key, value in self.data.items():
            if not isinstance(key, str) or not isinstance(value, data_value_t):
                raise TypeError(
                    f"Event: data are numbers and texts by name, not {key!r}: {value!r}"
                )


class EventHandlerHandle:
    """Stands for a handler; see register_event_handler."""

    def __init__(self, callback: Callable[[Event], Any]) -> None:
        self._callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], Any]) -> EventHandlerHandle:
    """Calls callback(event) for each event from now on.

    Returns:
        What unregister_event_handler takes.

    Example:
        >>> from datetime import datetime
        >>> monitor = torch.monitor
        >>> handle = monitor.register_event_handler(lambda event: print(event.name, event.data))
        >>> monitor.log_event(monitor.Event("my.epoch", datetime.now(), {"loss": 0.5}))
        my.epoch {'loss': 0.5}
        >>> monitor.unregister_event_handler(handle)
    """
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Ends the calls of a handler; nothing happens if they have ended."""
    if not isinstance(handler, EventHandlerHandle):
        raise TypeError(
            "unregister_event_handler: expected what register_event_handler returned, got "
            f"{type(handler).__name__}"
        )
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Tells all handlers of an event."""
    if not isinstance(event, Event):
        raise TypeError(f"log_event: expected an Event, got {type(event).__name__}")
    for handler in tuple(_handlers):
        handler._callback(event)


class Stat:
    """Sums up values over intervals, and logs an event "torch.monitor.Stat" at the end of each.

    An interval ends with the first value after it, when it has max_samples, or with the Stat.

    Args:
        name: begins the names of its data, "name.sum".
        aggregations: what is told of the values.
        window_size: how long an interval is; it begins at a multiple of that.
        max_samples: how many values count in an interval.

    Example:
        >>> from datetime import timedelta
        >>> Aggregation = torch.monitor.Aggregation
        >>> hour, kinds = timedelta(hours=1), [Aggregation.SUM, Aggregation.MAX]
        >>> stat = torch.monitor.Stat("seconds", kinds, hour, max_samples=2)
        >>> stat.add(1)
        >>> stat.add(3)
        >>> stat.get()[Aggregation.SUM]
        4.0
    """

    def __init__(
        self,
        name: str,
        aggregations: Sequence[Aggregation],
        window_size: datetime.timedelta,
        max_samples: int = sys.maxsize,
    ) -> None:
        if not isinstance(window_size, datetime.timedelta):
            raise TypeError(f"Stat: window_size must be a timedelta, not {window_size!r}")
        if window_size <= datetime.timedelta(0):
            raise ValueError(f"Stat: window_size must be longer than nothing, got {window_size}")
        self.name = name
        self._kinds = [Aggregation(kind) for kind in aggregations]
        self._seconds = window_size.total_seconds()
        self._max_samples = max_samples
        self._lock = threading.RLock()
        self._window = self._current_window()
        self._is_full = False
        self._last = dict.fromkeys(self._kinds, 0.0)
        self._values: list[float] = []

    @property
    def count(self) -> int:
        """The number of values since the last event."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Takes a value in, unless the interval has max_samples already."""
        value = float(v)
        with self._lock:
            window = self._current_window()
            if window != self._window:
                self._log()
                self._window, self._is_full = window, False
            if self._is_full:
                return
            self._values.append(value)
            if len(self._values) >= self._max_samples:
                self._is_full = True
                self._log()

    def get(self) -> dict[Aggregation, float]:
        """Returns what the last event told."""
        return dict(self._last)

    def _current_window(self) -> int:
        return int(time.monotonic() / self._seconds)

    def _log(self) -> None:
        values, self._values = self._values, []
        if not values:
            return
        found = {
            Aggregation.VALUE: values[-1],
            Aggregation.MEAN: sum(values) / len(values),
            Aggregation.COUNT: float(len(values)),
            Aggregation.SUM: sum(values),
            Aggregation.MAX: max(values),
            Aggregation.MIN: min(values),
        }
        self._last = {kind: found[kind] for kind in self._kinds}
        data = {f"{self.name}.{kind.name.lower()}": v for kind, v in self._last.items()}
        log_event(Event(_STAT_EVENT, datetime.datetime.now(), data))

    def __del__(self) -> None:
        if getattr(self, "_values", None):
            self._log()


class TensorboardEventHandler:
    """A handler that writes the data of each Stat to TensorBoard.

    Args:
        writer: a SummaryWriter.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == _STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
