"""Boxes, overlaps and blocks of detectors, against NumPy; and what the ops refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import ops

GENERATOR = np.random.default_rng(5)


def boxes(count: int) -> Any:
    corner = GENERATOR.uniform(-5, 20, (count, 2))
    return torch.from_numpy(np.c_[corner, corner + GENERATOR.uniform(1, 20, (count, 2))])


def overlap(a: np.ndarray, b: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Of two boxes: their overlap, the area that they cover, and the sides of their hull."""
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    covered = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - np.prod(sides)
    hull = np.maximum(a[2:], b[2:]) - np.minimum(a[:2], b[:2])
    return np.prod(sides) / covered, covered, hull


def generalized(a: np.ndarray, b: np.ndarray) -> float:
    iou, covered, hull = overlap(a, b)
    return iou - (np.prod(hull) - covered) / np.prod(hull)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    iou, _, hull = overlap(a, b)
    apart = (a[:2] + a[2:] - b[:2] - b[2:]) / 2
    return iou - (apart**2).sum() / (hull**2).sum()


def complete(a: np.ndarray, b: np.ndarray) -> float:
    angles = [np.arctan((x[2] - x[0]) / (x[3] - x[1])) for x in (a, b)]
    v = 4 / np.pi**2 * (angles[0] - angles[1]) ** 2
    return distance(a, b) - v * v / (1 - overlap(a, b)[0] + v)


@pytest.mark.parametrize(
    ("pairwise", "loss", "reference"),
    [
        (ops.box_iou, None, lambda a, b: overlap(a, b)[0]),
        (ops.generalized_box_iou, ops.generalized_box_iou_loss, generalized),
        (ops.distance_box_iou, ops.distance_box_iou_loss, distance),
        (ops.complete_box_iou, ops.complete_box_iou_loss, complete),
    ],
)
def test_overlaps_and_their_losses(pairwise: Any, loss: Any, reference: Any) -> None:
    first, second = boxes(6), boxes(6)
    expected = np.array([[reference(a, b) for b in second.numpy()] for a in first.numpy()])
    np.testing.assert_allclose(pairwise(first, second).numpy(), expected, atol=1e-6)
    batched = pairwise(first[None].expand(3, -1, -1), second[None])
    np.testing.assert_allclose(batched[2].numpy(), expected, atol=1e-6)
    if loss is None:
        return
    np.testing.assert_allclose(loss(first, second).numpy(), 1 - np.diag(expected), atol=1e-6)
    mean, total = (loss(first, second, reduction=r).item() for r in ("mean", "sum"))
    assert mean * 6 == pytest.approx(total)
    assert loss(first[:0], second[:0], reduction="mean").item() == 0
    first.requires_grad_()
    loss(first, second, reduction="sum").backward()
    assert bool(torch.isfinite(first.grad).all())


def test_formats_undo_each_other() -> None:
    start = boxes(5)
    for fmt in ("xywh", "cxcywh"):
        there = ops.box_convert(start, "xyxy", fmt)
        np.testing.assert_allclose(
            ops.box_convert(there, fmt, "xyxy").numpy(), start.numpy(), atol=1e-9
        )
        np.testing.assert_allclose(
            ops.box_area(there, fmt).numpy(), ops.box_area(start).numpy(), atol=1e-9
        )
        iou = ops.box_iou(there, there, fmt).numpy()
        np.testing.assert_allclose(iou, ops.box_iou(start, start).numpy(), atol=1e-9)
    turned = torch.cat((ops.box_convert(start, "xyxy", "cxcywh"), torch.full((5, 1), 40.0)), 1)
    for fmt in ("xywhr", "xyxyxyxy"):
        there = ops.box_convert(turned, "cxcywhr", fmt)
        again = ops.box_convert(there, fmt, "cxcywhr")
        np.testing.assert_allclose(again.numpy(), turned.numpy(), atol=1e-9)
    whole = ops.box_convert(torch.tensor([[1, 2, 5, 9, 30]]), "xywhr", "cxcywhr")
    assert whole.dtype == torch.int64


def test_overlap_of_turned_boxes() -> None:
    square = torch.tensor([[0.0, 0.0, 2.0, 2.0, 0.0]], dtype=torch.float64)
    for angle in (0.0, 90.0, 180.0, -270.0):
        turned = square + torch.tensor([0, 0, 0, 0, angle])
        assert ops.box_iou(square, turned, "cxcywhr").item() == pytest.approx(1.0, abs=1e-6)
    # Turned by 45 degrees, a regular octagon of width 2 is shared.
    shared = 2 * (np.sqrt(2) - 1) * 4
    iou = ops.box_iou(square, square + torch.tensor([0, 0, 0, 0, 45.0]), "cxcywhr").item()
    assert iou == pytest.approx(shared / (8 - shared), abs=1e-6)
    apart = square + torch.tensor([9.0, 0, 0, 0, 30])
    assert ops.box_iou(square, apart, "cxcywhr").item() == 0
    assert ops.box_iou(square[:0], apart, "cxcywhr").shape == (0, 1)


def test_integers_and_halves() -> None:
    small = torch.tensor([[0, 0, 100, 100]], dtype=torch.int8)
    assert ops.box_area(small).item() == 10000
    half = torch.tensor([[0.0, 0.0, 300.0, 300.0]], dtype=torch.float16)
    assert ops.box_area(half).item() == 90000
    assert ops.clip_boxes_to_image(small, (10, 20)).tolist() == [[0, 0, 20, 10]]


def test_boxes_of_masks() -> None:
    masks = GENERATOR.uniform(size=(5, 6, 7)) < 0.08
    masks[0] = False
    found = ops.masks_to_boxes(torch.from_numpy(masks)).numpy()
    for mask, box in zip(masks, found, strict=True):
        y, x = np.nonzero(mask)
        assert box.tolist() == ([x.min(), y.min(), x.max(), y.max()] if len(x) else [0] * 4)
    assert ops.masks_to_boxes(torch.zeros(0, 4, 4)).shape == (0, 4)


def test_focal_loss() -> None:
    x, t = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([1.0, 1.0, 0.0])
    p = 1 / (1 + np.exp(-x.numpy()))
    right = np.where(t.numpy() == 1, p, 1 - p)
    expected = -np.where(t.numpy() == 1, 0.25, 0.75) * (1 - right) ** 2 * np.log(right)
    np.testing.assert_allclose(ops.sigmoid_focal_loss(x, t).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dims", [2, 3])
def test_drop_block(dims: int) -> None:
    torch.manual_seed(0)
    drop = {2: ops.drop_block2d, 3: ops.drop_block3d}[dims]
    x = torch.ones(4, 8, *[15] * dims)
    y = drop(x, 0.2, 3)
    assert 0.1 < (y == 0).float().mean().item() < 0.25
    assert y.mean().item() == pytest.approx(1.0, abs=1e-4)
    assert drop(x, 0.2, 3, training=False) is x
    assert drop(x, 0.2, 3, inplace=True) is x and bool((x == 0).any())
    assert drop(torch.zeros(0, 1, *[5] * dims), 0.2, 3).numel() == 0


@pytest.mark.parametrize(
    "layer",
    [
        ops.RoIAlign(2, 1.0, 2), ops.RoIPool(2, 1.0), ops.PSRoIAlign(2, 1.0, 2),
        ops.PSRoIPool(2, 1.0), ops.DropBlock2d(0.1, 3), ops.DropBlock3d(0.1, 3),
        ops.StochasticDepth(0.1, "row"),
    ],
)  # fmt: skip
def test_layers_are_recorded_as_one_node(layer: torch.nn.Module) -> None:
    recorded = torch.fx.symbolic_trace(layer)
    called = [node for node in recorded.graph.nodes if node.op == "call_function"]
    assert len(called) == 1 and called[0].target.__module__.startswith(ops.__name__)


# What the native ops refuse

IMAGE = torch.zeros(2, 4, 5, 6)


def roi(*numbers: float) -> Any:
    return torch.tensor([numbers], dtype=torch.float32)


@pytest.mark.parametrize("pool", [ops.roi_align, ops.roi_pool, ops.ps_roi_align, ops.ps_roi_pool])
def test_rois_out_of_range(pool: Any) -> None:
    for image in (-1.0, 2.0, 1e30, float("nan")):
        with pytest.raises(IndexError, match="Valid indices are 0 to 1"):
            pool(IMAGE, roi(image, 0, 0, 1, 1), 2)
    for bad in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(ValueError, match="must be finite"):
            pool(IMAGE, roi(0, 0, bad, 1, 1), 2)
    for scale in (1e30, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"below 2\^30 pixels"):
            pool(IMAGE, roi(0, 0, 0, 1, 1), 2, scale)
    for size in (0, -1, 1 << 40):
        with pytest.raises((ValueError, RuntimeError), match=r"output_size|channels"):
            pool(IMAGE, roi(0, 0, 0, 1, 1), size)
    with pytest.raises(RuntimeError, match="must have pixels"):
        pool(IMAGE[:, :, :0], roi(0, 0, 0, 1, 1), 2)
    # Far away, very large, turned inside out: no more than slow.
    for box in ((-1e6, -1e6, -1e5, -1e5), (-1e8, -1e8, 1e8, 1e8), (4, 4, 1, 1), (1e8, 0, -1e8, 1)):
        assert pool(IMAGE, roi(1, *box), 2).shape == (
            1,
            4 if pool in (ops.roi_align, ops.roi_pool) else 1,
            2,
            2,
        )
    assert pool(IMAGE[:0], torch.zeros(0, 5), 2).shape[0] == 0
    assert pool(IMAGE, [torch.zeros(0, 4)] * 2, 2).shape[0] == 0


def test_very_many_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="sampling_ratio must be at most"):
        ops.roi_align(IMAGE, roi(0, 0, 0, 1, 1), 2, 1.0, 1 << 40)


def test_halves_pool_with_float_boxes() -> None:
    x = torch.randn(1, 2, 8, 8)
    box = roi(0, 0.5, 1.25, 6, 7)
    exact = ops.roi_align(x, box, 3).numpy()
    for dtype in (torch.float16, torch.bfloat16):
        result = ops.roi_align(x.to(dtype), box, 3)
        assert result.dtype == dtype
        np.testing.assert_allclose(result.float().numpy(), exact, atol=0.03)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.roi_align(x.bfloat16(), box, 3).dtype == torch.bfloat16
        kept = ops.nms(box[:, 1:].bfloat16(), torch.ones(1), 0.5)
        assert kept.tolist() == [0]
    with pytest.raises(RuntimeError, match="same type"):
        ops.roi_align(x.double(), box, 3)


def test_nms_of_odd_boxes() -> None:
    nan, inf = float("nan"), float("inf")
    odd = torch.tensor([[nan, 0, 1, 1], [0, 0, inf, inf], [5.0, 5, 1, 1], [2, 2, 2, 2]])
    assert sorted(ops.nms(odd, torch.ones(4), 0.5).tolist()) == [0, 1, 2, 3]
    assert len(ops.nms(odd, torch.full((4,), nan), nan)) == 4
    many = torch.zeros(3000, 4) + torch.tensor([0.0, 0, 1, 1])
    assert ops.nms(many, torch.arange(3000.0), 0.5).tolist() == [2999]
    kept = ops.batched_nms(many, torch.arange(3000.0), torch.arange(3000) % 7, 0.5)
    assert kept.tolist() == list(range(2999, 2992, -1))


def test_nms_names_what_does_not_fit_the_boxes() -> None:
    boxes, two = torch.zeros(3, 4), torch.zeros(2)
    with pytest.raises(RuntimeError, match="boxes and scores should have same number"):
        ops.nms(boxes, two, 0.5)
    with pytest.raises(RuntimeError, match="boxes and idxs should have same number"):
        ops.batched_nms(boxes, torch.zeros(3), two, 0.5)
    with pytest.raises(RuntimeError, match="boxes is on cpu and scores on meta"):
        ops.nms(boxes, torch.zeros(3, device="meta"), 0.5)


def test_pools_over_levels() -> None:
    pool = ops.MultiScaleRoIAlign(["a", "b"], 2, 2, canonical_scale=16, canonical_level=3)
    maps = {"a": torch.ones(1, 1, 16, 16), "b": 2 * torch.ones(1, 1, 8, 8), "c": torch.zeros(1)}
    small, large = [8.0, 8, 14, 14], [8.0, 8, 50, 50]
    found = pool(maps, [torch.tensor([small, large, small])], [(64, 64)])
    assert found.mean((1, 2, 3)).tolist() == [1.0, 2.0, 1.0]
    assert pool(maps, [torch.zeros(0, 4)], [(64, 64)]).shape == (0, 1, 2, 2)
    with pytest.raises(ValueError, match="should not be empty"):
        ops.MultiScaleRoIAlign(["a"], 2, 2)(maps, [], [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": torch.zeros(1, 17, 3, 4)}, "multiple of 2"),
        ({"offset": torch.zeros(1, 18, 3, 3)}, "offset output dims"),
        ({"offset": torch.zeros(2, 18, 3, 4)}, "batch size of offset"),
        ({"weight": torch.zeros(2, 3, 3, 3)}, "channels"),
        ({"weight": torch.zeros(2, 4, 9, 9)}, "too small"),
        ({"bias": torch.zeros(3)}, "bias has 3"),
        ({"mask": torch.zeros(1, 8, 3, 4)}, "mask has shape"),
        ({"mask": torch.zeros(1, 9, 3, 4).double()}, "same type"),
    ],
)
def test_deform_conv2d_refuses_what_does_not_fit(changes: dict[str, Any], message: str) -> None:
    arguments = {"input": IMAGE[:1], "offset": torch.zeros(1, 18, 3, 4)}
    arguments |= {"weight": torch.zeros(2, 4, 3, 3)} | changes
    with pytest.raises(RuntimeError, match=message):
        ops.deform_conv2d(**arguments)


def test_deform_conv2d_with_wild_offsets() -> None:
    for value in (1e30, -1e30, float("nan"), float("inf")):
        offset = torch.full((1, 18, 3, 4), value)
        out = ops.deform_conv2d(torch.ones(1, 4, 5, 6), offset, torch.ones(2, 4, 3, 3))
        assert out.shape == (1, 2, 3, 4)
        if not np.isnan(value):
            assert bool((out == 0).all())


def test_operators_of_torchvision_are_found_by_their_names() -> None:
    named = torch.ops.torchvision
    image, rois = torch.rand(2, 8, 6, 6), torch.tensor([[0, 1.0, 1.0, 4.0, 4.0], [1, 0, 0, 5, 3]])
    boxes, scores = rois[:, 1:], torch.tensor([0.5, 0.9])
    assert (
        named.nms.default is named.nms.default
        and str(named.nms.default) == "torchvision.nms.default"
    )
    assert torch.equal(named.nms(boxes, scores, 0.5), ops.nms(boxes, scores, 0.5))
    aligned = named.roi_align.default(image, rois, 0.5, 2, 3, -1, True)
    assert torch.equal(aligned, ops.roi_align(image, rois, (2, 3), 0.5, aligned=True))
    for name, options in (("ps_roi_align", (-1,)), ("ps_roi_pool", ())):
        result, planes = getattr(named, name)(image, rois, 1.0, 2, 2, *options)
        assert torch.equal(result, getattr(ops, name)(image, rois, 2))
        assert planes.dtype is torch.int32 and planes[1].flatten().tolist() == list(range(8))
        assert getattr(named, name)(image, rois[:0], 1.0, 2, 2, *options)[1].shape == (0, 2, 2, 2)
    largest, places = named.roi_pool.default(image, rois, 1.0, 2, 3)
    assert torch.equal(largest, ops.roi_pool(image, rois, (2, 3)))
    found = image[rois[:, 0].long()].flatten(2).gather(2, places.long().flatten(2))
    assert places.dtype is torch.int32 and torch.equal(found.view_as(largest), largest)
    weight, offset = torch.rand(4, 4, 3, 3), torch.rand(2, 18, 6, 6)
    mask, bias = torch.rand(2, 9, 6, 6), torch.rand(4)
    bent = named.deform_conv2d(image, weight, offset, mask, bias, 1, 1, 1, 1, 1, 1, 2, 1, True)
    assert torch.equal(bent, ops.deform_conv2d(image, offset, weight, bias, padding=1, mask=mask))
    assert not hasattr(named, "no_such_operator")
