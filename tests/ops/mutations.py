"""Calls that users get wrong: the samples of an op with one argument changed at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from samples import Sample


def mutations(sample: Sample) -> Iterator[tuple[str, Sample]]:
    """Yields variants of a call, each with a name that says which argument became what."""
    args = list(sample.args)
    for i, value in enumerate(args):
        for name, other in _others(value):
            yield f"{i}: {name}", Sample(*args[:i], other, *args[i + 1 :], **sample.kwargs)
    for key, value in sample.kwargs.items():
        for name, other in _others(value):
            yield f"{key}: {name}", Sample(*args, **{**sample.kwargs, key: other})
    yield "one less", Sample(*args[:-1], **sample.kwargs)
    yield "one more", Sample(*args, object(), **sample.kwargs)


class OnMeta(np.ndarray):
    """An array whose tensor is to be on the device meta."""


def tensor_of(library: Any, array: np.ndarray) -> Any:
    """A tensor with its own copy of an array of a mutated call."""
    tensor = library.from_numpy(np.array(array))
    return tensor.to("meta") if isinstance(array, OnMeta) else tensor


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, np.ndarray):
        yield from _other_arrays(value)
        others: list[Any] = [None, "x", 2, 2.5, 1j, True, [1.0, 2.0]]
    elif isinstance(value, bool):
        others = ["x", 1.5, None]
    elif isinstance(value, int):
        far = [value + 100, value - 100, -1, 0, -3, 2**63 - 1, -(2**63), 2**70]
        others = [*far, 1.5, math.nan, 1j, "x", None, True, [value], (value, value), ()]
    elif isinstance(value, float):
        others = [-1.0, math.nan, math.inf, -math.inf, "x", None, True, 2, 2**70, 1j, [value]]
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], np.ndarray):
        others = [[], value[0], [None], [*value, value[0][None]], [*value, None], list(value[:1])]
        others += [None, 2, [*value, 2.0], [*value, value[0] != 0]]
    elif isinstance(value, (list, tuple)):
        items = list(value)
        far = [x + 100 if isinstance(x, int) else x for x in items]
        others = [[*items, 1], items[:-1], items * 2, far, [-5] * len(items), ["x"], None, 1]
        others += [[], [1.5] * len(items), [None] * len(items), [2**62] * len(items)]
    else:
        others = [None, "x", -3, "", True]
    for other in others:
        yield (repr(other) if not isinstance(other, np.ndarray) else "its first"), other


def _other_arrays(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    is_number = array.dtype.kind in "fc"
    yield (
        "other kind",
        np.asarray(np.abs(array * 3)).astype(np.int64) if is_number else array.astype(float),
    )
    for dtype in (bool, np.float16, np.float32, np.complex128, np.uint8):
        with np.errstate(all="ignore"):
            yield (
                np.dtype(dtype).name,
                (array if dtype in (bool, np.complex128) else array.real).astype(dtype),
            )
    yield "on meta", array.view(OnMeta)
    if array.dtype.kind in "iu":
        yield "100 more", np.asarray(array + 100)
        yield "100 less", np.asarray(array - 100)
    elif is_number and array.size:
        yield "NaN first", np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array)
    yield "one dim more", array[None]
    yield "0-d", np.array(array.reshape(-1)[0] if array.size else 0, array.dtype)
    if array.ndim:
        yield "one dim less", np.asarray(array[0]) if len(array) else array.reshape(-1)
        yield "twice as many rows", np.concatenate([array, array])
        yield "twice as many columns", np.concatenate([array, array], -1)
        yield "no rows", array[:0]
        yield "no columns", array[..., :0]
        yield "one row", array[:1]
        yield "last dims exchanged", array.swapaxes(-1, 0)
