"""torch.monitor: events, statistics over intervals, and their handlers."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from rushlight import monitor
from rushlight.monitor import Aggregation, Event, Stat

HOUR = datetime.timedelta(hours=1)
NOW = datetime.datetime(2020, 1, 2)


@pytest.fixture
def events() -> Iterator[list[Event]]:
    found: list[Event] = []
    handle = monitor.register_event_handler(found.append)
    yield found
    monitor.unregister_event_handler(handle)
    monitor.unregister_event_handler(handle)


def test_handlers_are_told_of_events_until_they_are_taken_away(events: list[Event]) -> None:
    more: list[Event] = []
    handle = monitor.register_event_handler(more.append)
    event = Event("my.event", NOW, {"a": 1, "b": 2.5, "c": "text", "d": True})
    monitor.log_event(event)
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    assert events == [event, event] and more == [event]
    assert (event.name, event.timestamp, event.data["c"]) == ("my.event", NOW, "text")


def test_a_stat_tells_of_the_values_of_an_interval(events: list[Event]) -> None:
    stat = Stat("s", list(Aggregation), HOUR, max_samples=3)
    assert stat.get() == dict.fromkeys(Aggregation, 0) and stat.count == 0
    for value in (4, 1, 2.5, 100):  # the last one is too much
        stat.add(value)
    told = {"value": 2.5, "mean": 2.5, "count": 3, "sum": 7.5, "max": 4, "min": 1}
    assert [event.name for event in events] == ["torch.monitor.Stat"]
    assert events[0].data == {f"s.{name}": value for name, value in told.items()}
    assert stat.count == 0 and stat.get()[Aggregation.SUM] == 7.5


def test_an_interval_ends_with_the_first_value_after_it(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 10.0
    monkeypatch.setattr(monitor.time, "monotonic", lambda: now)
    stat = Stat("s", [Aggregation.COUNT], datetime.timedelta(seconds=2))
    stat.add(1)
    now = 11.5
    stat.add(1)
    assert not events and stat.count == 2
    now = 12.5
    stat.add(1)
    assert [event.data for event in events] == [{"s.count": 2}] and stat.count == 1
    del stat  # what is left is told at the end
    assert [event.data for event in events] == [{"s.count": 2}, {"s.count": 1}]


def test_stats_can_go_to_tensorboard() -> None:
    written: list[tuple[Any, ...]] = []

    class Writer:
        def add_scalar(self, name: str, value: float, walltime: float) -> None:
            written.append((name, value))

    handle = monitor.register_event_handler(monitor.TensorboardEventHandler(Writer()))
    monitor.log_event(Event("other", NOW, {"x": 1}))
    Stat("s", [Aggregation.SUM], HOUR, 1).add(3)
    monitor.unregister_event_handler(handle)
    assert written == [("s.sum", 3)]


def test_wrong_arguments_are_refused() -> None:
    wrong: Any = monitor
    for call, error in (
        (lambda: wrong.Event(3, NOW, {}), TypeError),
        (lambda: wrong.Event("a", 3, {}), TypeError),
        (lambda: wrong.Event("a", NOW, {"a": [1]}), TypeError),
        (lambda: wrong.log_event("a"), TypeError),
        (lambda: wrong.unregister_event_handler(3), TypeError),
        (lambda: wrong.Stat("a", [Aggregation.SUM], 3), TypeError),
        (lambda: wrong.Stat("a", [Aggregation.SUM], 0 * HOUR), ValueError),
        (lambda: wrong.Stat("a", [77], HOUR), ValueError),
    ):
        with pytest.raises(error):
            call()
