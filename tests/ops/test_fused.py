"""Every op on deferred inputs, as under torch.compile: the same bits as on those in memory.

Deferred is everything here, however small, so what asks for elements must do so in the right way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from grouping import each
from ops.matrix import (
    DIFFERENTIABLE,
    SAMPLED,
    SAMPLES,
    array_of,
    arrays_of,
    each_differentiable_sample,
    each_sample,
    points_of,
    scalar_of,
    seen,
    tensor_of,
)
from samples import Sample

import rushlight as rl
from rushlight import _C


def computed(tensor: Any) -> Any:
    """The same elements, which nobody has computed yet when formulas are deferred."""
    return tensor & True if tensor.dtype is rl.bool else tensor * 1


def fused(function: Callable[[], Any]) -> Any:
    _C._begin_fusion(1)
    try:
        return function()
    finally:
        _C._end_fusion()


def assert_same(expected: Any, found: Any) -> None:
    assert expected.dtype == found.dtype and expected.shape == found.shape
    assert expected.dtype == object or expected.tobytes() == found.tobytes()


@each("name", SAMPLED, ids=str)
@each_sample
def test_results(name: str, sample: Sample) -> None:
    def results() -> list[np.ndarray]:
        call = sample.map(lambda array: computed(tensor_of(array)))
        return arrays_of(seen(name)(*call.args, **call.kwargs))

    for expected, found in zip(results(), fused(results), strict=True):
        assert_same(expected, found)


@each("name", DIFFERENTIABLE, ids=str)
@each_differentiable_sample
def test_gradients(name: str, sample: Sample) -> None:
    op = SAMPLES[name]
    total = scalar_of(name, op, sample)

    def gradients() -> list[np.ndarray]:
        leaves = [point.requires_grad_() for point in points_of(op, sample)]
        result = total([computed(leaf) for leaf in leaves])
        grads = rl.autograd.grad(result, leaves, allow_unused=True, materialize_grads=True)
        return [array_of(grad) for grad in grads]

    for expected, found in zip(gradients(), fused(gradients), strict=True):
        assert_same(expected, found)
