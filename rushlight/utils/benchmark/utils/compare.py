"""Tables of measurements: a row for each input, a column for each way to compute."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable

from rushlight.utils.benchmark.utils.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

# A time up to so many times the best one has a color of the terminal.
_COLORS = (
    (1.05, "\033[92m\033[1m"),  # bold green
    (1.25, "\033[92m"),
    (2.0, ""),
    (5.0, "\033[31m"),
    (math.inf, "\033[31m\033[1m"),  # bold red
)
_PLAIN = "\033[0m\033[0m"


class Colorize(enum.Enum):
    """What times are compared with to color them."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements, one for each label.

    Args:
        results: the measurements.

    Example:
        >>> bench = torch.utils.benchmark
        >>> def measured(time, name, way):
        ...     spec = bench.TaskSpec("x", "pass", label="sum", sub_label=name, description=way)
        ...     return bench.Measurement(1, [time], spec)
        >>> times = [measured(1e-5, "small", "fast"), measured(2e-5, "small", "slow")]
        >>> bench.Compare(times).print()
        [----------- sum -----------]
                     |  fast  |  slow
        1 threads: ------------------
              small  |  10.0  |  20.0
        <BLANKLINE>
        Times are in microseconds (us).
        <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements.

        Raises:
            ValueError: if something else is among them.
        """
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)}")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Shows only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colors the times by their ratio to the best of the column, or of the row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks the times that vary much."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Prints the table."""
        print(str(self))

    def __str__(self) -> str:
        results = Measurement.merge(self._results)
        return "\n".join(
            self._table([result for result in results if result.task_spec.label == label])
            for label in ordered_unique(result.task_spec.label for result in results)
        )

    def _table(self, results: list[Measurement]) -> str:
        """The table of one label."""
        unit, scale = select_unit(min(result.median for result in results))
        environments = ordered_unique(result.env for result in results)
        columns = ordered_unique(result.task_spec.description for result in results)
        rows = ordered_unique(_row_key(result) for result in results)
        rows.sort(key=lambda row: row[0])  # by threads; equal ones keep their order
        found = {(_row_key(r), r.task_spec.description): r for r in results}
        names = [self._row_name(row, environments) for row in rows]
        width = max(map(len, names)) + 6
        cells = {}
        widths = []
        for column in columns:
            texts = self._column([found.get((row, column)) for row in rows], scale)
            widest = max(len(column or ""), *map(len, texts))
            widths.append(widest)
            cells.update({(row, column): text for row, text in zip(rows, texts, strict=True)})
        heads = [f"{column or '':^{w}}" for column, w in zip(columns, widths, strict=True)]
        lines = ["  |  ".join([" " * width, *heads])]
        threads = None
        for row, name in zip(rows, names, strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(lines[0]), "-"))
            texts = [
                self._colored(found, rows, columns, row, column, cells[row, column].rjust(w))
                for column, w in zip(columns, widths, strict=True)
            ]
            lines.append("  |  ".join([("      " + name).ljust(width), *texts]))
        label = results[0].task_spec.label or results[0].task_spec.stmt.split("\n")[0]
        title = "[" + f" {label} ".center(len(lines[0]) - 2, "-") + "]"
        notes = ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._highlight_warnings:
            notes.append(
                "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return "\n".join([title, *lines, *notes, ""])

    def _row_name(self, row: tuple[int, str, str], environments: list[str]) -> str:
        """The row's name, with the environment if there are several."""
        _, environment, name = row
        return f"({environment}) {name}" if len(environments) > 1 else name

    def _column(self, results: list[Measurement | None], scale: float) -> list[str]:
        """The cells of a column: right-aligned numbers, with warnings behind them."""
        given = [result for result in results if result is not None]
        digits = 1
        if self._trim:
            whole = max(math.ceil(math.log10(result.median / scale)) for result in given)
            digits = max(min(r.significant_figures for r in given) - max(whole, 0), 0)
        numbers, warnings = [], []
        for result in results:
            value = "" if result is None else f"{self._shown(result, scale):.{digits}f}"
            warning = ""
            if result is not None and self._highlight_warnings and result.has_warnings:
                warning = f" (! {result.iqr / result.median * 100:.0f}%)"
            numbers.append(value)
            warnings.append(warning)
        width, behind = max(map(len, numbers)), max(map(len, warnings))
        return [
            number.rjust(width) + warning.ljust(behind)
            for number, warning in zip(numbers, warnings, strict=True)
        ]

    def _shown(self, result: Measurement, scale: float) -> float:
        value = result.median / scale
        return trim_sigfig(value, result.significant_figures) if self._trim else value

    def _colored(
        self,
        found: dict[tuple[tuple[int, str, str], str | None], Measurement],
        rows: list[tuple[int, str, str]],
        columns: list[str | None],
        row: tuple[int, str, str],
        column: str | None,
        text: str,
    ) -> str:
        """A cell in the color of its ratio to the best of its row or column."""
        result = found.get((row, column))
        if self._colorize is Colorize.NONE or result is None:
            return text
        if self._colorize is Colorize.ROWWISE:
            others = [found.get((row, other)) for other in columns]
        else:
            others = [found.get((other, column)) for other in rows]
        best = min(other.median for other in others if other is not None)
        color = next(color for ratio, color in _COLORS if result.median <= best * ratio)
        return f"{color}{text}{_PLAIN}" if color else text


def _row_key(result: Measurement) -> tuple[int, str, str]:
    return result.task_spec.num_threads, result.env, result.as_row_name
