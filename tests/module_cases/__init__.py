"""Modules and functions of nn, called alike here and in PyTorch.

A family file holds CASES: expressions that make a module or a function from the names `torch`,
`nn` and `F`, and the inputs of one call. The expression is the name of the case:

    Case("nn.Linear(3, 4)", floats(5, 3))
    Case("nn.BatchNorm1d(3).eval()", floats(5, 3))
    Case("lambda x: F.pad(x, (1, 2), mode='reflect')", floats(2, 3, 8))

Parameters take numbers from a fixed sequence, so both libraries start alike. A record of a call
holds results, changed buffers, and the gradients of inputs and parameters. PyTorch's records lie
beside the family as NAME.npz. Where PyTorch is installed, and whenever cases change, make them by

    PYTHONPATH=tests python -m module_cases.generate [NAME ...]
"""

from __future__ import annotations

import pkgutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FAMILIES = sorted(
    module.name for module in pkgutil.iter_modules(__path__) if module.name != "generate"
)


@dataclass(frozen=True)
class Numbers:
    """Numbers of a shape, drawn when a case is run: floats in [low, high), or integers."""

    shape: tuple[int, ...]
    low: float
    high: float
    integers: bool


def floats(*shape: int, low: float = -2, high: float = 2) -> Numbers:
    """Floating-point numbers in [low, high), with a gradient."""
    return Numbers(shape, low, high, integers=False)


def ints(*shape: int, low: int = 0, high: int) -> Numbers:
    """int64 numbers in [low, high)."""
    return Numbers(shape, low, high, integers=True)


class Case:
    """One call of a module or function: its expression and the inputs.

    Inputs are Numbers, arrays (bool and integer ones keep their dtype), or any other value.
    `tolerance` is relative to the largest value of each record, in float64.
    """

    def __init__(
        self, expression: str, *inputs: Any, tolerance: float = 1e-6, **keywords: Any
    ) -> None:
        self.expression = expression
        self.inputs = inputs
        self.keywords = keywords
        self.tolerance = tolerance

    def make(self, library: Any, dtype: Any) -> Any:
        """The module, with parameters from the fixed sequence, or the function."""
        names = {"torch": library, "nn": library.nn, "F": library.nn.functional}
        made = eval(self.expression, names)
        if isinstance(made, library.nn.Module):
            made.to(dtype)
            for name, param in made.named_parameters():
                numbers = Numbers(tuple(param.shape), -0.5, 0.5, integers=False)
                values = library.tensor(self._draw(name, numbers), dtype=dtype)
                with library.no_grad():
                    param.copy_(values)
        return made

    def record(self, library: Any, dtype: Any) -> dict[str, np.ndarray]:
        """What a call gives: results, buffers and gradients by name."""
        made = self.make(library, dtype)
        inputs = [
            self._tensor(library, dtype, str(i), value) for i, value in enumerate(self.inputs)
        ]
        keywords = {
            name: self._tensor(library, dtype, name, value) for name, value in self.keywords.items()
        }
        result = made(*inputs, **keywords)

        record: dict[str, np.ndarray] = {}
        loss = 0
        for i, leaf in enumerate(_leaves(library, result)):
            record[f"result {i}"] = leaf.detach().numpy()
            if leaf.requires_grad:
                weights = np.cos(np.arange(leaf.numel())).reshape(tuple(leaf.shape))
                loss = loss + (leaf * library.tensor(weights, dtype=dtype)).sum()
        if isinstance(loss, library.Tensor):
            loss.backward()
        named = [(f"input {i}", value) for i, value in enumerate(inputs)]
        named += [(f"input {name}", value) for name, value in keywords.items()]
        if isinstance(made, library.nn.Module):
            named += made.named_parameters()
            record.update((name, buffer.numpy()) for name, buffer in made.named_buffers())
        for name, value in named:
            if isinstance(value, library.Tensor) and value.grad is not None:
                record[f"{name}.grad"] = value.grad.numpy()
        return record

    def _draw(self, name: str, numbers: Numbers) -> np.ndarray:
        # RandomState is the generator whose numbers NumPy promises never to change.
        seed = zlib.crc32(f"{self.expression} {name}".encode())
        draw = np.random.RandomState(seed)
        if numbers.integers:
            return draw.randint(int(numbers.low), int(numbers.high), numbers.shape, np.int64)
        return draw.uniform(numbers.low, numbers.high, numbers.shape)

    def _tensor(self, library: Any, dtype: Any, name: str, value: Any) -> Any:
        if isinstance(value, Numbers):
            array = self._draw(name, value)
            if value.integers:
                return library.tensor(array)
            return library.tensor(array, dtype=dtype).requires_grad_()
        if isinstance(value, np.ndarray):
            is_float = value.dtype.kind == "f"
            return library.tensor(value, dtype=dtype if is_float else None)
        if isinstance(value, tuple):
            return tuple(
                self._tensor(library, dtype, f"{name}.{i}", item) for i, item in enumerate(value)
            )
        return value


def _leaves(library: Any, result: Any) -> Iterator[Any]:
    if isinstance(result, library.Tensor):
        yield result
    elif isinstance(result, (list, tuple)):
        for item in result:
            yield from _leaves(library, item)


def family(name: str) -> list[Case]:
    """The cases of a family."""
    return import_module(f"{__name__}.{name}").CASES


def references(name: str) -> dict[str, dict[str, np.ndarray]]:
    """PyTorch's records of a family, by expression."""
    records: dict[str, dict[str, np.ndarray]] = {}
    with np.load(file_of(name)) as file:
        for key in file.files:
            expression, _, part = key.rpartition(": ")
            records.setdefault(expression, {})[part] = file[key]
    return records


def file_of(name: str) -> Path:
    """Where PyTorch's records of a family lie."""
    return Path(__file__).parent / f"{name}.npz"


def assert_same(
    ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], tolerance: float
) -> None:
    """Compares records: the same parts, values within tolerance times the largest one."""
    assert sorted(ours) == sorted(theirs)
    for part, expected in theirs.items():
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
        np.testing.assert_allclose(
            ours[part], expected, rtol=0, atol=tolerance * scale, err_msg=part
        )
