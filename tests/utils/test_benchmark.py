"""Timer, Measurement and Compare, with clocks that are known."""

from __future__ import annotations

import threading
from pathlib import Path
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


def test_fuzzers_draw_parameters_and_tensors_by_them() -> None:
    parameters = [
        benchmark.FuzzedParameter("rows", 2, 64, distribution="loguniform"),
        [
            benchmark.FuzzedParameter("step", 1, 3),
            benchmark.FuzzedParameter("scale", 0.5, 2.0),
            benchmark.FuzzedParameter("dims", distribution={1: 0.5, 2: 0.5}, strict=True),
            benchmark.FuzzedParameter("same", distribution={benchmark.ParameterAlias("rows"): 1}),
        ],
    ]
    tensor = benchmark.FuzzedTensor(
        "x",
        size=("rows", 4),
        steps=("step",),
        min_elements=4,
        max_elements=40,
        max_allocation_bytes=100,
        dim_parameter="dims",
        dtype=torch.int16,
        probability_contiguous=0.5,
    )
    rules = [lambda rows, **others: rows % 2 == 0]
    fuzzer = benchmark.Fuzzer(parameters, [tensor], rules, seed=0)
    drawn = list(fuzzer.take(40))
    for tensors, properties, params in drawn:
        x, rows = tensors["x"], params["rows"]
        assert x.shape == (rows, 4)[: params["dims"]] and x.dtype == torch.int16
        assert 4 <= x.numel() <= 40 and rows % 2 == 0 and params["same"] == rows
        assert x.numel() * params["step"] * 2 <= 100 and 0.5 <= params["scale"] <= 2
        assert properties["x"]["is_contiguous"] == x.is_contiguous()
    orders = {tuple(properties["x"]["order"]) for _, properties, _ in drawn}
    assert orders == {(0,), (0, 1), (1, 0)} and 0 < fuzzer.rejection_rate < 1
    for (tensors, _, params), (again, _, same) in zip(drawn, fuzzer.take(40), strict=True):
        assert params == same and torch.equal(tensors["x"], again["x"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.uint8, torch.bool])
def test_fuzzed_tensors_are_as_often_in_order_as_asked(dtype: torch.dtype) -> None:
    def draw(probability: float) -> list[Any]:
        x = benchmark.FuzzedTensor(
            "x", (2, 3), probability_contiguous=probability, roll_parameter=None, dtype=dtype
        )
        return [tensors["x"] for tensors, *_ in benchmark.Fuzzer([], [x], seed=0).take(20)]

    assert all(x.is_contiguous() and x.dtype == dtype for x in draw(1.0))
    assert not any(x.is_contiguous() for x in draw(0.0))
    values = torch.cat([(x.abs() if x.is_complex() else x).double() for x in draw(0.0)])
    assert values.max() <= (126 if dtype == torch.uint8 else 2) and values.min() >= 0
    assert dtype != torch.uint8 or values.min() >= 1


def test_fuzzers_refuse_what_they_cannot_draw() -> None:
    n = benchmark.FuzzedParameter("n", 1, 2)
    for wrong in (
        lambda: benchmark.FuzzedParameter("n", 2, 1),
        lambda: benchmark.FuzzedParameter("n", 0, 1, distribution="loguniform"),
        lambda: benchmark.FuzzedParameter("n", 0, 1, distribution={1: 1.0}),
        lambda: benchmark.FuzzedParameter("n", distribution={}),
        lambda: benchmark.FuzzedParameter("n", distribution={1: 0.0}),
        lambda: benchmark.FuzzedParameter("n", distribution={1: 1.0, 2: -0.5}),
        lambda: benchmark.Fuzzer([n, n], []),
        lambda: next(benchmark.Fuzzer([n], [], [lambda n: n > 2]).take(1)),
        lambda: next(
            benchmark.Fuzzer(
                [
                    benchmark.FuzzedParameter("a", distribution={benchmark.ParameterAlias("b"): 1}),
                    benchmark.FuzzedParameter("b", distribution={benchmark.ParameterAlias("a"): 1}),
                ],
                [],
            ).take(1)
        ),
    ):
        with pytest.raises(ValueError, match=r"Fuzze(r|dParameter):"):
            wrong()


def test_throughput_counts_the_calls_of_all_threads(tmp_path: Path) -> None:
    calls = []

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, scale: float = 1) -> torch.Tensor:
            assert not torch.is_grad_enabled()
            calls.append(threading.get_ident())
            return x * scale

    bench = torch.utils.ThroughputBenchmark(Net())
    with pytest.raises(RuntimeError, match="needs inputs"):
        bench.benchmark()
    bench.add_input(torch.ones(2), scale=2)
    trace = tmp_path / "trace.json"
    stats = bench.benchmark(2, 3, 20, profiler_output_path=str(trace))
    assert stats.num_iters == 20 and len(calls) == 26 and len(set(calls)) == 2
    assert trace.exists() and "Total number of iterations: 20" in str(stats)
    assert bench.run_once(torch.ones(2), 3).tolist() == [3, 3]
    bench.add_input("text", scale=None)
    with pytest.raises(TypeError):
        bench.benchmark(num_iters=100)
