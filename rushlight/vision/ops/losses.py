"""Losses of detectors: those of overlaps of boxes, and the focal loss of classes."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.vision.ops.boxes import _angle, _size, _unlike_proportions, _widened

__all__ = [
    "complete_box_iou_loss",
    "distance_box_iou_loss",
    "generalized_box_iou_loss",
    "sigmoid_focal_loss",
]


def _reduced(loss: Tensor, reduction: str, op: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(
        f"{op}: Invalid Value for arg 'reduction': '{reduction}'. "
        "Supported reduction modes: 'none', 'mean', 'sum'."
    )


def _overlap(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Of pairs (..., 4): the overlap, the area that either covers, and the size of their hull."""
    corner, far = boxes1[..., :2], boxes1[..., 2:]
    other, other_far = boxes2[..., :2], boxes2[..., 2:]
    sides = (rl.minimum(far, other_far) - rl.maximum(corner, other)).clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    covered = _size(boxes1).prod(-1) + _size(boxes2).prod(-1) - shared
    hull = rl.maximum(far, other_far) - rl.minimum(corner, other)
    return shared / (covered + eps), covered, hull


def generalized_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-07
) -> Tensor:
    """Returns 1 less generalized_box_iou of each pair of boxes.

    Args:
        boxes1: (..., 4).
        boxes2: (..., 4), of the same shape.
        reduction: "none", "mean" or "sum".
        eps: added to denominators.

    Example:
        >>> boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0]])
        >>> generalized_box_iou_loss(boxes, boxes + 2)
        tensor([1.5000])
    """
    boxes1, boxes2 = _widened(boxes1), _widened(boxes2)
    iou, covered, sides = _overlap(boxes1, boxes2, eps)
    hull = sides[..., 0] * sides[..., 1]
    loss = 1 - (iou - (hull - covered) / (hull + eps))
    return _reduced(loss, reduction, "generalized_box_iou_loss")


def _distance_loss(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    iou, _, hull = _overlap(boxes1, boxes2, eps)
    apart = (boxes1[..., :2] + boxes1[..., 2:] - boxes2[..., :2] - boxes2[..., 2:]) / 2
    return 1 - iou + apart.square().sum(-1) / (hull.square().sum(-1) + eps), iou


def distance_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-07
) -> Tensor:
    """Returns 1 less distance_box_iou of each pair of boxes.

    Args:
        boxes1: (..., 4).
        boxes2: (..., 4), of the same shape.
        reduction: "none", "mean" or "sum".
        eps: added to denominators.
    """
    loss, _ = _distance_loss(_widened(boxes1), _widened(boxes2), eps)
    return _reduced(loss, reduction, "distance_box_iou_loss")


def complete_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-07
) -> Tensor:
    """Returns 1 less complete_box_iou of each pair of boxes.

    Args:
        boxes1: (..., 4).
        boxes2: (..., 4), of the same shape.
        reduction: "none", "mean" or "sum".
        eps: added to denominators.
    """
    boxes1, boxes2 = _widened(boxes1), _widened(boxes2)
    loss, iou = _distance_loss(boxes1, boxes2, eps)
    loss = loss + _unlike_proportions(_angle(boxes2), _angle(boxes1), iou, eps)
    return _reduced(loss, reduction, "complete_box_iou_loss")


def sigmoid_focal_loss(
    inputs: Tensor,
    targets: Tensor,
    alpha: float = 0.25,
    gamma: float = 2,
    reduction: str = "none",
) -> Tensor:
    """Returns binary cross entropy, weighted down where the prediction is right already.

    -alpha_t * (1 - p_t) ** gamma * log(p_t), where p_t is the probability of the target. Source:
    Lin et al., "Focal Loss for Dense Object Detection", 2017.

    Args:
        inputs: scores before the sigmoid.
        targets: 0 or 1 for each, as floats.
        alpha: weight of the targets 1, where those of 0 have 1 - alpha; -1 for no weights.
        gamma: how much what is right is weighted down.
        reduction: "none", "mean" or "sum".

    Raises:
        ValueError: if alpha is neither from 0 to 1 nor -1, or the reduction unknown.

    Example:
        >>> sigmoid_focal_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]))
        tensor([0.0433, 0.0005])
    """
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ValueError(
            f"sigmoid_focal_loss: Invalid alpha value: {alpha}. alpha must be in the range [0,1] "
            "or -1 for ignore."
        )
    p = inputs.sigmoid()
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    wrong = p + targets - 2 * p * targets  # 1 - p_t
    loss = loss * wrong**gamma
    if alpha >= 0:
        loss = loss * (1 - alpha + (2 * alpha - 1) * targets)
    return _reduced(loss, reduction, "sigmoid_focal_loss")
