"""Samples of fake quantization and integer products."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import integers, normal, samples


def fake_quantize_ref(
    x: np.ndarray, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> np.ndarray:
    steps = np.rint(x * (1 / np.asarray(scale, x.dtype)).astype(x.dtype)) + zero_point
    return (np.clip(steps, quant_min, quant_max) - zero_point) * scale


def by_channel_ref(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, axis: int, low: int, high: int
) -> np.ndarray:
    sizes = [-1 if d == axis else 1 for d in range(x.ndim)]
    return fake_quantize_ref(x, scale.reshape(sizes), zero_point.reshape(sizes), low, high)


# So fine that finite differences see the gradient that passes straight through, and 0 where numbers
# are cut off at 1. Coarse ones are in tests/compat/test_quantization.py and tests/quantized.
FINE, LAST = 2.0**-40, 2**40


@samples("fake_quantize_per_tensor_affine.number", ref=fake_quantize_ref, tolerance=1e-8)
def fake_quantize_number() -> Iterator[Any]:
    yield normal(3, 4), FINE, 3, -LAST, LAST
    yield normal(), FINE, 0, -LAST, LAST
    yield normal(0, 3), FINE, 0, -LAST, LAST


# Half types do not have so small a scale: it is given as the number of FINEs.
def with_fine_scale(op: Any, x: Any, scale: Any, *rest: Any) -> Any:
    return op(x, scale.double() * FINE, *rest)


def with_scale(ref: Any) -> Any:
    return lambda x, scale, *rest: ref(x, scale * FINE, *rest)


@samples(
    "fake_quantize_per_tensor_affine",
    ref=with_scale(fake_quantize_ref),
    tolerance=1e-8,
    constant=(1, 2),
    seen_as=with_fine_scale,
)
def fake_quantize_per_tensor_affine() -> Iterator[Any]:
    yield normal(3, 4), np.array([1.0]), np.array([3.0]), -LAST, LAST


@samples(
    "fake_quantize_per_channel_affine",
    ref=with_scale(by_channel_ref),
    tolerance=1e-8,
    constant=(1, 2),
    seen_as=with_fine_scale,
)
def fake_quantize_per_channel_affine() -> Iterator[Any]:
    scales, zero_points = np.array([1.0, 0.5, 0.25]), np.array([0.0, 5.0, 15.0])
    yield normal(3, 4), scales, zero_points, 0, -LAST, LAST
    yield normal(2, 3, 2), scales, zero_points, 1, -LAST, LAST


def int_mm_ref(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int32) @ b.astype(np.int32)


@samples("_int_mm", ref=int_mm_ref, grad=False)
def int_mm() -> Iterator[Any]:
    a = integers(-128, 128, 5, 7).astype(np.int8)
    b = integers(-128, 128, 7, 3).astype(np.int8)
    yield a, b
    yield b.T, a.T
    yield a[:, :0], b[:0]
