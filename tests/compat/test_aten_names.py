"""torch.ops.aten has gradients, paddings and resampling under PyTorch's names for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compat.comparing import compare

IMAGE = np.random.default_rng(3).normal(size=(2, 4, 6, 6)).astype(np.float32)


def tensors(library: Any, *shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(7)
    return [library.from_numpy(rng.normal(size=shape).astype(np.float32)) for shape in shapes]


def convolution(t: Any, transposed: bool, mask: list[bool]) -> Any:
    shape = (4, 3, 3, 3) if transposed else (3, 4, 3, 3)
    x, w, small, large = tensors(t, (2, 4, 6, 6), shape, (2, 3, 4, 4), (2, 3, 8, 8))
    grad = large if transposed else small
    options = [1, 1], [0, 0], [1, 1], transposed, [0, 0], 1, mask
    return [g for g in t.ops.aten.convolution_backward(grad, x, w, [3], *options) if g is not None]


def pooled(t: Any) -> Any:
    x, small = tensors(t, (2, 4, 6, 6), (2, 4, 3, 3))
    window = [2, 2], [2, 2], [0, 0]
    _, places = t.ops.aten.max_pool2d_with_indices(x, *window)
    most = t.ops.aten.max_pool2d_with_indices_backward(small, x, *window, [1, 1], False, places)
    return most, t.ops.aten.avg_pool2d_backward(small, x, *window, False, True, None)


def classes(t: Any) -> Any:
    (x, grad) = tensors(t, (5, 3), (5,))
    target = t.tensor([0, 2, 1, 1, 2])
    total = t.tensor(5.0)
    each = t.ops.aten.nll_loss_backward(grad, x, target, None, 0, 1, total)
    return each, t.ops.aten.embedding_dense_backward(x, target, 4, -1, False)


def activations(t: Any) -> Any:
    grad, x, y = tensors(t, (3, 5), (3, 5), (3, 5))
    aten = t.ops.aten
    return [
        aten.gelu_backward(grad, x, approximate="tanh"),
        aten.silu_backward(grad, x),
        aten.mish_backward(grad, x),
        aten.hardswish_backward(grad, x),
        aten.hardsigmoid_backward(grad, x),
        aten.hardtanh_backward(grad, x, -0.5, 0.5),
        aten.softplus_backward(grad, x, 1.0, 20.0),
        aten.threshold_backward(grad, x, 0.1),
        aten.tanh_backward(grad, x.tanh()),
        aten.sigmoid_backward(grad, x.sigmoid()),
        aten.mse_loss_backward(grad.sum(), x, y, 1),
        aten.hardswish_(x.clone()),
    ]


def images(t: Any) -> Any:
    aten, x = t.ops.aten, t.from_numpy(IMAGE)
    return [
        aten.reflection_pad2d(x, [1, 2, 0, 1]),
        aten.replication_pad2d(x, [1, 2, 0, 1]),
        aten.reflection_pad1d(x[0], [2, 1]),
        aten._adaptive_avg_pool2d(x, [2, 3]),
        aten._adaptive_avg_pool2d_backward(x[..., :3, :2], x),
        aten.upsample_nearest2d(x, [9, 7]),
        aten.upsample_nearest2d(x, [12, 12], 2.0, 2.0),
        aten.upsample_nearest1d.vec(x[0], None, [2.0]),
        aten._upsample_nearest_exact2d(x, [9, 7]),
        aten.upsample_linear1d(x[0], [9], True),
        aten.upsample_bilinear2d(x, [9, 7], False),
        aten.upsample_bilinear2d.vec(x, None, True, [1.5, 2.0]),
        aten.upsample_bicubic2d.vec(x, [9, 7], False, None),
        aten.upsample_trilinear3d(x[None], [3, 3, 9], False),
    ]


@pytest.mark.parametrize("mask", [[True] * 3, [False, True, False], [True, False, False]])
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_convolution(transposed: bool, mask: list[bool]) -> None:
    compare(lambda t: convolution(t, transposed, mask))


@pytest.mark.parametrize("program", [pooled, classes, activations, images])
def test_operators(program: Any) -> None:
    compare(program)
