"""The comparison of rushlight.array_api with array-api-strict, the reference implementation."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as rl
import rushlight.array_api as xp

strict = pytest.importorskip("array_api_strict")
warnings.filterwarnings("ignore", module="array_api_strict")
strict.set_array_api_strict_flags(api_version="2024.12")

BOOL = ["bool"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGRAL = SIGNED + UNSIGNED
REAL = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
FLOATING = REAL + COMPLEX
NUMERIC = INTEGRAL + FLOATING
ORDERED = INTEGRAL + REAL
ALL = BOOL + NUMERIC


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Random numbers of a dtype; integers are small with a few from the ends of the range."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype in INTEGRAL:
        limits = np.iinfo(dtype)
        values = generator.integers(0 if limits.min == 0 else -9, 9, shape)
        values = values.astype(dtype)
        flat = values.reshape(-1)
        flat[: 1 if flat.size > 3 else 0] = limits.max
        flat[1 : 2 if flat.size > 3 else 0] = limits.min
        return values
    values = generator.normal(size=shape) * 3
    if dtype in COMPLEX:
        values = values + 1j * generator.normal(size=shape)
    return np.asarray(values, dtype)


def ours(array: np.ndarray) -> Any:
    """The array as a tensor with gaps, so that layout is never the usual one."""
    if array.ndim == 0:
        return rl.from_numpy(np.stack([array, array]))[1]
    return rl.from_numpy(np.repeat(array, 2, axis=-1))[..., ::2]


def theirs(array: np.ndarray) -> Any:
    return strict.asarray(array)


def arrays_in(value: Any, made: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(value, np.ndarray):
        return made(value)
    if isinstance(value, (tuple, list)):
        return type(value)(arrays_in(v, made) for v in value)
    if isinstance(value, dict):
        return {k: arrays_in(v, made) for k, v in value.items()}
    return value


def dtypes_in(value: Any, namespace: Any) -> Any:
    """Names of dtypes, given as "dtype:float32", as the namespace's objects."""
    if isinstance(value, str) and value.startswith("dtype:"):
        return getattr(namespace, value.removeprefix("dtype:"))
    if isinstance(value, dict):
        return {k: dtypes_in(v, namespace) for k, v in value.items()}
    return value


def plain(result: Any) -> np.ndarray:
    return result.numpy() if isinstance(result, rl.Tensor) else np.asarray(result._array)


def function_of(name: str, namespace: Any) -> Callable[..., Any]:
    """A function by its name, as in "linalg.det"."""
    return functools.reduce(getattr, name.split("."), namespace)


def check(name: str, *args: Any, **kwargs: Any) -> None:
    """Calls a function of both namespaces and compares what they return."""
    mine = function_of(name, xp)(*arrays_in(args, ours), **dtypes_in(arrays_in(kwargs, ours), xp))
    reference = function_of(name, strict)(
        *arrays_in(args, theirs), **dtypes_in(arrays_in(kwargs, theirs), strict)
    )
    several = isinstance(reference, (tuple, list))
    pairs = zip(mine, reference, strict=True) if several else [(mine, reference)]
    for one, other in pairs:
        actual, expected = plain(one), plain(other)
        assert actual.dtype == expected.dtype, (name, actual.dtype, expected.dtype)
        assert actual.shape == expected.shape, (name, actual.shape, expected.shape)
        if expected.dtype.kind in "fc":
            single = expected.dtype.name in ("float32", "complex64")
            tolerance = 2e-5 if single else 1e-12
            np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(actual, expected)
