"""Boxes: their formats, areas and overlaps, and the removal of those that overlap.

Unless told otherwise, a box is (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2; more dims may come
before.
"""

from __future__ import annotations

from collections.abc import Callable

import rushlight as rl
from rushlight import _C, Tensor

__all__ = [
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "complete_box_iou",
    "distance_box_iou",
    "generalized_box_iou",
    "masks_to_boxes",
    "nms",
    "remove_small_boxes",
]

_ops = _C.ops("vision.ops")
nms = _ops["nms"]
batched_nms = _ops["batched_nms"]


# Formats


def _columns(boxes: Tensor, count: int, fmt: str) -> tuple[Tensor, ...]:
    if boxes.shape[-1:] != (count,):
        raise ValueError(
            f"boxes of format {fmt} have {count} numbers in their last dim, but got shape "
            f"{tuple(boxes.shape)}."
        )
    return boxes.unbind(-1)


def _join(*columns: Tensor) -> Tensor:
    return rl.stack(columns, dim=-1)


def _xywh_to_xyxy(boxes: Tensor) -> Tensor:
    x, y, w, h = _columns(boxes, 4, "xywh")
    return _join(x, y, x + w, y + h)


def _xyxy_to_xywh(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2 = _columns(boxes, 4, "xyxy")
    return _join(x1, y1, x2 - x1, y2 - y1)


def _cxcywh_to_xyxy(boxes: Tensor) -> Tensor:
    cx, cy, w, h = _columns(boxes, 4, "cxcywh")
    return _join(cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h)


def _xyxy_to_cxcywh(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2 = _columns(boxes, 4, "xyxy")
    return _join((x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1)


# Rotated ones: r is in degrees, counter-clockwise, and y points down.


def _turned(w: Tensor, h: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """Where the vector (w, h) of a box points after the box has turned."""
    angle = rl.deg2rad(r)
    cos, sin = rl.cos(angle), rl.sin(angle)
    return w * cos + h * sin, h * cos - w * sin


def _keep_dtype(convert: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Computes in floats, and rounds to the integers that came in."""

    def converted(boxes: Tensor) -> Tensor:
        if boxes.is_floating_point():
            return convert(boxes)
        return convert(boxes.float()).round().to(boxes.dtype)

    return converted


@_keep_dtype
def _cxcywhr_to_xywhr(boxes: Tensor) -> Tensor:
    cx, cy, w, h, r = _columns(boxes, 5, "cxcywhr")
    dx, dy = _turned(w / 2, h / 2, r)
    return _join(cx - dx, cy - dy, w, h, r)


@_keep_dtype
def _xywhr_to_cxcywhr(boxes: Tensor) -> Tensor:
    x, y, w, h, r = _columns(boxes, 5, "xywhr")
    dx, dy = _turned(w / 2, h / 2, r)
    return _join(x + dx, y + dy, w, h, r)


@_keep_dtype
def _xywhr_to_xyxyxyxy(boxes: Tensor) -> Tensor:
    x, y, w, h, r = _columns(boxes, 5, "xywhr")
    none = rl.zeros_like(w)
    corners = [x, y]
    for side in ((w, none), (w, h), (none, h)):
        dx, dy = _turned(*side, r)
        corners += [x + dx, y + dy]
    return _join(*corners)


@_keep_dtype
def _xyxyxyxy_to_xywhr(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2, x3, y3, _, _ = _columns(boxes, 8, "xyxyxyxy")
    r = rl.rad2deg(rl.atan2(y1 - y2, x2 - x1))
    return _join(x1, y1, rl.hypot(x2 - x1, y2 - y1), rl.hypot(x3 - x2, y3 - y2), r)


_UPRIGHT = ("xyxy", "xywh", "cxcywh")
_ROTATED = ("xywhr", "cxcywhr", "xyxyxyxy")
# To the format through which all others of the kind are reached, and from it.
_TO_HUB = {
    "xywh": _xywh_to_xyxy,
    "cxcywh": _cxcywh_to_xyxy,
    "cxcywhr": _cxcywhr_to_xywhr,
    "xyxyxyxy": _xyxyxyxy_to_xywhr,
}
_FROM_HUB = {
    "xywh": _xyxy_to_xywh,
    "cxcywh": _xyxy_to_cxcywh,
    "cxcywhr": _xywhr_to_cxcywhr,
    "xyxyxyxy": _xywhr_to_xyxyxyxy,
}


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Returns boxes in another format.

    Args:
        boxes: (..., K), with K numbers a box.
        in_fmt: "xyxy" corners, "xywh" corner and size, "cxcywh" center and size; or, for rotated
            boxes, "xywhr" and "cxcywhr" with an angle in degrees besides, counter-clockwise, or
            "xyxyxyxy" for all corners.
        out_fmt: the format wanted, of the same kind.

    Raises:
        ValueError: for an unknown format.
        NotImplementedError: when one format is rotated and the other is not.

    Example:
        >>> box_convert(torch.tensor([[1.0, 2.0, 5.0, 8.0]]), "xyxy", "cxcywh")
        tensor([[3., 5., 4., 6.]])
    """
    for fmt in (in_fmt, out_fmt):
        if fmt not in _UPRIGHT + _ROTATED:
            raise ValueError(
                f"box_convert: Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and "
                f"out_fmt {out_fmt}. Use one of {', '.join(_UPRIGHT + _ROTATED)}."
            )
    if in_fmt == out_fmt:
        return boxes.clone()
    if (in_fmt in _UPRIGHT) != (out_fmt in _UPRIGHT):
        raise NotImplementedError(
            f"box_convert: Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and "
            f"out_fmt {out_fmt}. One is rotated, the other is not."
        )
    if in_fmt in _TO_HUB:
        boxes = _TO_HUB[in_fmt](boxes)
    return _FROM_HUB[out_fmt](boxes) if out_fmt in _FROM_HUB else boxes


# Areas and overlaps


def _widened(t: Tensor) -> Tensor:
    """In a dtype where products of sizes do not overflow."""
    if t.is_floating_point():
        return t if t.dtype in (rl.float32, rl.float64) else t.float()
    return t if t.dtype in (rl.int32, rl.int64) else t.int()


def box_area(boxes: Tensor, fmt: str = "xyxy") -> Tensor:
    """Returns the areas (...) of boxes (..., 4) of the format "xyxy", "xywh" or "cxcywh".

    Raises:
        ValueError: for another format.

    Example:
        >>> box_area(torch.tensor([[1.0, 2.0, 5.0, 8.0]]))
        tensor([24.])
    """
    if fmt not in _UPRIGHT:
        raise ValueError(f"box_area: Unsupported Bounding Box area for given format {fmt}.")
    boxes = _widened(boxes)
    width, height = boxes[..., 2], boxes[..., 3]
    if fmt == "xyxy":
        width, height = width - boxes[..., 0], height - boxes[..., 1]
    return width * height


def _size(boxes: Tensor) -> Tensor:
    return boxes[..., 2:] - boxes[..., :2]


def _hulls(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The least boxes that hold each pair: (..., N, M, 4)."""
    first, second = boxes1[..., None, :], boxes2[..., None, :, :]
    corners = (
        rl.minimum(first[..., :2], second[..., :2]),
        rl.maximum(first[..., 2:], second[..., 2:]),
    )
    return rl.cat(corners, -1)


def _shared_and_covered(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    """The areas (..., N, M) that each pair shares, and that either of it covers."""
    first, second = boxes1[..., None, :], boxes2[..., None, :, :]
    sides = rl.minimum(first[..., 2:], second[..., 2:]) - rl.maximum(
        first[..., :2], second[..., :2]
    )
    sides = _widened(sides).clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    return shared, box_area(boxes1)[..., None] + box_area(boxes2)[..., None, :] - shared


def box_iou(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> Tensor:
    """Returns the area that each pair of boxes shares over the area that either covers.

    Args:
        boxes1: (..., N, K).
        boxes2: (..., M, K).
        fmt: the format of both, one of box_convert's.

    Returns:
        (..., N, M).

    Raises:
        ValueError: for an unknown format.

    Example:
        >>> boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0]])
        >>> box_iou(boxes, boxes)
        tensor([[1.0000, 0.3333],
                [0.3333, 1.0000]])
    """
    if fmt in _ROTATED:
        from rushlight.vision.ops._rotated import shared_area

        boxes1, boxes2 = (box_convert(b.float() if not b.is_floating_point() else b, fmt, "xywhr")
                          for b in (boxes1, boxes2))  # fmt: skip
        shared = shared_area(
            _xywhr_to_xyxyxyxy(boxes1)[..., None, :], _xywhr_to_xyxyxyxy(boxes2)[..., None, :, :]
        )
        areas = [(boxes[..., 2] * boxes[..., 3]) for boxes in (boxes1, boxes2)]
        return shared / (areas[0][..., None] + areas[1][..., None, :] - shared)
    if fmt not in _UPRIGHT:
        raise ValueError(
            f"box_iou: Unsupported format '{fmt}'. Use one of {', '.join(_UPRIGHT + _ROTATED)}."
        )
    if fmt != "xyxy":
        boxes1, boxes2 = box_convert(boxes1, fmt, "xyxy"), box_convert(boxes2, fmt, "xyxy")
    shared, covered = _shared_and_covered(boxes1, boxes2)
    return shared / covered


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Returns box_iou less the share of the pair's hull that neither box covers.

    Source: Rezatofighi et al., "Generalized Intersection over Union", 2019.

    Args:
        boxes1: (..., N, 4).
        boxes2: (..., M, 4).

    Returns:
        (..., N, M), from -1 to 1.
    """
    shared, covered = _shared_and_covered(boxes1, boxes2)
    sides = _widened(_size(_hulls(boxes1, boxes2))).clamp(min=0)
    hull = sides[..., 0] * sides[..., 1]
    return shared / covered - (hull - covered) / hull


def _iou_and_distance(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """box_iou, and the distance of centers over the diagonal of the hull, both squared."""
    centers1 = (boxes1[..., :2] + boxes1[..., 2:]) / 2
    centers2 = (boxes2[..., :2] + boxes2[..., 2:]) / 2
    distance = _widened(centers1[..., None, :] - centers2[..., None, :, :]).square().sum(-1)
    diagonal = _widened(_size(_hulls(boxes1, boxes2))).clamp(min=0).square().sum(-1) + eps
    return box_iou(boxes1, boxes2), distance / diagonal


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-07) -> Tensor:
    """Returns box_iou less the squared distance of the centers over the hull's squared diagonal.

    Source: Zheng et al., "Distance-IoU Loss", 2020.

    Args:
        boxes1: (..., N, 4).
        boxes2: (..., M, 4).
        eps: added to the squared diagonal.

    Returns:
        (..., N, M).
    """
    iou, distance = _iou_and_distance(_widened(boxes1), _widened(boxes2), eps)
    return iou - distance


def _angle(boxes: Tensor) -> Tensor:
    """That of the diagonal, which is all that matters of a box's proportions."""
    size = _size(boxes)
    return rl.atan(size[..., 0] / size[..., 1])


def _unlike_proportions(angle1: Tensor, angle2: Tensor, iou: Tensor, eps: float) -> Tensor:
    """What complete_box_iou takes off besides: alpha * v of the paper, where alpha is constant."""
    v = 4 / rl.pi**2 * (angle1 - angle2).square()
    with rl.no_grad():
        alpha = v / (1 - iou + v + eps)
    return alpha * v


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-07) -> Tensor:
    """Returns distance_box_iou less a term for proportions that differ.

    Source: Zheng et al., "Distance-IoU Loss", 2020, equations 9 to 11.

    Args:
        boxes1: (..., N, 4).
        boxes2: (..., M, 4).
        eps: added to denominators.

    Returns:
        (..., N, M).
    """
    boxes1, boxes2 = _widened(boxes1), _widened(boxes2)
    iou, distance = _iou_and_distance(boxes1, boxes2, eps)
    angles = _angle(boxes1)[..., None], _angle(boxes2)[..., None, :]
    return iou - distance - _unlike_proportions(*angles, iou, eps)


# Boxes and images


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """Returns the indices of the boxes (N, 4) whose width and height are at least min_size.

    Example:
        >>> remove_small_boxes(torch.tensor([[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 9.0, 1.0]]), 2)
        tensor([0])
    """
    return rl.where((_size(boxes) >= min_size).all(-1))[0]


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Returns boxes (..., 4) with all coordinates moved into an image of size (height, width).

    Example:
        >>> clip_boxes_to_image(torch.tensor([[-1.0, 2.0, 50.0, 9.0]]), (10, 20))
        tensor([[ 0.,  2., 20.,  9.]])
    """
    height, width = size
    x, y = boxes[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return rl.stack((x, y), -1).reshape(boxes.shape)


def masks_to_boxes(masks: Tensor) -> Tensor:
    """Returns the least boxes (N, 4) that hold the pixels of masks (N, H, W) that are not zero.

    The box of an empty mask is zeros, and the right and bottom pixels are x2 and y2 themselves.

    Example:
        >>> mask = torch.zeros(1, 5, 5)
        >>> mask[0, 1:3, 2:5] = 1
        >>> masks_to_boxes(mask)
        tensor([[2., 1., 4., 2.]])
    """
    if masks.numel() == 0:
        return rl.zeros((masks.shape[0], 4), dtype=rl.float32, device=masks.device)
    filled = masks != 0
    sides = []
    for dim in (1, 2):  # columns, then rows
        used = filled.any(dim).to(rl.uint8)  # (N, size)
        last = used.shape[1] - 1 - used.flip(1).argmax(1)
        sides.append((used.argmax(1), rl.where(used.any(1).bool(), last, 0)))
    (x1, x2), (y1, y2) = sides
    return _join(x1, y1, x2, y2).float()
