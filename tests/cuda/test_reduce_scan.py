"""Reductions and scans on CUDA at the sizes and layouts where their kernels change their ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.matrix import array_of

import rushlight as rl

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

Op = Callable[[Any], Any]

# Sizes below a vector, with tails, of several blocks, and of several pieces.
SHAPES: list[tuple[int, ...]] = [
    (1, 1),
    (3, 5),
    (1, 4099),
    (4099, 1),
    (40, 33),
    (7, 3, 260),
    (2, 40000),
    (40000, 2),
    (3000, 12),
]

REDUCTIONS: dict[str, Op] = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(-1),
    "mean of all": lambda x: x.mean(),
    "nansum": lambda x: x.nansum((0, -1)),
    "prod": lambda x: (x * 0.1 + 1).prod(-1),
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin(-1),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(0),
    "argmax of rows": lambda x: x.argmax(-1),
    "var": lambda x: x.var(-1, correction=0),
    "std": lambda x: x.std(0, correction=0),
    "norm": lambda x: x.norm(2, 0),
    "norm 1": lambda x: x.norm(1, -1),
    "norm 3": lambda x: x.norm(3, 0),
    "norm inf": lambda x: x.norm(float("inf"), 0),
    "logsumexp": lambda x: x.logsumexp(-1),
    "logsumexp of columns": lambda x: x.logsumexp(0),
}

SCANS: dict[str, Op] = {
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum of columns": lambda x: x.cumsum(0),
    "cumprod": lambda x: (x * 0.01 + 1).cumprod(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "logcumsumexp of columns": lambda x: x.logcumsumexp(0),
    "cummax": lambda x: x.cummax(-1).indices,
    "cummin of columns": lambda x: x.cummin(0).values,
}


def random_of(shape: tuple[int, ...]) -> Any:
    return rl.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def assert_same_on_cuda(op: Op, x: Any, tolerance: float = 1e-5) -> None:
    mine, expected = op(x.cuda()), op(x)
    assert mine.device.type == "cuda" and mine.dtype is expected.dtype
    np.testing.assert_allclose(
        array_of(mine.cpu().double()), array_of(expected.double()), tolerance, tolerance
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_of_any_size(name: str, shape: tuple[int, ...]) -> None:
    assert_same_on_cuda(REDUCTIONS[name], random_of(shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_of_any_size(name: str, shape: tuple[int, ...]) -> None:
    assert_same_on_cuda(SCANS[name], random_of(shape), 1e-4)


@pytest.mark.parametrize("op", [lambda x: x.sum(), lambda x: x.argmax(), lambda x: x.cumsum(0)])
def test_many_elements_take_many_blocks(op: Op) -> None:
    assert_same_on_cuda(op, random_of((300_001,)), 1e-3)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x.t(),
        lambda x: x[1:, 3:],
        lambda x: x[::2, ::3],
        lambda x: x.reshape(4, 10, 66).permute(1, 2, 0),
        lambda x: x[:, :1].expand(40, 50),
    ],
)
def test_layouts_that_are_not_row_major(layout: Op) -> None:
    x = random_of((40, 66))
    for dim in (0, -1, (0, -1)):
        assert_same_on_cuda(lambda x, dim=dim: layout(x).sum(dim), x)
    assert_same_on_cuda(lambda x: layout(x).argmin(), x)
    assert_same_on_cuda(lambda x: layout(x).cumsum(0), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "uint8", "int64"])
def test_dtypes(dtype: str) -> None:
    x = (random_of((33, 130)) * 8).abs().to(getattr(rl, dtype))
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-6)
    for dim in (0, 1):
        assert_same_on_cuda(lambda x, dim=dim: x.sum(dim), x, tolerance)
        assert_same_on_cuda(lambda x, dim=dim: x.amax(dim), x)
        assert_same_on_cuda(lambda x, dim=dim: x.argmax(dim), x)
        assert_same_on_cuda(lambda x, dim=dim: x.cumsum(dim), x, tolerance)
        assert_same_on_cuda(lambda x, dim=dim: (x > 20).any(dim), x)


def test_integers_wrap_around() -> None:
    x = rl.full((3,), 2**62)
    assert x.cuda().sum().item() == x.sum().item()
    assert x.cuda().cumsum(0).cpu().tolist() == x.cumsum(0).tolist()


def test_nan_and_infinity() -> None:
    inf, nan = float("inf"), float("nan")
    x = rl.tensor([[1.0, nan, 3.0, nan], [inf, -inf, 2.0, inf], [-inf, -inf, -inf, -inf]])
    for op in (
        lambda x: x.amax(1),
        lambda x: x.max(1).indices,
        lambda x: x.argmin(1),
        lambda x: x.logsumexp(1),
        lambda x: x.nansum(1),
        lambda x: x.cummax(1).indices,
        lambda x: x.logcumsumexp(1),
    ):
        assert_same_on_cuda(op, x)


def test_nothing_is_reduced_to_what_the_cpu_says() -> None:
    x = rl.zeros(3, 0)
    for op in (
        lambda x: x.sum(1),
        lambda x: x.prod(1),
        lambda x: x.mean(1),
        lambda x: x.logsumexp(1),
        lambda x: x.all(1),
        lambda x: x.sum(0),
        lambda x: x.cumsum(1),
    ):
        assert_same_on_cuda(op, x)
    with pytest.raises(IndexError):
        x.cuda().amax(1)


def test_gradients_come_back_through_a_broadcast() -> None:
    grads = []
    for device in ("cpu", "cuda"):
        bias = rl.ones(1, 70, device=device, requires_grad=True)
        x = random_of((300, 70)).to(device)
        ((x * bias).cumsum(1).logsumexp(0)).sum().backward()
        grads.append(array_of(bias.grad.cpu()))
    np.testing.assert_allclose(grads[1], grads[0], 1e-4, 1e-4)


def test_digits_do_not_depend_on_the_run() -> None:
    x = random_of((70_001,)).cuda()
    assert x.sum().item() == x.sum().item()
    assert rl.equal(x.cumsum(0), x.cumsum(0))


def test_meta_tensors_carry_shapes() -> None:
    x = rl.empty(3, 4, device="meta")
    assert x.sum(1).shape == (3,) and x.sum(1).device.type == "meta"
    assert x.max(0).indices.shape == (4,) and x.max(0).indices.dtype is rl.int64
    assert x.cumsum(0).shape == x.cummax(1).values.shape == (3, 4)
    assert x.var(1, keepdim=True).shape == (3, 1) and x.all().shape == ()
