"""Inputs for every op of the table, with a NumPy reference each: what the op matrix walks.

A family file holds generators marked @samples("name", ref=...), named as Python finds the op:
"exp", "max.dim" for an overload, "nn.functional.softplus" outside the root. They yield a Sample,
or a bare tuple of arguments, or the only argument. Arrays become tensors; lists and numbers stay.
Each op has its own random numbers, so that a case stays the same whatever else is imported.
"""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

_generator = np.random.default_rng(20)


class Sample:
    """One call: positional and keyword arguments, with arrays where the op takes tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def map(self, change: Callable[[np.ndarray], Any]) -> Sample:
        """The same call with every array, also inside lists, replaced by change(array)."""
        args = [_map(value, change) for value in self.args]
        return Sample(*args, **{name: _map(value, change) for name, value in self.kwargs.items()})

    def arrays(self) -> list[np.ndarray]:
        """All arrays among the arguments, in order."""
        found: list[np.ndarray] = []
        self.map(found.append)
        return found


def _map(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map(v, change) for v in value)
    return value


@dataclass
class OpSamples:
    """All samples of one op and how to judge its results.

    ref: computes the result (or a tuple) with NumPy; None when no value can be checked.
    grad: whether the op has gradients; they and theirs are compared with finite differences.
    second: whether the gradients have gradients.
    constant: positions of the tensors that have no gradient, in a call without keywords.
    tolerance: relative and absolute, in float64.
    seen_as: called with the op and its arguments in place of the op, where a result is not unique
        or an input must be special; ref is for what this gives.
    """

    name: str
    make: Callable[[], Iterator[Any]]
    ref: Callable[..., Any] | None = None
    grad: bool = True
    second: bool = True
    constant: tuple[int, ...] = field(default=())
    tolerance: float = 1e-9
    seen_as: Callable[..., Any] | None = None

    @cached_property
    def all(self) -> list[Sample]:
        global _generator
        _generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        made = []
        for item in self.make():
            if not isinstance(item, Sample):
                item = Sample(*item) if isinstance(item, tuple) else Sample(item)
            made.append(item)
        return made


REGISTRY: dict[str, OpSamples] = {}


def samples(*names: str, **how: Any) -> Callable[[Callable[[], Iterator[Any]]], Any]:
    """Registers a generator of samples for one op, or for several that share it.

    The keywords are the fields of OpSamples.
    """

    def register(make: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
        for name in names:
            if name in REGISTRY:
                raise ValueError(f"op '{name}' has samples already")
            REGISTRY[name] = OpSamples(name, make, **how)
        return make

    return register


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Normally distributed float64 numbers, the same in every run."""
    return np.asarray(_generator.normal(size=shape) * scale)


def complex_normal(*shape: int) -> np.ndarray:
    """Normally distributed complex numbers."""
    return normal(*shape) + 1j * normal(*shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Uniformly distributed float64 numbers in [low, high)."""
    return np.asarray(_generator.uniform(low, high, size=shape))


def away_from(*points: float, shape: tuple[int, ...] = (3, 4), distance: float = 0.1) -> np.ndarray:
    """Normal numbers that keep a distance from points where a function is not smooth."""
    values = _generator.normal(size=shape) * 2
    for point in points:
        near = np.abs(values - point) < distance
        values = np.where(near, point + distance * np.where(values >= point, 2, -2), values)
    return values


def distinct(*shape: int) -> np.ndarray:
    """float64 numbers at least 0.1 apart, in random order: no ties, smooth maxima and sorting."""
    size = int(np.prod(shape))
    return np.asarray((_generator.permutation(size) - size / 2 + 0.25).reshape(shape) / 4)


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    """int64 numbers in [low, high)."""
    return np.asarray(_generator.integers(low, high, size=shape))


def booleans(*shape: int) -> np.ndarray:
    """Random truth values."""
    return np.asarray(_generator.random(size=shape) < 0.5)


def load_all() -> dict[str, OpSamples]:
    """Imports every family file and returns the registry."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return REGISTRY
