"""How many calls of a module several threads make in a second."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from dataclasses import dataclass
from itertools import count
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.utils.benchmark.utils.common import select_unit

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(
    time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None
) -> str:
    """Returns a time as text, in the unit that suits it.

    Args:
        time_us, time_ms, time_s: one of them: the time in microseconds, milliseconds or seconds.

    Raises:
        ValueError: if it is not exactly one.

    Example:
        >>> torch.utils.throughput_benchmark.format_time(time_ms=0.25)
        '250.000us'
    """
    units = ((time_us, 1e-6), (time_ms, 1e-3), (time_s, 1.0))
    given = [value * unit for value, unit in units if value is not None]
    if len(given) != 1:
        raise ValueError(f"format_time: takes exactly one time, got {len(given)}")
    unit, scale = select_unit(given[0])
    return f"{given[0] / scale:.3f}{unit}"


@dataclass(frozen=True)
class ExecutionStats:
    """What a benchmark found.

    Attributes:
        latency_avg_ms: how long a call took on average, in milliseconds.
        num_iters: how many calls there were, in all threads.
        num_calling_threads: how many threads there were.
        total_time_seconds: how long they took together, each thread by itself.
        iters_per_second: calls per second of all threads.
    """

    latency_avg_ms: float
    num_iters: int
    num_calling_threads: int

    @property
    def iters_per_second(self) -> float:
        return 1000 * self.num_calling_threads / self.latency_avg_ms

    @property
    def total_time_seconds(self) -> float:
        return self.num_iters * self.latency_avg_ms / 1000

    def __str__(self) -> str:
        return "\n".join(
            [
                f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}",
                f"Total number of iterations: {self.num_iters}",
                "Total number of iterations per second (across all threads): "
                f"{self.iters_per_second:.2f}",
                f"Total time: {format_time(time_s=self.total_time_seconds)}",
            ]
        )


class ThroughputBenchmark:
    """Calls a module from several threads, without gradients, and measures how long that takes.

    Args:
        module: what is called.

    Example:
        >>> bench = torch.utils.ThroughputBenchmark(torch.nn.Linear(2, 3))
        >>> bench.add_input(torch.ones(1, 2))
        >>> stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=20)
        >>> stats.num_iters, stats.latency_avg_ms > 0
        (20, True)
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._inputs: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Adds arguments; each call of the benchmark takes some at random."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the module makes of the arguments."""
        with rl.no_grad():
            return self._module(*args, **kwargs)

    def benchmark(
        self,
        num_calling_threads: int = 1,
        num_warmup_iters: int = 10,
        num_iters: int = 100,
        profiler_output_path: str = "",
    ) -> ExecutionStats:
        """Measures.

        Args:
            num_calling_threads: how many threads call the module.
            num_warmup_iters: how many calls each makes before.
            num_iters: how many calls they make together after that.
            profiler_output_path: where a trace of the calls is written; nowhere if empty.

        Raises:
            RuntimeError: if there are no inputs, or no threads.
        """
        if not self._inputs or num_calling_threads < 1 or num_iters < 1:
            raise RuntimeError(
                f"ThroughputBenchmark: needs inputs (add_input), threads and iterations, got "
                f"{len(self._inputs)}, {num_calling_threads} and {num_iters}"
            )
        numbers = count()
        spent: list[tuple[int, float]] = []
        failures: list[BaseException] = []
        start = threading.Barrier(num_calling_threads)

        def call() -> None:
            try:
                for _ in range(num_warmup_iters):
                    self._call()
                start.wait()
                began, calls = time.perf_counter(), 0
                while next(numbers) < num_iters:
                    self._call()
                    calls += 1
                spent.append((calls, time.perf_counter() - began))
            except BaseException as error:
                failures.append(error)
                start.abort()

        threads = [threading.Thread(target=call) for _ in range(num_calling_threads)]
        trace = rl.profiler.profile() if profiler_output_path else None
        with trace or contextlib.nullcontext():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        if trace:
            trace.export_chrome_trace(profiler_output_path)
        calls = sum(n for n, _ in spent)
        seconds = sum(t for _, t in spent)
        return ExecutionStats(1000 * seconds / calls, calls, num_calling_threads)

    def _call(self) -> None:
        args, kwargs = random.choice(self._inputs)
        self.run_once(*args, **kwargs)
