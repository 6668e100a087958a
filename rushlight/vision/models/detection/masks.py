"""Masks of detections: their loss, and how they become masks of the whole image."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.vision.ops import roi_align

__all__ = ["maskrcnn_inference", "maskrcnn_loss", "paste_masks_in_image", "project_masks_on_boxes"]


def maskrcnn_inference(x: Tensor, labels: list[Tensor]) -> list[Tensor]:
    """Returns for each image the masks (L, 1, M, M) of the classes that were found.

    Args:
        x: scores (all boxes, classes, M, M).
        labels: the classes (L,) of the boxes of each image.
    """
    counts = [len(of_image) for of_image in labels]
    classes = rl.cat(labels)
    chosen = x[rl.arange(len(x), device=x.device), classes].sigmoid()[:, None]
    return list(chosen.split(counts, 0))


def project_masks_on_boxes(gt_masks: Tensor, boxes: Tensor, matched_idxs: Tensor, M: int) -> Tensor:
    """Returns what boxes see of their targets' masks, as (L, M, M).

    Args:
        gt_masks: (targets, H, W).
        boxes: (L, 4).
        matched_idxs: the target of each box.
        M: the size of the result.
    """
    rois = rl.cat((matched_idxs[:, None].to(boxes), boxes), 1)
    return roi_align(gt_masks[:, None].to(rois), rois, (M, M), 1.0)[:, 0]


def maskrcnn_loss(
    mask_logits: Tensor,
    proposals: list[Tensor],
    gt_masks: list[Tensor],
    gt_labels: list[Tensor],
    mask_matched_idxs: list[Tensor],
) -> Tensor:
    """Returns the binary cross entropy of the masks of the targets' classes.

    Args:
        mask_logits: scores (all boxes, classes, M, M).
        proposals: the boxes (L, 4) of each image.
        gt_masks: its targets' masks.
        gt_labels: and their classes.
        mask_matched_idxs: the target of each box.
    """
    size = mask_logits.shape[-1]
    labels = rl.cat([of[at] for of, at in zip(gt_labels, mask_matched_idxs, strict=True)])
    matched = zip(gt_masks, proposals, mask_matched_idxs, strict=True)
    targets = rl.cat([project_masks_on_boxes(m, boxes, at, size) for m, boxes, at in matched])
    if targets.numel() == 0:
        return mask_logits.sum() * 0
    chosen = mask_logits[rl.arange(len(labels), device=labels.device), labels]
    return F.binary_cross_entropy_with_logits(chosen, targets)


def _expand_boxes(boxes: Tensor, scale: float) -> Tensor:
    """Boxes that are larger around the same centers."""
    center, half = (boxes[:, :2] + boxes[:, 2:]) * 0.5, (boxes[:, 2:] - boxes[:, :2]) * 0.5
    return rl.cat((center - half * scale, center + half * scale), 1)


def _paste(mask: Tensor, box: list[int], size: tuple[int, int]) -> Tensor:
    """An image of size (height, width) with a mask (M, M) at a box of whole pixels."""
    left, top, right, bottom = box
    height, width = size
    shape = (max(bottom - top + 1, 1), max(right - left + 1, 1))
    mask = F.interpolate(mask[None, None], size=shape, mode="bilinear", align_corners=False)[0, 0]
    image = mask.new_zeros(size)
    x1, x2 = max(left, 0), min(right + 1, width)
    y1, y2 = max(top, 0), min(bottom + 1, height)
    if x1 < x2 and y1 < y2:
        image[y1:y2, x1:x2] = mask[y1 - top : y2 - top, x1 - left : x2 - left]
    return image


def paste_masks_in_image(
    masks: Tensor, boxes: Tensor, img_shape: tuple[int, int], padding: int = 1
) -> Tensor:
    """Returns masks of boxes as masks (L, 1, height, width) of the whole image.

    Args:
        masks: (L, 1, M, M).
        boxes: (L, 4).
        img_shape: (height, width).
        padding: zeros around each mask, so that it fades out where the box ends.
    """
    if len(masks) == 0:
        return masks.new_empty((0, 1, *img_shape))
    size = masks.shape[-1]
    wide = _expand_boxes(boxes, (size + 2 * padding) / size).to(rl.int64).tolist()
    padded = F.pad(masks[:, 0], (padding,) * 4)
    pasted = [_paste(mask, box, img_shape) for mask, box in zip(padded, wide, strict=True)]
    return rl.stack(pasted)[:, None]
