"""Keypoints of detections, as the places of maxima in heatmaps of boxes."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F

__all__ = [
    "heatmaps_to_keypoints",
    "keypointrcnn_inference",
    "keypointrcnn_loss",
    "keypoints_to_heatmap",
]


def keypoints_to_heatmap(
    keypoints: Tensor, rois: Tensor, heatmap_size: int
) -> tuple[Tensor, Tensor]:
    """Returns the pixels of heatmaps where keypoints lie, and whether they lie in one: (L, K).

    Args:
        keypoints: (L, K, 3) of x, y, visibility.
        rois: (L, 4), the boxes of the heatmaps.
        heatmap_size: their height and width.
    """
    scale = heatmap_size / (rois[:, None, 2:] - rois[:, None, :2])
    at = ((keypoints[..., :2] - rois[:, None, :2]) * scale).floor().to(rl.int64)
    on_far_side = keypoints[..., :2] == rois[:, None, 2:]
    at = at.masked_fill(on_far_side, heatmap_size - 1)
    valid = ((at >= 0) & (at < heatmap_size)).all(-1) & (keypoints[..., 2] > 0)
    return (at[..., 1] * heatmap_size + at[..., 0]) * valid, valid.to(rl.int64)


def keypointrcnn_loss(
    keypoint_logits: Tensor,
    proposals: list[Tensor],
    gt_keypoints: list[Tensor],
    keypoint_matched_idxs: list[Tensor],
) -> Tensor:
    """Returns the cross entropy of the pixels where visible keypoints lie.

    Args:
        keypoint_logits: heatmaps (all boxes, K, H, H).
        proposals: the boxes (L, 4) of each image.
        gt_keypoints: its targets' keypoints (targets, K, 3).
        keypoint_matched_idxs: the target of each box.

    Raises:
        ValueError: if a heatmap is not square.
    """
    height, width = keypoint_logits.shape[-2:]
    if height != width:
        raise ValueError(
            "keypointrcnn_loss: keypoint_logits height and width (last two elements of shape) "
            f"should be equal. Instead got H = {height} and W = {width}."
        )
    pixels, valid = [], []
    for boxes, points, at in zip(proposals, gt_keypoints, keypoint_matched_idxs, strict=True):
        of_image, is_valid = keypoints_to_heatmap(points[at], boxes, height)
        pixels.append(of_image.flatten())
        valid.append(is_valid.flatten())
    chosen = rl.where(rl.cat(valid))[0]
    if len(chosen) == 0:
        return keypoint_logits.sum() * 0
    logits = keypoint_logits.reshape(-1, height * width)
    return F.cross_entropy(logits[chosen], rl.cat(pixels)[chosen])


def heatmaps_to_keypoints(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the keypoints (L, K, 3) of heatmaps, and their scores (L, K).

    Args:
        maps: (L, K, H, H).
        rois: (L, 4), the boxes of the heatmaps.
    """
    sizes = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    pixels = sizes.ceil()
    corrections = sizes / pixels
    points = maps.new_ones((*maps.shape[:2], 3), dtype=rl.float32)
    scores = maps.new_zeros(maps.shape[:2], dtype=rl.float32)
    every = rl.arange(maps.shape[1], device=maps.device)
    for i, (width, height) in enumerate(pixels.to(rl.int64).tolist()):
        large = F.interpolate(
            maps[i][:, None], size=(height, width), mode="bicubic", align_corners=False
        )[:, 0].flatten(1)  # (K, height * width)
        at = large.argmax(1)
        place = rl.stack((at % width, at // width), 1) + 0.5
        points[i, :, :2] = place * corrections[i] + rois[i, :2]
        scores[i] = large[every, at]
    return points, scores


def keypointrcnn_inference(x: Tensor, boxes: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Returns the keypoints of the boxes of each image, and their scores."""
    counts = [len(of_image) for of_image in boxes]
    found = [
        heatmaps_to_keypoints(maps, of_image)
        for maps, of_image in zip(x.split(counts, 0), boxes, strict=True)
    ]
    return [points for points, _ in found], [scores for _, scores in found]
