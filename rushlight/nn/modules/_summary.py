"""The table that Module.summary() returns.

Owns the walk, the trial forward and the layout of the table. Imported on first use.
Invariant: summarizing leaves modes, gradients and buffers of the module as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules._multiply_adds import MultiplyAdds

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class SummaryRow:
    """One line of the table: a module at a path."""

    __slots__ = ("branch", "label", "multiply_adds", "output_shape", "parameters", "path")

    def __init__(
        self,
        branch: str,
        label: str,
        path: str,
        output_shape: str | None,
        parameters: int,
        multiply_adds: int | None,
    ) -> None:
        self.branch = branch
        self.label = label
        self.path = path
        self.output_shape = output_shape
        self.parameters = parameters
        self.multiply_adds = multiply_adds


class ModuleSummary:
    """A table of layers; it prints as text and keeps its figures as attributes.

    Attributes:
        rows: one SummaryRow per module, parents first.
        total_parameters: number of elements of all parameters, each shared parameter once.
        trainable_parameters: those of them that require grad.
        bytes: memory of parameters and buffers.
        total_multiply_adds: multiplications of products and convolutions in a forward, each with
            its addition; None without a forward.
    """

    def __init__(self, module: Module, rows: list[SummaryRow]) -> None:
        parameters = list(module.parameters())
        self.rows = rows
        self.total_multiply_adds = rows[0].multiply_adds
        self.total_parameters = _count(parameters)
        self.trainable_parameters = _count(p for p in parameters if p.requires_grad)
        self.bytes = sum(t.numel() * t.element_size() for t in [*parameters, *module.buffers()])

    def __str__(self) -> str:
        with_shapes = any(row.output_shape is not None for row in self.rows)
        table = [["layer", "output shape", "parameters", "multiply-adds"]]
        for row in self.rows:
            cost = "-" if row.multiply_adds is None else f"{row.multiply_adds:,}"
            table.append(
                [row.branch + row.label, row.output_shape or "-", f"{row.parameters:,}", cost]
            )
        if not with_shapes:
            table = [[layer, parameters] for layer, _, parameters, _ in table]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        texts = 2 if with_shapes else 1  # columns before those of numbers
        lines = []
        for cells in table:
            padded = [
                cell.ljust(width) if i < texts else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ]
            lines.append("  ".join(padded))
        cost = f", {self.total_multiply_adds:,} multiply-adds" if with_shapes else ""
        lines.append(
            f"{self.total_parameters:,} parameters ({self.trainable_parameters:,} trainable) "
            f"in {_readable(self.bytes)}{cost}"
        )
        return "\n".join(lines)

    __repr__ = __str__


def summarize(module: Module, example_inputs: tuple[Any, ...], depth: int | None) -> ModuleSummary:
    """Builds the table; see Module.summary."""
    shapes, costs = _trial(module, example_inputs) if example_inputs else ({}, {})

    def rows(
        this: Module, name: str, path: str, branch: str, below: str, level: int
    ) -> Iterator[SummaryRow]:
        label = f"{name} {this._get_name()}".lstrip()
        yield SummaryRow(
            branch, label, path, shapes.get(this), _count(this.parameters()), costs.get(this)
        )
        if level == depth:
            return
        children = [(n, child) for n, child in this._modules.items() if child is not None]
        for i, (child_name, child) in enumerate(children):
            is_last = i == len(children) - 1
            child_path = f"{path}.{child_name}" if path else child_name
            child_branch = below + ("└─ " if is_last else "├─ ")
            child_below = below + ("   " if is_last else "│  ")
            yield from rows(child, child_name, child_path, child_branch, child_below, level + 1)

    return ModuleSummary(module, list(rows(module, "", "", "", "", 0)))


def _trial(
    module: Module, example_inputs: tuple[Any, ...]
) -> tuple[dict[Module, str], dict[Module, int]]:
    """What each module last returned in a trial forward, and its multiplications in all calls."""
    shapes: dict[Module, str] = {}
    costs: dict[Module, int] = {}
    counter = MultiplyAdds()
    starts: list[int] = []  # of the modules that run now, the innermost last

    def enter(this: Module, args: tuple[Any, ...]) -> None:
        starts.append(counter.total)

    def leave(this: Module, args: tuple[Any, ...], output: Any) -> None:
        shapes[this] = _shape(output)
        costs[this] = costs.get(this, 0) + counter.total - starts.pop()

    modes = {this: this.training for this in module.modules()}
    handles = [this.register_forward_pre_hook(enter, prepend=True) for this in modes]
    handles += [this.register_forward_hook(leave) for this in modes]
    try:
        module.eval()
        with rl.no_grad(), counter:
            module(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
        for this, mode in modes.items():
            this.training = mode
    return shapes, costs


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
