"""What was measured: times with the code that took them, and how far they can be trusted."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import rushlight as rl

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MAX_DIGITS = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9  # seconds: clocks are not more exact
_WARN_FROM, _WARN_STRONGLY_FROM = 0.1, 0.25  # interquartile range over median

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is measured: the code, and how tables call it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the code if there is none."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        head = f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}"
        return f"{head}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """Returns what runs before, as text."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Returns the title, the description and what runs before."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclass(init=True, repr=False)
class Measurement:
    """Times of one piece of code.

    Attributes:
        number_per_run: how often the code ran for each of the times.
        raw_times: seconds.
        task_spec: what ran.
        metadata: what a program wants to keep with it.

    Example:
        >>> spec = torch.utils.benchmark.TaskSpec("x + 1", "pass", label="add")
        >>> torch.utils.benchmark.Measurement(10, [2e-5, 3e-5, 5e-5], spec).median
        3e-06
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name != "task_spec" and name in {f.name for f in dataclasses.fields(TaskSpec)}:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds for one run of the code."""
        return [time / self.number_per_run for time in self.raw_times]

    @cached_property
    def _sorted(self) -> list[float]:
        return sorted(self.times)

    def _quantile(self, share: float) -> float:
        """The time below which a share of the times lies, between the two nearest ones."""
        if not self._sorted:
            raise AssertionError("Measurement: there are no times.")
        place = share * (len(self._sorted) - 1)
        low = math.floor(place)
        high = min(low + 1, len(self._sorted) - 1)
        return self._sorted[low] + (self._sorted[high] - self._sorted[low]) * (place - low)

    @property
    def median(self) -> float:
        """The middle time in seconds."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean time in seconds."""
        return statistics.fmean(self._sorted)

    @property
    def iqr(self) -> float:
        """The range of the middle half of the times."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, an estimate.

        The middle half of the times is taken as normally distributed, which leaves out the far
        ones; the digits are those above its 90 % confidence interval.
        """
        count = len(self._sorted)
        middle = self._sorted[count // 4 : math.ceil(3 * count / 4)]
        deviation = statistics.pstdev(middle)
        interval = max(1.645 * deviation / math.sqrt(len(middle)), _MIN_CONFIDENCE_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MAX_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary much."""
        return bool(self._warning)

    @property
    def _warning(self) -> str:
        spread = self.iqr / self.median if self.median else 0.0
        if spread < _WARN_FROM:
            return ""
        cause = "This suggests significant environmental influence."
        if spread < _WARN_STRONGLY_FROM:
            cause = "This could indicate system fluctuation."
        return (
            f"  WARNING: Interquartile range is {spread * 100:.1f}% of the median measurement.\n"
            f"           {cause}"
        )

    def meets_confidence(self, threshold: float = _WARN_FROM) -> bool:
        """Returns whether the middle half of the times lies closely together.

        Args:
            threshold: the largest range over the median.
        """
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What the measurement is called."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Which of several builds or machines ran, if that was said."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """What tables call the row."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count = len(self._sorted)
        unit, scale = select_unit(self.median)
        lines = [f"{object.__repr__(self)}", self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            spread = self.iqr / scale
            lines.append(f"  IQR:    {spread:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if count > 1 else ','}"
        threads = self.task_spec.num_threads
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {runs} "
            f"{threads} thread{'s' if threads > 1 else ''}"
        )
        return "\n".join([*lines, *([self._warning] if self._warning else [])])

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Returns measurements with the times of those of the same code together.

        Args:
            measurements: any. Of code that ran differently often for its times, those of one run
                are told.
        """
        groups: dict[TaskSpec, list[Measurement]] = defaultdict(list)
        for measurement in measurements:
            groups[measurement.task_spec].append(measurement)
        return [_together(group) for group in groups.values()]


def _together(group: list[Measurement]) -> Measurement:
    """One measurement of several; with times for one run if they differ in how many they had."""
    numbers = {measurement.number_per_run for measurement in group}
    number = numbers.pop() if len(numbers) == 1 else 1
    times = [time * number for measurement in group for time in measurement.times]
    return Measurement(number, times, group[0].task_spec)


def select_unit(t: float) -> tuple[str, float]:
    """Returns the unit in which a time is best read, and its length in seconds.

    Example:
        >>> torch.utils.benchmark.select_unit(3e-5)
        ('us', 1e-06)
    """
    unit = next((name for name, size in reversed(_UNITS.items()) if t >= size), "ns")
    return unit, _UNITS[unit]


def unit_to_english(u: str) -> str:
    """Returns the name of a unit."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """Returns a number rounded to n digits.

    Example:
        >>> torch.utils.benchmark.trim_sigfig(1234.0, 2)
        1200.0
    """
    if x == 0:
        return 0.0
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(math.floor(x / scale + 0.5) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Returns the elements, each once, in the order in which they first come."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Sets how many threads ops use in a with block."""
    before = rl.get_num_threads()
    try:
        rl.set_num_threads(n)
        yield
    finally:
        rl.set_num_threads(before)
