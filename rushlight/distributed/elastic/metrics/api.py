"""Streams of numbers, by group, and who is told them."""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "ConsoleMetricHandler",
    "MetricData",
    "MetricHandler",
    "MetricStream",
    "MetricsConfig",
    "NullMetricHandler",
    "configure",
    "getStream",
    "get_elapsed_time_ms",
    "prof",
    "profile",
    "publish_metric",
    "put_metric",
]

_GROUP = "torchelastic"


class MetricData(NamedTuple):
    """A number: when it was measured, in seconds since 1970, of which group, its name and value."""

    timestamp: float
    group_name: str
    name: str
    value: float


class MetricsConfig:
    """Settings of a handler, as texts.

    Args:
        params: by name.
    """

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = params or {}


class MetricHandler(ABC):
    """Who is told numbers; see configure."""

    @abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Is told a number."""


class ConsoleMetricHandler(MetricHandler):
    """Prints numbers."""

    def emit(self, metric_data: MetricData) -> None:
        stamp, group, name, value = metric_data
        print(f"[{stamp}][{group}]: {name}={value}")


class NullMetricHandler(MetricHandler):
    """Does nothing with them."""

    def emit(self, metric_data: MetricData) -> None:
        return


class MetricStream:
    """The numbers of a group.

    Args:
        group_name: its name.
        handler: who is told them.
    """

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name = group_name
        self.handler = handler

    def add_value(self, metric_name: str, metric_value: float) -> None:
        """Tells a number of now."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: dict[str, MetricHandler] = {}  # by group
_default_handler: MetricHandler = NullMetricHandler()


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Sets who is told the numbers of a group, or of all groups without a handler of their own.

    Example:
        >>> from rushlight.distributed.elastic import metrics
        >>> class Printer(metrics.MetricHandler):
        ...     def emit(self, metric_data):
        ...         print(metric_data.name, metric_data.value)
        >>> metrics.configure(Printer(), group="mine")
        >>> metrics.put_metric("loss", 0.5, "mine")
        loss 0.5
    """
    global _default_handler
    if group is None:
        _default_handler = handler
    else:
        _handlers[group] = handler


def getStream(group: str) -> MetricStream:
    """Returns the stream of a group."""
    return MetricStream(group, _handlers.get(group, _default_handler))


def put_metric(metric_name: str, metric_value: float, metric_group: str = _GROUP) -> None:
    """Tells a number of a group."""
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group: str, metric_name: str, metric_value: float) -> None:
    """Tells a number of a group; the older form of put_metric."""
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Returns the milliseconds since a time that time.time() told."""
    return int((time.time() - start_time_in_seconds) * 1000)


def _get_metric_name(fn: Callable[..., Any]) -> str:
    """A function's name, with what it is defined in: its class, or the last part of its module."""
    name = fn.__qualname__
    return name if "." in name else f"{fn.__module__.rpartition('.')[2]}.{name}"


def prof(fn: Any = None, group: str = _GROUP) -> Any:
    """Tells of a function how often it returned or raised, and how long it took.

    Args:
        fn: the function; without it the result is the decorator.
        group: of the numbers NAME.success, NAME.failure and NAME.duration.ms.

    Example:
        >>> from rushlight.distributed.elastic.metrics import prof
        >>> @prof
        ... def double(x):
        ...     return 2 * x
        >>> double(2)
        4
    """

    def measured(function: F) -> F:
        name = _get_metric_name(function)

        @functools.wraps(function)
        def measuring(*args: Any, **kwargs: Any) -> Any:
            begin = time.time()
            how = "failure"
            try:
                result = function(*args, **kwargs)
                how = "success"
            finally:
                put_metric(f"{name}.{how}", 1, group)
                put_metric(f"{name}.duration.ms", get_elapsed_time_ms(begin), group)
            return result

        return measuring  # pyright: ignore[reportReturnType]

    return measured if fn is None else measured(fn)


def profile(group: str = _GROUP) -> Any:
    """Returns a decorator; the older form of prof."""
    return prof(group=group)
