"""Softmax, normalizations and losses on CUDA in the sizes that take other paths of their kernels.

The op matrix covers arguments with small tensors; here are rows of a part of a warp, of a block and
longer than its registers, odd lengths without vectors, columns, and sums in several pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cuda.numbers import random

import rushlight as rl
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

DTYPES = [rl.float32, rl.float16, rl.bfloat16]
# Relative to 1 + |value|: a rounding or two of the dtype.
TOLERANCES = {rl.float64: 1e-12, rl.float32: 1e-5, rl.float16: 2e-3, rl.bfloat16: 2e-2}


def assert_close(mine: Any, reference: Any, dtype: Any, scale: float = 1) -> None:
    assert mine.device.type == "cuda"
    mine, reference = mine.cpu().double(), reference.double()
    assert mine.shape == reference.shape
    error = ((mine - reference).abs() / (reference.abs() + 1)).max()
    assert error.item() <= scale * TOLERANCES[dtype]


def check(
    function: Callable[..., Any], *inputs: Any, layout: Callable[[Any], Any] = lambda t: t
) -> None:
    """The result and the gradients against those of the CPU in float64."""

    def run(device: str, exact: bool) -> list[Any]:
        points = [(t.double() if exact else t).to(device).detach().requires_grad_() for t in inputs]
        result = function(*[layout(t) if i == 0 else t for i, t in enumerate(points)])
        weights = random(*result.shape, dtype=inputs[0].dtype, seed=9).to(result.dtype).to(device)
        return [result, *rl.autograd.grad(result, points, weights)]

    dtype = inputs[0].dtype
    for k, (mine, reference) in enumerate(zip(run("cuda", False), run("cpu", True), strict=True)):
        # Gradients of parameters are long sums, relative to whose parts the error is small.
        assert_close(mine, reference, dtype, scale=20 if k > 1 else 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(37, 3), (5, 128), (3, 1000), (3, 1001), (2, 9000), (1, 9001)])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_along_rows(function: Any, shape: tuple[int, ...], dtype: Any) -> None:
    check(lambda x: function(x, dim=-1), 3 * random(*shape, dtype=dtype))


@pytest.mark.parametrize("shape", [(2, 3, 50), (2, 70, 37), (300, 2)])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_down_columns(function: Any, shape: tuple[int, ...]) -> None:
    check(lambda x: function(x, dim=-2), random(*shape))
    check(lambda x: function(x, dim=-2), random(*shape).transpose(-1, -2))


def test_softmax_of_unaligned_rows() -> None:
    storage = random(4001)
    check(lambda x: F.softmax(x[1:].reshape(4, 1000), dim=1), storage)


def test_softmax_converts_on_the_way() -> None:
    x = random(3, 600, dtype=rl.float16)
    mine = F.softmax(x.cuda(), dim=1, dtype=rl.float32)
    assert mine.dtype is rl.float32
    assert_close(mine, F.softmax(x.double(), dim=1), rl.float32)


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_infinities_and_nan(dim: int) -> None:
    infinity, nan = float("inf"), float("nan")
    x = rl.tensor([[-infinity, -infinity], [1.0, -infinity], [infinity, 0.0], [nan, 2.0]])
    for function in (F.softmax, F.log_softmax):
        expected = function(x, dim)
        assert rl.allclose(function(x.cuda(), dim).cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(50, 10), (300, 64), (3, 1000), (40, 1001), (2, 9000)])
def test_layer_norm(shape: tuple[int, int], dtype: Any) -> None:
    x = 2 * random(*shape, dtype=dtype) + 3
    weight, bias = random(shape[1], dtype=dtype, seed=1), random(shape[1], dtype=dtype, seed=2)
    check(lambda x, w, b: F.layer_norm(x, shape[1:], w, b), x, weight, bias)
    check(lambda x: F.layer_norm(x, shape[1:]), x)


def test_layer_norm_with_wider_parameters() -> None:
    x, weight = random(7, 264, dtype=rl.float16), random(264, seed=1)
    check(lambda x, w: F.layer_norm(x, [264], w, w), x, weight)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(50, 10), (300, 64), (3, 1000), (2, 9000)])
def test_rms_norm(shape: tuple[int, int], dtype: Any) -> None:
    x, weight = 2 * random(*shape, dtype=dtype) + 3, random(shape[1], dtype=dtype, seed=1)
    check(lambda x, w: F.rms_norm(x, shape[1:], w), x, weight)
    check(lambda x: F.rms_norm(x, shape[1:]), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 6), (3, 6, 41), (2, 6, 9, 9)])
def test_group_norm(shape: tuple[int, ...], dtype: Any) -> None:
    x = 2 * random(*shape, dtype=dtype) + 3
    weight, bias = random(6, dtype=dtype, seed=1), random(6, dtype=dtype, seed=2)
    check(lambda x, w, b: F.group_norm(x, 2, w, b), x, weight, bias)
    check(lambda x: F.group_norm(x, 3), x)


SHAPES = [(6, 5), (3000, 33), (4, 3, 7, 7), (16, 3, 48, 48), (2, 2, 2, 3, 4), (2, 2, 3001)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape: tuple[int, ...], dtype: Any, training: bool) -> None:
    x, channels = 2 * random(*shape, dtype=dtype) + 3, shape[1]
    mean, var = random(channels, seed=3), random(channels, seed=4).abs() + 1

    def normalize(x: Any, weight: Any, bias: Any) -> Any:
        place = {"device": x.device, "dtype": weight.dtype}
        return F.batch_norm(x, mean.to(**place), var.to(**place), weight, bias, training)

    check(normalize, x, random(channels, seed=1), random(channels, seed=2))
    if len(shape) == 4:
        check(
            normalize,
            x,
            random(channels, seed=1),
            random(channels, seed=2),
            layout=lambda t: t.contiguous(memory_format=rl.channels_last),
        )


def test_batch_norm_keeps_digits_far_from_zero() -> None:
    x = random(64, 3, 40, 40) + 1000
    mine = F.batch_norm(x.cuda(), None, None, training=True)
    assert_close(mine, F.batch_norm(x.double(), None, None, training=True), rl.float32, scale=20)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
def test_batch_norm_moves_running_statistics(dtype: Any) -> None:
    x = random(40, 3, 30)
    mean, var = rl.zeros(6, dtype=dtype, device="cuda")[::2], rl.ones(3, device="cuda")
    F.batch_norm(x.cuda(), mean, var, training=True, momentum=0.25)
    flat = x.double().transpose(0, 1).reshape(3, -1)
    assert_close(mean, 0.25 * flat.mean(1), rl.float32)
    assert_close(var, 0.75 + 0.25 * flat.var(1), rl.float32)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(7, 3), (9000, 10), (3, 11, 40, 5)])
def test_nll_loss(shape: tuple[int, ...], reduction: str) -> None:
    generator = rl.Generator().manual_seed(1)
    target = rl.randint(0, shape[1], (shape[0], *shape[2:]), generator=generator)
    target.reshape(-1)[::5] = -100
    weight = random(shape[1], seed=2).abs()

    def loss(x: Any) -> Any:
        classes, weights = target.to(x.device), weight.to(device=x.device, dtype=x.dtype)
        return F.nll_loss(x, classes, weights, reduction=reduction)

    check(loss, random(*shape))


def test_a_class_that_does_not_exist_costs_nan() -> None:
    x, target = random(4, 3).cuda(), rl.tensor([0, 3, -1, -100], device="cuda")
    losses = F.nll_loss(x, target, reduction="none").cpu()
    assert losses.isnan().tolist() == [False, True, True, False]
    assert F.cross_entropy(x, target).cpu().isnan()


def test_a_target_on_another_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="same device, but input is on cuda:0 and target on cpu"):
        F.nll_loss(random(4, 3).cuda(), rl.tensor([0, 1, 2, 0]))
