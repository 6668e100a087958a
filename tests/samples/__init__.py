"""Inputs for every op of the table, with a NumPy reference each: what the op matrix walks.

A family file holds functions marked @samples("name", ref=...), named as Python finds the op:
"exp", "max.dim" for an overload, "nn.functional.softplus" outside the root. They yield Sample
objects or bare tuples of arguments. Arrays in float64 become tensors; ints and lists stay.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_generator = np.random.default_rng(20)


@dataclass
class Sample:
    """One call: positional and keyword arguments, arrays where the op takes tensors."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = [str(a.shape) if isinstance(a, np.ndarray) else repr(a) for a in self.args]
        return ", ".join([*shapes, *(f"{k}={v!r}" for k, v in self.kwargs.items())])


@dataclass
class OpSamples:
    """All samples of one op and how to judge its results.

    ref: computes the result (or a tuple) with NumPy; None when no value can be checked.
    grad: whether gradients are compared with finite differences; needs smooth samples.
    second: the same for gradients of gradients.
    tolerance: relative and absolute, in float64.
    """

    name: str
    ref: Callable[..., Any] | None
    make: Callable[[], Iterator[Any]]
    grad: bool
    second: bool
    tolerance: float

    def all(self) -> list[Sample]:
        made = []
        for item in self.make():
            if isinstance(item, Sample):
                made.append(item)
            else:
                made.append(Sample(item if isinstance(item, tuple) else (item,)))
        return made


REGISTRY: dict[str, OpSamples] = {}


def samples(
    *names: str,
    ref: Callable[..., Any] | None = None,
    grad: bool = True,
    second: bool = True,
    tolerance: float = 1e-9,
) -> Callable[[Callable[[], Iterator[Any]]], Callable[[], Iterator[Any]]]:
    """Registers a generator of samples for one op, or for several that share them."""

    def register(make: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
        for name in names:
            if name in REGISTRY:
                raise ValueError(f"op '{name}' has samples already")
            REGISTRY[name] = OpSamples(name, ref, make, grad, second and grad, tolerance)
        return make

    return register


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Normally distributed float64 numbers, the same in every run."""
    return _generator.normal(size=shape) * scale


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Uniformly distributed float64 numbers in [low, high)."""
    return _generator.uniform(low, high, size=shape)


def away_from(*points: float, shape: tuple[int, ...] = (3, 4), distance: float = 0.1) -> np.ndarray:
    """Normal numbers that keep a distance from points where a function is not smooth."""
    values = _generator.normal(size=shape) * 2
    for point in points:
        near = np.abs(values - point) < distance
        values = np.where(near, point + distance * np.where(values >= point, 2, -2), values)
    return values


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    """int64 numbers in [low, high)."""
    return _generator.integers(low, high, size=shape)


def booleans(*shape: int) -> np.ndarray:
    """Random truth values."""
    return _generator.random(size=shape) < 0.5


def load_all() -> dict[str, OpSamples]:
    """Imports every family file and returns the registry."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return REGISTRY
