"""The table that Module.summary() returns.

Owns the walk, the trial forward and the layout of the table. Imported on first use.
Invariant: summarizing leaves modes, gradients and buffers of the module as they were.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules._members import MODULE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from rushlight.nn.modules.module import Module

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class SummaryRow:
    """One line of the table: a module at a path."""

    __slots__ = ("branch", "label", "output_shape", "parameters", "path")

    def __init__(
        self, branch: str, label: str, path: str, output_shape: str | None, parameters: int
    ) -> None:
        self.branch = branch
        self.label = label
        self.path = path
        self.output_shape = output_shape
        self.parameters = parameters


class ModuleSummary:
    """A table of layers; it prints as text and keeps its figures as attributes.

    Attributes:
        rows: one SummaryRow per module, parents first.
        total_parameters: number of elements of all parameters, each shared parameter once.
        trainable_parameters: those of them that require grad.
        bytes: memory of parameters and buffers.
    """

    def __init__(self, module: Module, rows: list[SummaryRow]) -> None:
        parameters = list(module.parameters())
        self.rows = rows
        self.total_parameters = _count(parameters)
        self.trainable_parameters = _count(p for p in parameters if p.requires_grad)
        self.bytes = sum(t.numel() * t.element_size() for t in [*parameters, *module.buffers()])

    def __str__(self) -> str:
        with_shapes = any(row.output_shape is not None for row in self.rows)
        table = [["layer"] + ["output shape"] * with_shapes + ["parameters"]]
        for row in self.rows:
            shape = [row.output_shape or "-"] if with_shapes else []
            table.append([row.branch + row.label, *shape, f"{row.parameters:,}"])
        *widths, last_width = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for *cells, last in table:
            padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
            lines.append("  ".join([*padded, last.rjust(last_width)]))
        lines.append(
            f"{self.total_parameters:,} parameters ({self.trainable_parameters:,} trainable) "
            f"in {_readable(self.bytes)}"
        )
        return "\n".join(lines)

    __repr__ = __str__


def summarize(module: Module, example_inputs: tuple[Any, ...], depth: int | None) -> ModuleSummary:
    """Builds the table; see Module.summary."""
    shapes = _output_shapes(module, example_inputs) if example_inputs else {}

    def rows(
        this: Module, name: str, path: str, branch: str, below: str, level: int
    ) -> Iterator[SummaryRow]:
        label = f"{name} {this._get_name()}".lstrip()
        yield SummaryRow(branch, label, path, shapes.get(this), _count(this.parameters()))
        if level == depth:
            return
        children = [(n, child) for n, child in this._own(MODULE) if child is not None]
        for i, (child_name, child) in enumerate(children):
            is_last = i == len(children) - 1
            child_path = f"{path}.{child_name}" if path else child_name
            child_branch = below + ("└─ " if is_last else "├─ ")
            child_below = below + ("   " if is_last else "│  ")
            yield from rows(child, child_name, child_path, child_branch, child_below, level + 1)

    return ModuleSummary(module, list(rows(module, "", "", "", "", 0)))


def _output_shapes(module: Module, example_inputs: tuple[Any, ...]) -> dict[Module, str]:
    """What each module last returned in a trial forward."""
    shapes: dict[Module, str] = {}

    def note(this: Module, args: tuple[Any, ...], output: Any) -> None:
        shapes[this] = _shape(output)

    modes = {this: this.training for this in module.modules()}
    handles = [this.register_forward_hook(note) for this in modes]
    try:
        module.eval()
        with rl.no_grad():
            module(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
        for this, mode in modes.items():
            this.training = mode
    return shapes


def _shape(output: Any) -> str:
    if isinstance(output, Tensor):
        return str(tuple(output.shape))
    if isinstance(output, (tuple, list)):
        return ", ".join(_shape(item) for item in output)
    return type(output).__name__


def _count(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors)


def _readable(size: int) -> str:
    """A number of bytes with three digits and a unit."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size} {_UNITS[0]}" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"
