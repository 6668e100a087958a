"""Timer: runs code often enough to say how long it takes."""

from __future__ import annotations

import statistics
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

import rushlight as rl
from rushlight.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Timer", "timer"]

_MOST_RUNS = 2**31 - 1


def timer() -> float:
    """Returns the time in seconds, once the GPU has done what was asked of it."""
    if rl.cuda.is_available() and rl.cuda.is_initialized():
        rl.cuda.synchronize()
    return timeit.default_timer()


class Timer:
    """Measures code, with one thread unless told, after a first run that is not counted.

    Args:
        stmt: the code, as text.
        setup: runs before each measurement, uncounted.
        global_setup: must be empty: it is for C++.
        timer: returns the time in seconds.
        globals: what the code knows by name; the package as torch besides.
        label: what tables say above.
        sub_label: what they say at the row.
        description: what they say above the column.
        env: says which of several builds or machines this is.
        num_threads: how many threads ops use.
        language: must be Python.

    Raises:
        ValueError: for another language, or with global_setup.

    Example:
        >>> timer = torch.utils.benchmark.Timer("x + 1", globals={"x": torch.ones(8)})
        >>> timer.timeit(100).median < 1
        True
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if str(language).lower() not in ("py", "python", "language.python"):
            raise ValueError(f"Invalid language `{language}`. Only Python is measured here.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`."
            )
        stmt, setup = (textwrap.dedent(text).strip() for text in (stmt, setup))
        names = {"torch": rl, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # a clock may stand still

    def timeit(self, number: int = 1000000) -> Measurement:
        """Returns the time of a number of runs.

        Args:
            number: how many.
        """
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return self._measured(number, [self._time(number)])

    def blocked_autorange(
        self,
        callback: Callable[[int, float], NoReturn] | None = None,
        min_run_time: float = 0.2,
    ) -> Measurement:
        """Returns times of blocks, each of as many runs as make the clock's own time small.

        Args:
            callback: gets the number of runs and the time of each block.
            min_run_time: seconds for all blocks together.

        Example:
            >>> timer = torch.utils.benchmark.Timer("x.sum()", "x = torch.ones(100)")
            >>> len(timer.blocked_autorange(min_run_time=0.01).times) > 0
            True
        """

        def go_on(times: list[float]) -> bool:
            return sum(times) < min_run_time

        with set_torch_threads(self._task_spec.num_threads):
            return self._blocks(self._block_size(min_run_time), go_on, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> Measurement:
        """Returns times of blocks, as many as it takes for them to lie closely together.

        Args:
            threshold: the range of the middle half of the times over the median.
            min_run_time: seconds that they take at least.
            max_run_time: seconds after which there are no more.
            callback: gets the number of runs and the time of each block.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)

            def go_on(times: list[float]) -> bool:
                if sum(times) >= max_run_time:
                    return False
                close = len(times) > 3 and self._measured(number, times).meets_confidence(threshold)
                return sum(times) < min_run_time or not close

            return self._blocks(number, go_on, callback)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def _block_size(self, min_run_time: float) -> int:
        """How many runs make a block: so many that starting the clock does not count."""
        overhead = statistics.median(self._time(0) for _ in range(5))
        number = 1
        while True:
            taken = self._time(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time or number * 10 > _MOST_RUNS:
                return number
            number *= 10

    def _blocks(
        self,
        number: int,
        go_on: Callable[[list[float]], bool],
        callback: Callable[[int, float], NoReturn] | None,
    ) -> Measurement:
        times: list[float] = []
        while not times or go_on(times):
            times.append(self._time(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not offered: blocked_autorange repeats as often as is useful."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> None:
        """Not offered: blocked_autorange does it."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, number: int = 100, **options: Any) -> NoReturn:
        """Not offered: counts of instructions need Valgrind and a build with debug symbols."""
        raise NotImplementedError("collect_callgrind: instructions are not counted here.")
