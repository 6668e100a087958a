"""Resizing, sampling at points, and padding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._table import converts


@converts("_interpolate")
def interpolate(
    g: Builder,
    input: Value,
    size: Any,
    mode: str = "nearest",
    align_corners: bool = False,
    antialias: bool = False,
    scale_d: float | None = None,
    scale_h: float | None = None,
    scale_w: float | None = None,
) -> Value:
    kind = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "cubic": "cubic"}
    if mode not in kind:
        g.refuse(f"mode {mode!r} has no ONNX form")
    exact = {"coordinate_transformation_mode": "half_pixel"}
    options: Any = {"mode": kind[mode], "antialias": int(antialias), **exact}
    if mode == "nearest":
        options |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif mode == "nearest-exact":
        options["nearest_mode"] = "round_prefer_ceil"
    elif align_corners:
        options["coordinate_transformation_mode"] = "align_corners"
    if antialias:
        options["exclude_outside"] = 1
    if mode == "cubic":
        options["cubic_coeff_a"] = -0.75 if not antialias else -0.5
    count = input.rank - 2
    scales = [scale_d, scale_h, scale_w][3 - count :]
    if all(scale is not None for scale in scales):
        factors = g.constant([1.0, 1.0, *scales], rl.float32)
        return g.op("Resize", input, None, factors, **options)
    sizes = g.ints([g.size(input, 0), g.size(input, 1), *size])
    return g.op("Resize", input, None, None, sizes, **options)


@converts("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    g: Builder,
    input: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    modes = ["linear", "nearest", "cubic"] if g.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    if input.rank == 5 and g.opset < 20:
        g.refuse("volumes need opset_version=20")
    return g.op(
        "GridSample",
        input,
        grid,
        mode=modes[interpolation_mode],
        padding_mode=["zeros", "border", "reflection"][padding_mode],
        align_corners=int(align_corners),
    )


@converts("affine_grid_generator")
def affine_grid(g: Builder, theta: Value, size: Any, align_corners: bool) -> Value:
    if len(size) != 4 or not all(isinstance(s, int) for s in size[2:]):
        g.refuse("only pictures of a fixed size have an ONNX form")
    height, width = size[2:]
    axes = [
        rl.linspace(-1, 1, n) * (1 if align_corners or n == 1 else (n - 1) / n)
        for n in (height, width)
    ]
    axes = [axis if n > 1 else axis * 0 for axis, n in zip(axes, (height, width), strict=True)]
    y, x = rl.meshgrid(*axes, indexing="ij")
    points = rl.stack([x, y, rl.ones_like(x)], -1).reshape(-1, 3).to(theta.dtype)
    made = g.op("MatMul", g.initializer("points", points), g.transpose(theta, [0, 2, 1]))
    return g.reshape(made, [-1, height, width, 2])


@converts("pad", "constant_pad_nd")
def pad(g: Builder, input: Value, pad: Any, mode: str = "constant", value: Any = None) -> Value:
    if not isinstance(mode, str):  # constant_pad_nd has the value there
        mode, value = "constant", mode
    sizes = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]  # of the last dimension first
    if mode == "circular":
        return _circular(g, input, sizes)
    before, after = [0] * input.rank, [0] * input.rank
    for place, (low, high) in enumerate(sizes):
        before[input.rank - 1 - place], after[input.rank - 1 - place] = low, high
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}[mode]
    filled = g.number(value or 0, input) if mode == "constant" else None
    return g.op("Pad", input, g.ints([*before, *after]), filled, mode=kind)


def _circular(g: Builder, input: Value, sizes: list[tuple[int, int]]) -> Value:
    for place, (low, high) in enumerate(sizes):
        dim = input.rank - 1 - place
        parts = [input]
        if low:
            parts.insert(0, g.slice(input, dim, -low, 2**62))
        if high:
            parts.append(g.slice(input, dim, 0, high))
        if len(parts) > 1:
            input = replace(g.op("Concat", *parts, axis=dim), shape=input.shape)
    return input
