"""vision.ops against torchvision: values, gradients and errors of the same calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import ops

pytorch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision", exc_type=ImportError)
theirs = torchvision.ops

GENERATOR = np.random.default_rng(4)


def boxes(count: int, size: float = 40.0) -> np.ndarray:
    corner = GENERATOR.uniform(-5, size, (count, 2))
    far = corner + GENERATOR.uniform(0.5, size, (count, 2))
    return np.concatenate([corner, far], 1).astype(np.float32)


def rois(count: int, images: int = 2) -> np.ndarray:
    image = GENERATOR.integers(0, images, (count, 1)).astype(np.float32)
    return np.concatenate([image, boxes(count)], 1)


def numbers(*shape: int) -> np.ndarray:
    return GENERATOR.normal(size=shape).astype(np.float32)


def both(call: Callable[..., Any], *arrays: np.ndarray, learns: int = 1) -> None:
    """Compares call(ops, *tensors) and the gradients of the first `learns` arrays."""
    results = []
    for library, module in ((torch, ops), (pytorch, theirs)):
        tensors = [library.from_numpy(array.copy()) for array in arrays]
        for tensor in tensors[:learns]:
            tensor.requires_grad_()
        result = call(module, *tensors)
        if learns:
            weights = np.random.default_rng(0).normal(size=tuple(result.shape))
            (result * library.from_numpy(weights.astype(np.float32))).sum().backward()
        results.append([result.detach().numpy(), *(t.grad.numpy() for t in tensors[:learns])])
    for ours, reference in zip(*results, strict=True):
        scale = max(1.0, float(np.abs(reference).max(initial=0)))
        np.testing.assert_allclose(ours, reference, rtol=1e-4, atol=2e-5 * scale)


@pytest.mark.parametrize("ratio", [-1, 0, 1, 3])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_roi_align(ratio: int, aligned: bool, scale: float) -> None:
    def call(m: Any, x: Any, r: Any) -> Any:
        return m.roi_align(x, r, (5, 7), scale, ratio, aligned)

    both(call, numbers(2, 3, 19, 23), rois(20))


@pytest.mark.parametrize("name", ["roi_pool", "ps_roi_pool", "ps_roi_align"])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_other_roi_pooling(name: str, scale: float) -> None:
    channels = 4 if name == "roi_pool" else 4 * 6
    x, r = numbers(2, channels, 19, 23), rois(20)
    # torchvision's gradient of ps_roi_pool counts a last row and column that forward leaves out.
    learns = 0 if name == "ps_roi_pool" else 1
    both(lambda m, x, r: getattr(m, name)(x, r, (2, 3), scale), x, r, learns=learns)


def test_rois_as_lists_and_layers() -> None:
    x, first, second = numbers(2, 4, 19, 23), boxes(3), boxes(2)
    both(lambda m, x, a, b: m.roi_align(x, [a, b], 3), x, first, second)
    both(lambda m, x, a, b: m.RoIAlign(3, 0.5, 2)(x, [a, b]), x, first, second)
    both(lambda m, x, a, b: m.RoIPool(3, 0.5)(x, [a, b]), x, first, second)
    both(lambda m, x, a, b: m.PSRoIAlign(2, 0.5, 2)(x, [a, b]), x, first, second)
    both(lambda m, x, a, b: m.PSRoIPool(2, 0.5)(x, [a, b]), x, first, second, learns=0)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_nms(threshold: float) -> None:
    b, s = boxes(300), GENERATOR.permutation(300).astype(np.float32)
    classes = GENERATOR.integers(0, 4, 300)
    both(lambda m, b, s: m.nms(b, s, threshold), b, s, learns=0)
    both(lambda m, b, s, c: m.batched_nms(b, s, c, threshold), b, s, classes, learns=0)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("offset_groups", [1, 2])
@pytest.mark.parametrize("has_mask", [False, True])
def test_deform_conv2d(groups: int, offset_groups: int, has_mask: bool) -> None:
    options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
    x, weight, bias = numbers(2, 4, 9, 8), numbers(6, 4 // groups, 3, 2), numbers(6)
    offset = 2 * numbers(2, 2 * offset_groups * 6, 5, 10)
    mask = numbers(2, offset_groups * 6, 5, 10)

    def call(m: Any, x: Any, o: Any, w: Any, b: Any, k: Any) -> Any:
        return m.deform_conv2d(x, o, w, b, **options, mask=k if has_mask else None) + 0 * k.sum()

    both(call, x, offset, weight, bias, mask, learns=5)


def test_deform_conv2d_at_whole_pixels() -> None:
    x, weight, offset = numbers(1, 3, 7, 7), numbers(2, 3, 3, 3), np.zeros((1, 18, 5, 5), "f4")
    both(lambda m, x, w, o: m.deform_conv2d(x, o, w), x, weight, offset, learns=3)


BOX_FUNCTIONS: list[Callable[..., Any]] = [
    lambda m, a, b: m.box_area(a),
    lambda m, a, b: m.box_iou(a, b),
    lambda m, a, b: m.generalized_box_iou(a, b),
    lambda m, a, b: m.distance_box_iou(a, b),
    lambda m, a, b: m.complete_box_iou(a, b),
    lambda m, a, b: m.box_convert(a, "xyxy", "cxcywh"),
    lambda m, a, b: m.box_convert(a, "cxcywh", "xywh"),
    lambda m, a, b: m.clip_boxes_to_image(a, (20, 30)),
    lambda m, a, b: m.generalized_box_iou_loss(a, b[: len(a)]),
    lambda m, a, b: m.distance_box_iou_loss(a, b[: len(a)], reduction="mean"),
    lambda m, a, b: m.complete_box_iou_loss(a, b[: len(a)], reduction="sum"),
    lambda m, a, b: m.sigmoid_focal_loss(a, (b[: len(a)] > 20).float()),
    lambda m, a, b: m.sigmoid_focal_loss(a, (b[: len(a)] > 20).float(), -1, 1.5, "mean"),
]


@pytest.mark.parametrize("function", BOX_FUNCTIONS)
def test_functions_of_boxes(function: Callable[..., Any]) -> None:
    both(function, boxes(7), boxes(9), learns=1)


ROTATED = ("xywhr", "cxcywhr", "xyxyxyxy")


@pytest.mark.parametrize("fmt", ROTATED)
def test_rotated_boxes(fmt: str) -> None:
    def turned(count: int) -> np.ndarray:
        center, size = GENERATOR.uniform(0, 9, (count, 2)), GENERATOR.uniform(2, 9, (count, 2))
        angle = GENERATOR.uniform(-180, 180, (count, 1))
        return np.concatenate([center, size, angle], 1).astype(np.float32)

    def call(m: Any, a: Any, b: Any) -> Any:
        return m.box_iou(*(m.box_convert(x, "cxcywhr", fmt) for x in (a, b)), fmt=fmt)

    both(call, turned(30), turned(40), learns=0)
    for out in ROTATED:
        both(
            lambda m, a, out=out: m.box_convert(m.box_convert(a, "cxcywhr", fmt), fmt, out),
            turned(5),
            learns=0,
        )


def test_boxes_of_masks_and_small_ones() -> None:
    masks = (GENERATOR.uniform(size=(6, 9, 11)) < 0.03).astype(np.uint8)
    masks[0] = 0
    both(lambda m, x: m.masks_to_boxes(x), masks, learns=0)
    both(lambda m, x: m.remove_small_boxes(x, 12), boxes(40), learns=0)


def test_blocks_of_detectors() -> None:
    ours, reference = ops.FeaturePyramidNetwork([4, 6, 8], 5), None
    extra = theirs.feature_pyramid_network.LastLevelP6P7(8, 5)
    reference = theirs.FeaturePyramidNetwork([4, 6, 8], 5, extra)
    ours = ops.FeaturePyramidNetwork([4, 6, 8], 5, ops.feature_pyramid_network.LastLevelP6P7(8, 5))
    state = {k: torch.from_numpy(v.numpy()) for k, v in reference.state_dict().items()}
    ours.load_state_dict(state)
    maps = [numbers(2, c, s, s) for c, s in ((4, 21), (6, 11), (8, 6))]
    mine = ours({str(i): torch.from_numpy(m) for i, m in enumerate(maps)})
    other = reference({str(i): pytorch.from_numpy(m) for i, m in enumerate(maps)})
    assert list(mine) == list(other)
    for name in mine:
        np.testing.assert_allclose(
            mine[name].detach().numpy(), other[name].detach().numpy(), atol=1e-5
        )
    found = [boxes(5), boxes(4)]
    shapes = [(80, 84), (70, 60)]

    def pooled(m: Any, *tensors: Any) -> Any:
        pool = m.MultiScaleRoIAlign(["0", "1", "2"], 3, 2, canonical_scale=20)
        return pool({str(i): t for i, t in enumerate(tensors[:3])}, list(tensors[3:]), shapes)

    both(pooled, *[numbers(2, 3, s, s) for s in (21, 11, 6)], *found, learns=3)


WRONG: list[Callable[..., Any]] = [
    lambda m, t: m.nms(t.zeros(3, 4), t.zeros(2), 0.5),
    lambda m, t: m.nms(t.zeros(3, 5), t.zeros(3), 0.5),
    lambda m, t: m.nms(t.zeros(4), t.zeros(4), 0.5),
    lambda m, t: m.nms(t.zeros(3, 4).int(), t.zeros(3).int(), 0.5),
    lambda m, t: m.nms(t.zeros(3, 4), t.zeros(3).double(), 0.5),
    lambda m, t: m.roi_align(t.zeros(1, 1, 4, 4), t.zeros(2, 4), 2),
    lambda m, t: m.roi_align(t.zeros(1, 1, 4, 4), [t.zeros(2, 5)], 2),
    lambda m, t: m.roi_align(t.zeros(1, 1, 4, 4), 3, 2),
    lambda m, t: m.roi_align(t.zeros(1, 1, 4, 4), t.zeros(2, 5).double(), 2),
    lambda m, t: m.ps_roi_align(t.zeros(1, 3, 4, 4), t.zeros(2, 5), 2),
    lambda m, t: m.deform_conv2d(t.zeros(1, 1, 6, 6), t.zeros(1, 18, 6, 6), t.zeros(2, 1, 3, 3)),
    lambda m, t: m.deform_conv2d(t.zeros(1, 1, 6, 6), t.zeros(1, 17, 4, 4), t.zeros(2, 1, 3, 3)),
    lambda m, t: m.DeformConv2d(3, 4, 3, groups=2),
    lambda m, t: m.box_convert(t.zeros(2, 4), "xyxy", "abc"),
    lambda m, t: m.box_convert(t.zeros(2, 3), "xyxy", "xywh"),
    lambda m, t: m.box_convert(t.zeros(2, 4), "xyxy", "xywhr"),
    lambda m, t: m.box_area(t.zeros(2, 5), "xywhr"),
    lambda m, t: m.box_iou(t.zeros(2, 4), t.zeros(2, 4), "abc"),
    lambda m, t: m.sigmoid_focal_loss(t.zeros(2), t.zeros(2), alpha=3),
    lambda m, t: m.generalized_box_iou_loss(t.zeros(2, 4), t.zeros(2, 4), reduction="abc"),
    lambda m, t: m.drop_block2d(t.zeros(2, 4), 0.5, 3),
    lambda m, t: m.drop_block2d(t.zeros(1, 1, 4, 4), 1.5, 3),
    lambda m, t: m.drop_block3d(t.zeros(1, 1, 4, 4, 4), 0.5, 4),
    lambda m, t: m.FeaturePyramidNetwork([4, 0], 5),
    lambda m, t: m.MultiScaleRoIAlign(["a"], 7, 2)({"a": t.zeros(1, 1, 2, 2)}, [], []),
]


@pytest.mark.parametrize("call", WRONG)
def test_mistakes_raise_the_same_classes(call: Callable[..., Any]) -> None:
    with pytest.raises(Exception) as reference:  # noqa: PT011
        call(theirs, pytorch)
    with pytest.raises(reference.type):
        call(ops, torch)


def test_layers_read_the_same() -> None:
    for make in (
        lambda m: m.RoIAlign(7, 0.5, 2),
        lambda m: m.RoIPool(7, 0.5),
        lambda m: m.PSRoIAlign(3, 1.0, 1),
        lambda m: m.PSRoIPool(3, 1.0),
        lambda m: m.DropBlock3d(0.1, 3),
        lambda m: m.DeformConv2d(4, 4, 3, groups=2, padding=1, bias=False),
        lambda m: m.MultiScaleRoIAlign(["a"], 7, 2),
    ):
        assert repr(make(ops)) == repr(make(theirs))
