"""Timer, Measurement and Compare, with clocks that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils import benchmark


class Clock:
    """A clock that only the code that is measured moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


def timer_of(statement: str) -> benchmark.Timer:
    clock = Clock()
    return benchmark.Timer(statement, timer=clock, globals={"clock": clock})


def measured(times: list[float], number: int = 1, **names: Any) -> benchmark.Measurement:
    return benchmark.Measurement(number, times, benchmark.TaskSpec("stmt", "pass", **names))


def test_a_time_is_that_of_one_run() -> None:
    result = timer_of("clock.work(0.25)").timeit(10)
    assert result.raw_times == [2.5] and result.times == [0.25] and result.median == 0.25


def test_code_sees_its_names_and_is_set_up() -> None:
    seen: list[Any] = []
    timer = benchmark.Timer(
        """
            seen.append(x)
            assert torch.get_num_threads() == 2
        """,
        "x = torch.ones(2).sum().item()",
        globals={"seen": seen},
        num_threads=2,
    )
    before = torch.get_num_threads()
    timer.timeit(3)
    assert seen == [2.0] * 5 and torch.get_num_threads() == before  # two runs to warm up


def test_blocks_last_as_long_as_asked() -> None:
    blocks: list[tuple[int, float]] = []
    timer = timer_of("clock.work(1e-3)")
    result = timer.blocked_autorange(lambda *block: blocks.append(block), min_run_time=0.35)
    number = result.number_per_run
    assert blocks == [(number, time) for time in result.raw_times]
    assert sum(result.raw_times) >= 0.35 > sum(result.raw_times[:-1])
    adaptive = timer.adaptive_autorange(min_run_time=0)
    assert len(adaptive.raw_times) == 4 and adaptive.meets_confidence()
    assert len(timer.adaptive_autorange(max_run_time=0.001).raw_times) == 1


def test_statistics_are_numpys() -> None:
    times = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    result = measured(times, 10)
    values = np.array(times) / 10
    assert result.median == pytest.approx(np.median(values))
    assert result.mean == pytest.approx(values.mean())
    low, high = np.percentile(values, [25, 75])
    assert result.iqr == pytest.approx(high - low)
    assert result.has_warnings and not result.meets_confidence()
    assert measured([1.0] * 4).significant_figures == 4
    assert measured([1.0, 1.0, 3.0, 3.0]).significant_figures == 1


def test_measurements_print() -> None:
    text = repr(measured([1e-3, 1.1e-3, 1.2e-3, 9e-3], label="add", sub_label="big"))
    assert text.splitlines()[1:] == [
        "add: big",
        "  Median: 1.15 ms",
        "  IQR:    2.08 ms (1.07 to 3.15)",
        "  4 measurements, 1 runs per measurement, 1 thread",
        "  WARNING: Interquartile range is 180.4% of the median measurement.",
        "           This suggests significant environmental influence.",
    ]


def test_times_of_the_same_code_merge() -> None:
    a, b, c = measured([1.0], 1), measured([4.0], 2), measured([5.0], 1, label="other")
    together = benchmark.Measurement.merge([a, b, c])
    assert [m.times for m in together] == [[1.0, 2.0], [5.0]]


def test_tables_have_rows_columns_and_threads() -> None:
    rows = [
        measured([2e-5], label="sum", sub_label="small", description="old"),
        measured([1e-5], label="sum", sub_label="small", description="new"),
        measured([3e-3], label="sum", sub_label="big", description="old", num_threads=2),
    ]
    table = benchmark.Compare(rows)
    assert [line.rstrip() for line in str(table).splitlines()] == [
        "[------------ sum ------------]",
        "             |   old    |  new",
        "1 threads: --------------------",
        "      small  |    20.0  |  10.0",
        "2 threads: --------------------",
        "      big    |  3000.0  |",
        "",
        "Times are in microseconds (us).",
    ]
    table.trim_significant_figures()
    table.colorize(rowwise=True)
    assert "\033[92m\033[1m" in str(table)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        table.extend_results([3])


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="Only Python"):
        benchmark.Timer("x", language="c++")
    with pytest.raises(ValueError, match="global_setup is C\\+\\+ only"):
        benchmark.Timer("x", global_setup="int x;")
    with pytest.raises(ValueError, match="only a `str`"):
        benchmark.Timer(lambda: 3)
    timer = benchmark.Timer("unknown_name")
    with pytest.raises(NameError):
        timer.timeit(1)
    for method in (timer.repeat, timer.autorange, timer.collect_callgrind):
        with pytest.raises(NotImplementedError):
            method()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        measured([1.0]).nothing  # noqa: B018
