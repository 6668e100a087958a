"""Resizing, sampling, padding and unfolding of images, without and with the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cases.case import Call, case

Function = Callable[[Any], Any]


def both(name: str, shape: tuple[int, ...]) -> Callable[[Callable[[Any], Function]], None]:
    """Two cases of a function of images: its call, and its call and gradient."""

    def register(make: Callable[[Any], Function]) -> None:
        @case(name, "ops", 1.0)
        def forward(torch: Any) -> Call:
            x, run = torch.randn(*shape), make(torch)
            return lambda: run(x)

        @case(f"{name}, backward", "ops", 1.0)
        def backward(torch: Any) -> Call:
            x, run = torch.randn(*shape, requires_grad=True), make(torch)
            g = torch.randn(*run(x).shape)
            return lambda: torch.autograd.grad(run(x), x, g)

    return register


@both("interpolate bilinear x2, 8x64x56x56", (8, 64, 56, 56))
def bilinear(torch: Any) -> Function:
    interpolate = torch.nn.functional.interpolate
    return lambda x: interpolate(x, scale_factor=2, mode="bilinear")


@both("interpolate nearest x2, 8x64x56x56", (8, 64, 56, 56))
def nearest(torch: Any) -> Function:
    interpolate = torch.nn.functional.interpolate
    return lambda x: interpolate(x, scale_factor=2)


@both("interpolate bicubic antialias, 8x3x512x512 to 224", (8, 3, 512, 512))
def antialias(torch: Any) -> Function:
    interpolate = torch.nn.functional.interpolate
    return lambda x: interpolate(x, 224, mode="bicubic", antialias=True)


def turned(torch: Any) -> Any:
    """A grid that turns images and partly leaves them."""
    turn = torch.tensor([[[0.9, -0.3, 0.1], [0.3, 0.9, -0.1]]]).expand(8, 2, 3)
    size = (8, 3, 224, 224)
    return torch.nn.functional.affine_grid(turn, size, align_corners=False)


@case("grid_sample, 8x3x224x224", "ops", 1.0)
def grid_sample(torch: Any) -> Call:
    x, grid, sample = torch.randn(8, 3, 224, 224), turned(torch), torch.nn.functional.grid_sample
    return lambda: sample(x, grid, align_corners=False)


@case("grid_sample, 8x3x224x224, backward", "ops", 1.0)
def grid_sample_backward(torch: Any) -> Call:
    x, grid = torch.randn(8, 3, 224, 224, requires_grad=True), turned(torch).requires_grad_()
    g, sample = torch.randn(8, 3, 224, 224), torch.nn.functional.grid_sample
    return lambda: torch.autograd.grad(sample(x, grid, align_corners=False), (x, grid), g)


@both("unfold 3x3, 8x64x56x56", (8, 64, 56, 56))
def unfold(torch: Any) -> Function:
    function = torch.nn.functional.unfold
    return lambda x: function(x, 3, padding=1)


@both("pad reflect, 8x64x56x56", (8, 64, 56, 56))
def reflect(torch: Any) -> Function:
    pad = torch.nn.functional.pad
    return lambda x: pad(x, (1, 1, 1, 1), mode="reflect")


@both("pad constant, 8x64x56x56", (8, 64, 56, 56))
def constant(torch: Any) -> Function:
    pad = torch.nn.functional.pad
    return lambda x: pad(x, (1, 1, 1, 1))
