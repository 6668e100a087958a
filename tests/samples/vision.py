"""Samples of vision.ops, whose references go sample by sample, box by box."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, distinct, integers, normal, samples, uniform

Bin = Callable[[np.ndarray], float]


def pixel(plane: np.ndarray, y: float, x: float) -> float:
    """The bilinear value at a place, where the edge goes on for a pixel."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    upper = plane[top, left] * (1 - across) + plane[top, right] * across
    lower = plane[bottom, left] * (1 - across) + plane[bottom, right] * across
    return float(upper * (1 - down) + lower * down)


def sampled(
    x: np.ndarray,
    rois: np.ndarray,
    scale: float,
    bins: tuple[int, int],
    ratio: int,
    halved: bool,
    least: float,
    by_planes: bool,
) -> np.ndarray:
    """roi_align and ps_roi_align."""
    channels = x.shape[1] // (bins[0] * bins[1]) if by_planes else x.shape[1]
    out = np.zeros((len(rois), channels, *bins))
    for r, c, i, j in np.ndindex(*out.shape):
        image, x1, y1, x2, y2 = rois[r]
        first = np.array([y1, x1]) * scale - 0.5 * halved
        size = np.maximum(np.array([y2, x2]) * scale - 0.5 * halved - first, least) / bins
        counts = [ratio if ratio > 0 else int(np.ceil(s)) for s in size]
        plane = x[int(image), (c * bins[0] + i) * bins[1] + j if by_planes else c]
        places = [
            first + (np.array([i, j]) + (np.array([k, m]) + 0.5) / counts) * size
            for k in range(counts[0])
            for m in range(counts[1])
        ]
        out[r, c, i, j] = np.mean([pixel(plane, *at) for at in places]) if places else 0
    return out


def whole(x: np.ndarray, rois: np.ndarray, scale: float, bins: tuple[int, int], ps: bool) -> Any:
    """roi_pool and ps_roi_pool."""
    channels = x.shape[1] // (bins[0] * bins[1]) if ps else x.shape[1]
    out = np.zeros((len(rois), channels, *bins))
    for r, c, *at in np.ndindex(*out.shape):
        image, x1, y1, x2, y2 = rois[r]
        # Halves away from zero.
        corners = [np.sign(v) * np.floor(abs(v) + 0.5) for v in np.array([y1, x1, y2, x2]) * scale]
        ranges = []
        for d in range(2):
            size = max(corners[d + 2] - corners[d] + (not ps), 1) / bins[d]
            ends = [corners[d] + at[d] * size, corners[d] + (at[d] + 1) * size]
            most = x.shape[2 + d] - (1 if ps else 0)
            low, high = np.floor(ends[0]), np.ceil(ends[1])
            ranges.append(slice(int(np.clip(low, 0, most)), int(np.clip(high, 0, most))))
        plane = x[int(image), (c * bins[0] + at[0]) * bins[1] + at[1] if ps else c]
        seen = plane[tuple(ranges)]
        out[(r, c, *at)] = (seen.mean() if ps else seen.max()) if seen.size else 0
    return out


def rois(count: int, images: int, size: float) -> np.ndarray:
    """Boxes that also reach out of an image."""
    corner = uniform(count, 2, low=-size / 4, high=size * 0.7)
    boxes = np.concatenate([corner, corner + uniform(count, 2, low=0.3, high=size)], 1)
    return np.concatenate([integers(0, images, count, 1), boxes], 1)


def roi_align_reference(x, boxes, scale, height, width, ratio, aligned):
    least = -np.inf if aligned else 1.0
    return sampled(x, boxes, scale, (height, width), ratio, aligned, least, False)


@samples("vision.ops._roi_align", ref=roi_align_reference, constant=(1,))
def roi_align() -> Iterator[Any]:
    for ratio in (2, -1):
        for aligned in (False, True):
            yield Sample(normal(2, 2, 5, 6), rois(4, 2, 12), 0.5, 2, 3, ratio, aligned)
    yield Sample(normal(1, 2, 3, 1), rois(2, 1, 3), 1.0, 1, 1, 3, True)
    yield Sample(normal(1, 2, 3, 3), np.zeros((0, 5)), 1.0, 2, 2, 2, False)
    yield Sample(normal(1, 0, 3, 3), rois(2, 1, 3), 1.0, 2, 2, 2, False)


@samples(
    "vision.ops._ps_roi_align",
    ref=lambda x, boxes, scale, height, width, ratio: sampled(
        x, boxes, scale, (height, width), ratio, True, -np.inf, True
    ),
    constant=(1,),
)
def ps_roi_align() -> Iterator[Any]:
    for ratio in (2, -1):
        yield Sample(normal(2, 12, 5, 6), rois(4, 2, 6), 1.0, 2, 3, ratio)
    yield Sample(normal(1, 4, 3, 3), np.zeros((0, 5)), 1.0, 2, 2, 2)


@samples(
    "vision.ops._ps_roi_pool",
    ref=lambda x, boxes, scale, height, width: whole(x, boxes, scale, (height, width), True),
    constant=(1,),
)
def ps_roi_pool() -> Iterator[Any]:
    yield Sample(normal(2, 12, 6, 7), rois(4, 2, 12), 0.5, 2, 3)
    yield Sample(normal(1, 4, 1, 3), rois(2, 1, 3), 1.0, 2, 2)


@samples(
    "vision.ops._roi_pool",
    ref=lambda x, boxes, scale, height, width: whole(x, boxes, scale, (height, width), False),
    constant=(1,),
)
def roi_pool() -> Iterator[Any]:
    yield Sample(normal(2, 2, 6, 7), rois(4, 2, 12), 0.5, 2, 3)
    yield Sample(normal(1, 2, 3, 1), rois(3, 1, 6), 1.0, 3, 2)
    yield Sample(normal(1, 2, 3, 3), np.zeros((0, 5)), 1.0, 2, 2)


def kept(boxes: np.ndarray, scores: np.ndarray, threshold: float, classes: Any = None) -> Any:
    stay: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        for j in stay:
            low = np.maximum(boxes[i, :2], boxes[j, :2])
            shared = np.prod(np.maximum(np.minimum(boxes[i, 2:], boxes[j, 2:]) - low, 0))
            areas = [np.prod(boxes[k, 2:] - boxes[k, :2]) for k in (i, j)]
            same = classes is None or classes[i] == classes[j]
            if same and shared / (sum(areas) - shared) > threshold:
                break
        else:
            stay.append(int(i))
    return np.array(stay, dtype=np.int64)


def overlapping(count: int) -> np.ndarray:
    corner = uniform(count, 2, high=8)
    return np.concatenate([corner, corner + uniform(count, 2, low=1, high=6)], 1)


@samples("vision.ops.nms", ref=kept, grad=False)
def nms() -> Iterator[Any]:
    yield Sample(overlapping(70), distinct(70), 0.3)
    yield Sample(overlapping(9), np.zeros(9), 0.1)
    yield Sample(np.zeros((0, 4)), np.zeros(0), 0.5)


@samples(
    "vision.ops.batched_nms",
    ref=lambda boxes, scores, idxs, threshold: kept(boxes, scores, threshold, idxs),
    grad=False,
)
def batched_nms() -> Iterator[Any]:
    yield Sample(overlapping(70), distinct(70), integers(-1, 3, 70), 0.3)
    yield Sample(np.zeros((0, 4)), np.zeros(0), np.zeros(0, dtype=np.int64), 0.5)


def bent(x, weight, offset, mask, bias, stride, padding, dilation):
    n, channels = x.shape[:2]
    outputs, per_group, *kernel = weight.shape
    taps = kernel[0] * kernel[1]
    parts = offset.shape[1] // (2 * taps)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))  # zeros outside, for the samples
    out = np.zeros((n, outputs, *offset.shape[2:]))
    for b, o, i, j in np.ndindex(*out.shape):
        group = o // (outputs // (channels // per_group))
        for c, k in np.ndindex(per_group, taps):
            channel = group * per_group + c
            part = channel // (channels // parts) * taps + k
            y = i * stride[0] - padding[0] + k // kernel[1] * dilation[0]
            at = j * stride[1] - padding[1] + k % kernel[1] * dilation[1]
            y, at = y + offset[b, 2 * part, i, j], at + offset[b, 2 * part + 1, i, j]
            if not (-1 < y < x.shape[2] and -1 < at < x.shape[3]):
                continue
            value = pixel(padded[b, channel], y + 1, at + 1) * weight[o, c].flat[k]
            out[b, o, i, j] += value * (1 if mask is None else mask[b, part, i, j])
    return out if bias is None else out + bias[:, None, None]


@samples("vision.ops._deform_conv2d", ref=bent, tolerance=1e-7)
def deform_conv2d() -> Iterator[Any]:
    def offsets(*shape: int) -> np.ndarray:
        return np.round(normal(*shape) * 4) / 4 + 0.11  # away from whole pixels

    yield Sample(
        normal(2, 4, 5, 4),
        normal(2, 2, 3, 2),
        offsets(2, 24, 3, 4),
        uniform(2, 12, 3, 4),
        normal(2),
        (2, 1),
        (1, 1),
        (1, 2),
    )
    yield Sample(
        normal(1, 2, 4, 4),
        normal(3, 2, 1, 1),
        offsets(1, 2, 4, 4),
        None,
        None,
        (1, 1),
        (0, 0),
        (1, 1),
    )
