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
# are cut off at 1. Coarse ones are in tests/quantized/test_fake_quantize.py.
FINE, LAST = 2.0**-40, 2**40


@samples("fake_quantize_per_tensor_affine", ref=fake_quantize_ref, tolerance=1e-8)
def fake_quantize_per_tensor_affine() -> Iterator[Any]:
    yield normal(3, 4), FINE, 3, -LAST, LAST
    yield normal(), FINE, 0, -LAST, LAST
    yield normal(0, 3), FINE, 0, -LAST, LAST


@samples(
    "fake_quantize_per_tensor_affine.tensor_qparams",
    ref=fake_quantize_ref,
    tolerance=1e-8,
    constant=(1, 2),
)
def fake_quantize_tensor_qparams() -> Iterator[Any]:
    yield normal(3, 4), np.array([FINE]), np.array([3.0]), -LAST, LAST


@samples("fake_quantize_per_channel_affine", ref=by_channel_ref, tolerance=1e-8, constant=(1, 2))
def fake_quantize_per_channel_affine() -> Iterator[Any]:
    scales, zero_points = np.array([FINE, FINE / 2, FINE / 4]), np.array([0.0, 5.0, 15.0])
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
