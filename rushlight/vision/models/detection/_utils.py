"""What detectors share: boxes as numbers to learn, the matching of boxes with targets, losses.

"proposals" are boxes of a model, such as anchors; "reference boxes" are the targets they are for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.ops import (
    FrozenBatchNorm2d,
    box_convert,
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
)

__all__ = [
    "BalancedPositiveNegativeSampler",
    "BoxCoder",
    "BoxLinearCoder",
    "Matcher",
    "SSDMatcher",
]


# Codes of boxes


def encode_boxes(reference_boxes: Tensor, proposals: Tensor, weights: Tensor) -> Tensor:
    """Returns how proposals (N, 4) must move and grow to become reference boxes: (N, 4).

    Source: Girshick et al., "Rich feature hierarchies", 2014, appendix C.
    """
    there = box_convert(reference_boxes, "xyxy", "cxcywh")
    here = box_convert(proposals, "xyxy", "cxcywh")
    moves = (there[:, :2] - here[:, :2]) / here[:, 2:]
    growth = rl.log(there[:, 2:] / here[:, 2:])
    return rl.cat((moves, growth), 1) * weights


class BoxCoder:
    """Boxes relative to proposals, as numbers of about one size.

    Args:
        weights: factors of the numbers of x, y, width and height.
        bbox_xform_clip: the largest logarithm by which a box may grow.

    Example:
        >>> coder = BoxCoder((1.0, 1.0, 1.0, 1.0))
        >>> boxes = torch.tensor([[1.0, 1.0, 3.0, 5.0]])
        >>> anchors = torch.tensor([[0.0, 0.0, 2.0, 2.0]])
        >>> codes = coder.encode([boxes], [anchors])[0]
        >>> codes
        tensor([[0.5000, 1.0000, 0.0000, 0.6931]])
        >>> torch.allclose(coder.decode(codes, [anchors])[:, 0], boxes)
        True
    """

    def __init__(
        self,
        weights: tuple[float, float, float, float],
        bbox_xform_clip: float = math.log(1000.0 / 16),
    ) -> None:
        self.weights = weights
        self.bbox_xform_clip = bbox_xform_clip

    def encode(self, reference_boxes: list[Tensor], proposals: list[Tensor]) -> list[Tensor]:
        """Returns the codes (N, 4) of the boxes of each image."""
        counts = [len(boxes) for boxes in reference_boxes]
        codes = self.encode_single(rl.cat(reference_boxes), rl.cat(proposals))
        return list(codes.split(counts, 0))

    def encode_single(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        """Returns the codes (N, 4) of boxes."""
        return encode_boxes(reference_boxes, proposals, reference_boxes.new_tensor(self.weights))

    def decode(self, rel_codes: Tensor, boxes: Sequence[Tensor]) -> Tensor:
        """Returns the boxes (N, codes of each, 4) that codes (N, 4 * codes) stand for.

        Raises:
            AssertionError: if the proposals are not a list, or the codes not a tensor.
        """
        if not isinstance(boxes, (list, tuple)):
            raise AssertionError("BoxCoder: This function expects boxes of type list or tuple.")
        if not isinstance(rel_codes, Tensor):
            raise AssertionError("BoxCoder: This function expects rel_codes of type torch.Tensor.")
        decoded = self.decode_single(rel_codes, rl.cat(tuple(boxes)))
        return decoded.reshape(len(decoded), rel_codes.shape[1] // 4, 4)

    def decode_single(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        """Returns the boxes (N, 4 * codes of each) that codes of the same shape stand for."""
        here = box_convert(boxes.to(rel_codes.dtype), "xyxy", "cxcywh")[:, None]  # (N, 1, 4)
        codes = rel_codes.unflatten(1, (-1, 4)) / rel_codes.new_tensor(self.weights)
        centers = codes[..., :2] * here[..., 2:] + here[..., :2]
        half = rl.exp(codes[..., 2:].clamp(max=self.bbox_xform_clip)) * here[..., 2:] * 0.5
        return rl.cat((centers - half, centers + half), -1).flatten(1)


class BoxLinearCoder:
    """Boxes as the distances of their sides from the centers of proposals.

    Args:
        normalize_by_size: whether a distance counts the proposal's size, and not pixels.
    """

    def __init__(self, normalize_by_size: bool = True) -> None:
        self.normalize_by_size = normalize_by_size

    def encode(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        """Returns the distances (..., 4) to the left, top, right and bottom of boxes (..., 4)."""
        here = box_convert(reference_boxes, "xyxy", "cxcywh")
        centers, sizes = here[..., :2], here[..., 2:]
        distances = rl.cat((centers - proposals[..., :2], proposals[..., 2:] - centers), -1)
        return self._scaled(distances, sizes, to_pixels=False)

    def decode(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        """Returns the boxes (..., 4) of distances (..., 4) from the centers of boxes."""
        here = box_convert(boxes.to(rel_codes.dtype), "xyxy", "cxcywh")
        centers = here[..., :2]
        distances = self._scaled(rel_codes, here[..., 2:], to_pixels=True)
        return rl.cat((centers - distances[..., :2], centers + distances[..., 2:]), -1)

    def _scaled(self, distances: Tensor, sizes: Tensor, to_pixels: bool) -> Tensor:
        if not self.normalize_by_size:
            return distances
        sides = rl.cat((sizes, sizes), -1)
        return distances * sides if to_pixels else distances / sides


# Matching


class Matcher:
    """Gives each prediction the target that suits it best, if it suits well enough.

    Args:
        high_threshold: from this quality on, it does.
        low_threshold: below this, there is none, and between the two it is not said.
        allow_low_quality_matches: whether the best predictions of a target always get it.
    """

    BELOW_LOW_THRESHOLD = -1
    BETWEEN_THRESHOLDS = -2

    def __init__(
        self,
        high_threshold: float,
        low_threshold: float,
        allow_low_quality_matches: bool = False,
    ) -> None:
        if low_threshold > high_threshold:
            raise AssertionError(
                f"Matcher: low_threshold should be <= high_threshold, but they are {low_threshold} "
                f"and {high_threshold}."
            )
        self.high_threshold = high_threshold
        self.low_threshold = low_threshold
        self.allow_low_quality_matches = allow_low_quality_matches

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        """Returns for each prediction the index of its target, or one of the constants above.

        Args:
            match_quality_matrix: (targets, predictions), such as box_iou of them.

        Raises:
            ValueError: if there are no targets or no predictions.
        """
        if match_quality_matrix.numel() == 0:
            missing = "ground-truth" if match_quality_matrix.shape[0] == 0 else "proposal"
            raise ValueError(
                f"Matcher: No {missing} boxes available for one of the images during training."
            )
        quality, best = match_quality_matrix.max(dim=0)
        is_low = quality < self.low_threshold
        matches = best.masked_fill(is_low, self.BELOW_LOW_THRESHOLD)
        between = ~is_low & (quality < self.high_threshold)
        matches = matches.masked_fill(between, self.BETWEEN_THRESHOLDS)
        if self.allow_low_quality_matches:
            best_of_target = match_quality_matrix.amax(dim=1, keepdim=True)
            is_best = (match_quality_matrix == best_of_target).any(dim=0)
            matches = rl.where(is_best, best, matches)
        return matches


class SSDMatcher(Matcher):
    """A Matcher where the one best prediction of each target gets that target."""

    def __init__(self, threshold: float) -> None:
        super().__init__(threshold, threshold, allow_low_quality_matches=False)

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        matches = super().__call__(match_quality_matrix)
        best = match_quality_matrix.argmax(dim=1)
        matches[best] = rl.arange(len(best), device=best.device)
        return matches


class BalancedPositiveNegativeSampler:
    """Draws from each image a number of predictions to learn from, with a share of positive ones.

    Args:
        batch_size_per_image: how many of an image.
        positive_fraction: the largest share of positive ones; negative ones make up the rest.
    """

    def __init__(self, batch_size_per_image: int, positive_fraction: float) -> None:
        self.batch_size_per_image = batch_size_per_image
        self.positive_fraction = positive_fraction

    def __call__(self, matched_idxs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Returns two lists of masks, of the positive and of the negative ones that were drawn.

        Args:
            matched_idxs: for each image, a vector of labels: at least 1 positive, 0 negative, and
                less than 0 to be left out.
        """
        chosen: tuple[list[Tensor], list[Tensor]] = ([], [])
        for labels in matched_idxs:
            positive, negative = rl.where(labels >= 1)[0], rl.where(labels == 0)[0]
            most = int(self.batch_size_per_image * self.positive_fraction)
            positives = min(len(positive), most)
            counts = (positives, min(len(negative), self.batch_size_per_image - positives))
            for masks, places, count in zip(chosen, (positive, negative), counts, strict=True):
                drawn = places[rl.randperm(len(places), device=places.device)[:count]]
                mask = rl.zeros_like(labels, dtype=rl.uint8)
                mask[drawn] = 1
                masks.append(mask)
        return chosen


# Losses and the rest


_OVERLAP_LOSSES = {
    "ciou": complete_box_iou_loss,
    "diou": distance_box_iou_loss,
    "giou": generalized_box_iou_loss,
}


def _box_loss(
    type: str,
    box_coder: BoxCoder,
    anchors_per_image: Tensor,
    matched_gt_boxes_per_image: Tensor,
    bbox_regression_per_image: Tensor,
    cnf: dict[str, float] | None = None,
) -> Tensor:
    """Returns the sum of a loss, by its name, of the boxes that codes stand for."""
    if type not in ("l1", "smooth_l1", *_OVERLAP_LOSSES):
        raise AssertionError(f"_box_loss: Unsupported loss: {type}.")
    if type in _OVERLAP_LOSSES:
        boxes = box_coder.decode_single(bbox_regression_per_image, anchors_per_image)
        eps = cnf["eps"] if cnf and "eps" in cnf else 1e-7
        return _OVERLAP_LOSSES[type](boxes, matched_gt_boxes_per_image, reduction="sum", eps=eps)
    codes = box_coder.encode_single(matched_gt_boxes_per_image, anchors_per_image)
    if type == "l1":
        return F.l1_loss(bbox_regression_per_image, codes, reduction="sum")
    beta = cnf["beta"] if cnf and "beta" in cnf else 1.0
    return F.smooth_l1_loss(bbox_regression_per_image, codes, reduction="sum", beta=beta)


def overwrite_eps(model: nn.Module, eps: float) -> None:
    """Sets the eps of all FrozenBatchNorm2d of a model: some weights were trained without one."""
    for module in model.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.eps = eps


def retrieve_out_channels(model: nn.Module, size: tuple[int, int]) -> list[int]:
    """Returns the channels of the maps that a backbone gives for images of size (width, height)."""
    was_training = model.training
    model.eval()
    with rl.no_grad():
        device = next(model.parameters()).device
        maps = model(rl.zeros((1, 3, size[1], size[0]), device=device))
    model.train(was_training)
    maps = [maps] if isinstance(maps, Tensor) else maps.values()
    return [features.shape[1] for features in maps]


def _topk_min(input: Tensor, orig_kval: int, axis: int) -> int:
    """Returns how many there are to take: orig_kval, or all."""
    return min(orig_kval, input.shape[axis])
