"""The op matrix on CUDA: every op gives there what it gives on the CPU, gradients too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.matrix import (
    ROWS,
    SAMPLED,
    SAMPLES,
    array_of,
    each_sample,
    is_point,
    seen,
    tensor_of,
    tensors_in,
    weighted_sum,
)
from samples import Sample

import rushlight as rl

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

# Their tensors stand for numbers: results are on the default device unless told otherwise.
TAKE_NUMBERS = {"linspace.tensors", "logspace.tensors"}
# Bytes are rounded from floats on CUDA, and from fixed point on the CPU.
RESIZES = {"nn.functional._interpolate"}


def run(name: str, sample: Sample, device: str) -> tuple[list[Any], list[Any]]:
    """The results of an op on a device, and the gradients of what can have them."""
    op = SAMPLES[name]
    points: list[Any] = []
    varies = is_point(op, sample)

    def place(array: np.ndarray) -> Any:
        tensor = tensor_of(array).to(device)
        if op.grad and varies(array):
            points.append(tensor.requires_grad_())
            return tensor.clone()  # which an op may write in place
        return tensor

    filled = sample.map(place)
    options = {"device": device} if name in TAKE_NUMBERS or not sample.arrays() else {}
    results = tensors_in(seen(name)(*filled.args, **filled.kwargs, **options))
    gradients: list[Any] = []
    if points and any(r.requires_grad for r in results):
        total = weighted_sum([r.cpu() for r in results])
        gradients = list(rl.autograd.grad(total, points, allow_unused=True))
    return results, gradients


def assert_same(name: str, mine: list[Any], reference: list[Any]) -> None:
    assert len(mine) == len(reference)
    for on_cuda, on_cpu in zip(mine, reference, strict=True):
        assert (on_cuda is None) == (on_cpu is None)
        if on_cuda is None:
            continue
        assert on_cuda.device.type == "cuda"
        assert on_cuda.dtype is on_cpu.dtype
        tolerance = max(SAMPLES[name].tolerance, 1e-9)
        if on_cpu.dtype is rl.uint8 and name in RESIZES:
            tolerance = 1  # of 255
        np.testing.assert_allclose(
            array_of(on_cuda.cpu()), array_of(on_cpu), rtol=tolerance, atol=tolerance
        )


@each_sample
@pytest.mark.parametrize("name", [n for n in SAMPLED if not ROWS[n]["no_gpu"]])
def test_cuda_agrees_with_the_cpu(name: str, sample: Sample) -> None:
    results, gradients = run(name, sample, "cuda")
    expected, expected_gradients = run(name, sample, "cpu")
    assert_same(name, results, expected)
    assert_same(name, gradients, expected_gradients)
