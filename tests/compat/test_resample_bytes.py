"""Resized bytes against PyTorch: the same to the last bit.

Left out: results that are one pixel wide, of images of more than four channels. PyTorch takes their
layout for channels_last and mixes images up.
"""

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")

SIZES = [
    ((500, 400), (224, 224)), ((37, 53), (11, 90)), ((1, 1), (5, 7)), ((64, 64), (64, 31)),
    ((64, 64), (31, 64)), ((17, 300), (40, 13)), ((300, 17), (13, 40)), ((2, 3), (9, 8)),
    ((129, 65), (65, 129)), ((700, 900), (5, 40)), ((33, 33), (33, 33)), ((1, 400), (1, 224)),
    ((90, 2), (31, 2)), ((256, 256), (128, 128)), ((100, 100), (99, 101)),
]  # fmt: skip


def resized(library: Any, pixels: np.ndarray, channels_last: bool, **how: Any) -> np.ndarray:
    images = library.from_numpy(pixels)
    if channels_last:
        images = images.contiguous(memory_format=library.channels_last)
    return library.nn.functional.interpolate(images, **how).numpy()


@pytest.mark.parametrize("channels", [1, 3, 4, 5])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    ("antialias", "align_corners"), [(True, False), (False, False), (False, True)]
)
def test_resized_bytes_are_those_of_pytorch(mode, antialias, align_corners, channels) -> None:
    numbers = np.random.default_rng(0)
    for (before, after), channels_last in itertools.product(SIZES, (False, True)):
        pixels = numbers.integers(-128, 384, (2, channels, *before)).clip(0, 255).astype(np.uint8)
        how = {"size": after, "mode": mode, "antialias": antialias, "align_corners": align_corners}
        ours, theirs = (resized(lib, pixels, channels_last, **how) for lib in (rl, torch))
        assert np.array_equal(ours, theirs), (before, after, channels_last)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_a_side_that_keeps_its_length_is_that_of_pytorch_at_any_scale(
    antialias, mode, dtype
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 5, 8)).astype(dtype)
    for scale in ((1.15, 2.0), (0.5, 1.1), (1.15, 1.1)):
        how = {"scale_factor": scale, "mode": mode, "antialias": antialias}
        ours, theirs = (resized(library, pixels, False, **how) for library in (rl, torch))
        assert np.allclose(ours, theirs, rtol=0, atol=0 if dtype == "uint8" else 1e-3), scale
