"""grid_sample, unfold and fold on CUDA in the sizes that take several blocks of their kernels, and
pixels that many places of a grid see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cuda.numbers import random

import rushlight as rl
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

TOLERANCES = {rl.float64: 1e-11, rl.float32: 1e-4, rl.float16: 8e-3, rl.bfloat16: 6e-2}


def check(function: Callable[..., Any], *inputs: Any) -> None:
    """The result and the gradients against those of the CPU in float64."""
    own = inputs[0].dtype

    def run(device: str, dtype: Any) -> list[Any]:
        points = [t.to(device, dtype).detach().requires_grad_() for t in inputs]
        result = function(*points)
        weights = random(*result.shape, dtype=own, seed=9).to(device, dtype)
        return [result, *rl.autograd.grad(result, points, weights)]

    for mine, reference in zip(run("cuda", own), run("cpu", rl.float64), strict=True):
        assert mine.device.type == "cuda"
        assert mine.dtype is own
        assert mine.shape == reference.shape
        if mine.numel() > 0:
            largest = reference.abs().max().item()
            error = (mine.cpu().double() - reference).abs() / (reference.abs() + 1)
            assert error.max().item() <= TOLERANCES[own] * max(1.0, largest / 8)


def sampled(mode: str, padding: str, align_corners: bool) -> Callable[..., Any]:
    return lambda x, grid: F.grid_sample(x, grid, mode, padding, align_corners)


MODES = [
    (mode, padding) for mode in ("bilinear", "nearest", "bicubic") for padding in
    ("zeros", "border", "reflection")
]  # fmt: skip


@pytest.mark.parametrize(("mode", "padding"), MODES)
def test_images_of_several_blocks(mode: str, padding: str) -> None:
    for align_corners in (False, True):
        grid = 0.8 * random(2, 17, 13, 2, seed=1)
        check(sampled(mode, padding, align_corners), random(2, 5, 11, 7), grid)


@pytest.mark.parametrize(("mode", "padding"), [m for m in MODES if m[0] != "bicubic"])
def test_volumes_of_several_blocks(mode: str, padding: str) -> None:
    grid = 0.8 * random(2, 5, 7, 6, 3, seed=1)
    check(sampled(mode, padding, False), random(2, 3, 4, 5, 6), grid)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float16, rl.bfloat16])
def test_dtypes(dtype: Any) -> None:
    # Halves round a grid, so here it lies on numbers that they have, off the edges of pixels.
    grid = rl.randint(-20, 20, (2, 9, 10, 2), generator=rl.Generator().manual_seed(1)) / 16 + 1 / 64
    check(sampled("bilinear", "zeros", False), random(2, 3, 8, 8, dtype=dtype), grid.to(dtype))


def test_many_places_of_one_pixel() -> None:
    """Runs of equal pixels that are longer than a thread sums, and all that lies outside."""
    middle = 0.1 * random(1, 40, 50, 2, seed=1)
    check(sampled("bilinear", "border", False), random(1, 3, 3, 2), middle)
    check(sampled("bilinear", "zeros", False), random(1, 3, 3, 2), middle + 5)
    check(sampled("nearest", "border", True), random(2, 1, 1, 1), random(2, 30, 30, 2, seed=2))


def test_few_places_of_many_channels() -> None:
    check(sampled("bilinear", "zeros", False), random(1, 300, 4, 4), random(1, 2, 3, 2, seed=1) / 2)


def test_layouts_and_nothing() -> None:
    x, grid = random(2, 4, 6, 5), random(2, 2, 7, 6, seed=1)
    bilinear = sampled("bilinear", "zeros", False)
    check(lambda x, grid: bilinear(x.mT.contiguous().mT, grid.permute(0, 2, 3, 1)), x, grid)
    check(lambda x, grid: bilinear(x[:, :0], grid), x, random(2, 3, 3, 2))
    check(lambda x, grid: bilinear(x, grid[:, :0]), x, random(2, 3, 3, 2))
    for wanted in range(2):
        points = [x.cuda(), random(2, 3, 3, 2, seed=1).cuda()]
        points[wanted].requires_grad_()
        bilinear(*points).sum().backward()
        assert [t.grad is not None for t in points] == [k == wanted for k in range(2)]


def test_second_gradients() -> None:
    def second(device: str) -> list[Any]:
        points = [random(1, 2, 4, 5).to(device), random(1, 3, 4, 2, seed=1).to(device) / 2]
        points = [t.requires_grad_() for t in points]
        result = F.grid_sample(*points, align_corners=False)
        first = rl.autograd.grad(result.square().sum(), points, create_graph=True)
        return list(rl.autograd.grad(sum(g.square().sum() for g in first), points))

    for mine, reference in zip(second("cuda"), second("cpu"), strict=True):
        rl.testing.assert_close(mine.cpu(), reference)


def test_the_same_bits_in_every_run() -> None:
    x, grid = random(1, 3, 6, 6, dtype=rl.float32).cuda(), random(1, 60, 60, 2, seed=1).cuda() / 2

    def gradient() -> Any:
        point = x.clone().requires_grad_()
        F.grid_sample(point, grid.float(), align_corners=False).square().sum().backward()
        return point.grad

    assert rl.equal(gradient(), gradient())


WINDOWS = [
    {"kernel_size": 3},
    {"kernel_size": (2, 4), "stride": (3, 2), "padding": (1, 2)},
    {"kernel_size": (3, 2), "dilation": (2, 3), "padding": 3, "stride": 2},
    {"kernel_size": 1, "stride": 3},
    {"kernel_size": 2, "stride": 5, "padding": 4},
]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("how", WINDOWS)
def test_unfold_and_fold(how: dict[str, Any], dtype: Any) -> None:
    def back(x: Any) -> Any:
        return F.fold(F.unfold(x, **how), x.shape[-2:], **how)

    check(lambda x: F.unfold(x, **how), random(2, 3, 17, 19, dtype=dtype))
    columns = F.unfold(random(2, 3, 17, 19), **how)
    check(lambda x: F.fold(x, (17, 19), **how), random(*columns.shape, dtype=dtype))
    check(back, random(3, 17, 19, dtype=dtype))


def test_unfold_of_other_dtypes_and_layouts() -> None:
    for dtype in (rl.int32, rl.uint8, rl.bool, rl.complex64):
        x = rl.arange(2 * 5 * 6).reshape(1, 2, 5, 6).to(dtype)
        assert rl.equal(F.unfold(x.cuda(), 2, padding=1).cpu(), F.unfold(x, 2, padding=1))
    for dtype in (rl.bool, rl.complex64):
        columns = (rl.arange(8 * 42) % 3).reshape(8, 42).to(dtype)
        mine = F.fold(columns.cuda(), (5, 6), 2, padding=1)
        assert rl.equal(mine.cpu(), F.fold(columns, (5, 6), 2, padding=1))
    x = random(2, 3, 9, 8).mT
    assert rl.equal(F.unfold(x.cuda(), 3).cpu(), F.unfold(x, 3))
    assert F.unfold(rl.zeros(0, 3, 4, 4).cuda(), 2).shape == (0, 12, 9)
