"""Samples of resizing and padding, against matrices of weights along each dim."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, integers, normal, samples


def weights(
    mode: str, size: int, out: int, align_corners: bool, antialias: bool, scale: float | None
) -> np.ndarray:
    """(out, size): the share of every input in every output."""
    o, i = np.arange(out)[:, None], np.arange(size)[None]
    step = size / out if scale is None else 1 / scale
    if mode.startswith("nearest"):
        half = 0.5 if mode == "nearest-exact" else 0.0
        return (i == np.minimum(np.floor((o + half) * step), size - 1)).astype(float)
    if mode == "area":
        inside = (i >= o * size // out) & (i < -(-(o + 1) * size // out))
        return inside / inside.sum(1, keepdims=True)
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    if size == out and (antialias or mode == "linear"):
        return np.eye(size)
    a = -0.5 if antialias else -0.75

    def kernel(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        if mode == "linear":
            return np.maximum(0, 1 - x)
        far = np.where(x < 2, ((x - 5) * x + 8) * x * a - 4 * a, 0)
        return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, far)

    if antialias:
        wide = max(step, 1.0)
        shares = kernel((i + 0.5 - step * (o + 0.5)) / wide)
        return shares / shares.sum(1, keepdims=True)
    at = step * o if align_corners else step * (o + 0.5) - 0.5
    far = np.arange(-size - 4, 2 * size + 4)  # beyond the ends stand the end elements
    shares = kernel(at - far[None])
    return np.stack([shares[:, np.clip(far, 0, size - 1) == k].sum(1) for k in range(size)], 1)


def along(x: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """The last dims of x multiplied by a matrix each."""
    for d, matrix in enumerate(matrices):
        axis = x.ndim - len(matrices) + d
        x = np.moveaxis(np.tensordot(x, matrix, (axis, 1)), -1, axis)
    return x


def along_bytes(x: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """The same for bytes, the last dim first: weights have as many binary digits, 22 at most, as
    leave the largest of them below 2^15, and each dim rounds to bytes.
    """
    sums = x.astype(np.int64)
    for d, matrix in reversed(list(enumerate(matrices))):
        fits = (p for p in range(22) if int(0.5 + matrix.max() * 2 ** (p + 1)) >= 2**15)
        digits = next(fits, 22)
        whole = np.trunc(matrix * 2.0**digits + np.copysign(0.5, matrix)).astype(np.int64)
        axis = x.ndim - len(matrices) + d
        sums = np.moveaxis(np.tensordot(sums, whole, (axis, 1)), -1, axis)
        sums = np.clip((sums + 2**digits // 2) >> digits, 0, 255)
    return sums.astype(np.uint8)


def interpolated(
    x: np.ndarray,
    size: list[int],
    mode: str = "nearest",
    align_corners: bool = False,
    antialias: bool = False,
    scale_d: float | None = None,
    scale_h: float | None = None,
    scale_w: float | None = None,
) -> np.ndarray:
    scales = [scale_d, scale_h, scale_w][3 - len(size) :]
    lengths = zip(x.shape[-len(size) :], size, scales, strict=True)
    matrices = [weights(mode, n, k, align_corners, antialias, s) for n, k, s in lengths]
    return along_bytes(x, matrices) if x.dtype == np.uint8 else along(x, matrices)


def pixels(*shape: int) -> np.ndarray:
    """Bytes, many of them the darkest or the brightest, so that sums leave their range."""
    return np.clip(integers(-128, 384, *shape), 0, 255).astype(np.uint8)


@samples("nn.functional._interpolate", ref=interpolated)
def _interpolate() -> Iterator[Any]:
    yield normal(2, 3, 5), [8]
    yield Sample(normal(2, 2, 4, 5), [8, 3])
    yield Sample(normal(1, 1, 4, 21), [8, 42])
    yield Sample(normal(1, 2, 3, 4, 2), [2, 5, 4])
    yield Sample(normal(2, 2, 5, 7), [8, 3], mode="nearest-exact")
    yield Sample(normal(2, 3, 5), [9], mode="linear")
    yield Sample(normal(1, 2, 4, 5), [7, 9], mode="linear", align_corners=True)
    yield Sample(normal(1, 2, 6, 5), [3, 4], mode="linear", antialias=True)
    yield Sample(normal(1, 1, 2, 3, 4), [3, 2, 5], mode="linear")
    yield Sample(normal(1, 2, 4, 5), [6, 3], mode="cubic")
    yield Sample(normal(1, 2, 7, 5), [3, 8], mode="cubic", antialias=True)
    yield Sample(normal(1, 2, 6, 5), [4, 2], mode="area")
    yield Sample(normal(1, 2, 4, 5), [6, 8], mode="linear", scale_h=1.7, scale_w=1.7)
    for mode in ("linear", "cubic"):
        yield Sample(normal(1, 2, 4, 5), [4, 8], mode=mode, scale_h=1.2, scale_w=1.7)
    yield Sample(normal(1, 1, 1, 1), [3, 2], mode="linear")
    yield Sample(normal(1, 1, 2, 37), [3, 71], mode="linear")
    yield Sample(normal(0, 2, 4, 5), [6, 8], mode="cubic")
    for mode in ("linear", "cubic"):
        yield Sample(pixels(1, 2, 45, 37), [13, 20], mode=mode, antialias=True)
        yield Sample(pixels(2, 1, 19, 5), [7, 23], mode=mode, antialias=True)
        yield Sample(pixels(1, 1, 70, 80), [70, 33], mode=mode)
        yield Sample(pixels(1, 1, 9, 1), [4, 3], mode=mode, align_corners=True)
        yield Sample(pixels(3, 2, 1), [17], mode=mode)
    yield Sample(pixels(1, 1, 2, 700), [3, 1], mode="linear", antialias=True)
    yield Sample(pixels(1, 1, 3, 4, 20), [5, 2, 19], mode="linear")


def padded(how: str) -> Callable[..., np.ndarray]:
    def ref(x: np.ndarray, pad: list[int], value: float = 0) -> np.ndarray:
        amounts = [(0, 0)] * (x.ndim - len(pad) // 2)
        amounts += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
        kept = tuple(
            slice(max(-before, 0), n - max(-after, 0))
            for n, (before, after) in zip(x.shape, amounts, strict=True)
        )
        added = [(max(before, 0), max(after, 0)) for before, after in amounts]
        keywords = {"constant_values": value} if how == "constant" else {}
        return np.pad(x[kept], added, mode=how, **keywords)

    return ref


NUMPY_MODES = {
    "constant": "constant",
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}


@samples("constant_pad_nd", ref=padded("constant"))
def constant_pad_nd() -> Iterator[Any]:
    yield normal(3, 4), [1, 2]
    yield normal(3, 4), [-1, 2, 1, -2], 2.5
    yield normal(2, 3, 4), [0, 0, -3, 0]
    yield normal(2, 0, 4), [1, 1, 2, 0]
    yield normal(3, 4), []
    yield integers(-9, 9, 3, 4), [1, 1], 2


@samples(
    "nn.functional.pad",
    ref=lambda x, pad, mode="constant", value=None: padded(NUMPY_MODES[mode])(
        x, pad, *([] if value is None else [value])
    ),
)
def pad() -> Iterator[Any]:
    yield normal(3, 4), [1, 2]
    yield Sample(normal(3, 4), [1, 2, 0, 1], value=3.0)
    for mode in ("reflect", "replicate", "circular"):
        yield Sample(normal(2, 3, 5), [2, 1], mode)
        yield Sample(normal(2, 3, 4, 5), [2, 1, 0, 3], mode)
        yield Sample(normal(1, 2, 3, 4, 5), [1, 1, 2, 0, 1, 2], mode)
        yield Sample(normal(2, 1, 40), [2, 1], mode)
        yield Sample(integers(-(2**62), 2**62, 2, 3, 5), [2, 1], mode)
        yield Sample(normal(2, 3, 5), [0, 0], mode)
    yield Sample(normal(2, 3, 5), [2, -1], "circular")
    yield Sample(normal(2, 3, 5), [7, 6], "replicate")
