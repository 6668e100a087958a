"""The second stage of R-CNNs: what is in each proposal, and exactly where."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision import ops
from rushlight.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    Matcher,
)
from rushlight.vision.models.detection.keypoints import (
    heatmaps_to_keypoints,
    keypointrcnn_inference,
    keypointrcnn_loss,
    keypoints_to_heatmap,
)
from rushlight.vision.models.detection.masks import (
    maskrcnn_inference,
    maskrcnn_loss,
    paste_masks_in_image,
    project_masks_on_boxes,
)

__all__ = [
    "RoIHeads",
    "fastrcnn_loss",
    "heatmaps_to_keypoints",
    "keypointrcnn_inference",
    "keypointrcnn_loss",
    "keypoints_to_heatmap",
    "maskrcnn_inference",
    "maskrcnn_loss",
    "paste_masks_in_image",
    "project_masks_on_boxes",
]

Target = dict[str, Tensor]


def fastrcnn_loss(
    class_logits: Tensor,
    box_regression: Tensor,
    labels: list[Tensor],
    regression_targets: list[Tensor],
) -> tuple[Tensor, Tensor]:
    """Returns the losses of the classes and of the boxes.

    Args:
        class_logits: (all boxes, classes).
        box_regression: codes (all boxes, classes * 4).
        labels: the class of each box, 0 for none, of each image.
        regression_targets: the codes (L, 4) of its targets.
    """
    classes, targets = rl.cat(labels), rl.cat(regression_targets)
    positive = rl.where(classes > 0)[0]
    codes = box_regression.unflatten(1, (-1, 4))[positive, classes[positive]]
    box_loss = F.smooth_l1_loss(codes, targets[positive], beta=1 / 9, reduction="sum")
    return F.cross_entropy(class_logits, classes), box_loss / classes.numel()


class RoIHeads(nn.Module):
    """Classifies proposals and moves their boxes; masks and keypoints if there are heads for them.

    Args:
        box_roi_pool: the features of boxes, as MultiScaleRoIAlign gives them.
        box_head: makes a vector of those of a box.
        box_predictor: makes scores of classes and codes of boxes of that.
        fg_iou_thresh: the overlap from which on a proposal is for a target.
        bg_iou_thresh: the overlap below which it is for none.
        batch_size_per_image: proposals that are learned from.
        positive_fraction: the largest share of those for targets among them.
        bbox_reg_weights: of BoxCoder, (10, 10, 5, 5) if None.
        score_thresh: detections must have a higher score.
        nms_thresh: detections of a class may overlap by this.
        detections_per_img: how many there are at most.
        mask_roi_pool, mask_head, mask_predictor: the same for masks.
        keypoint_roi_pool, keypoint_head, keypoint_predictor: and for keypoints.
    """

    def __init__(
        self,
        box_roi_pool: nn.Module,
        box_head: nn.Module,
        box_predictor: nn.Module,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        bbox_reg_weights: tuple[float, float, float, float] | None,
        score_thresh: float,
        nms_thresh: float,
        detections_per_img: int,
        mask_roi_pool: nn.Module | None = None,
        mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None,
        keypoint_roi_pool: nn.Module | None = None,
        keypoint_head: nn.Module | None = None,
        keypoint_predictor: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.box_similarity = ops.box_iou
        self.proposal_matcher = Matcher(fg_iou_thresh, bg_iou_thresh)
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self.box_coder = BoxCoder(bbox_reg_weights or (10.0, 10.0, 5.0, 5.0))
        self.box_roi_pool = box_roi_pool
        self.box_head = box_head
        self.box_predictor = box_predictor
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.mask_roi_pool = mask_roi_pool
        self.mask_head = mask_head
        self.mask_predictor = mask_predictor
        self.keypoint_roi_pool = keypoint_roi_pool
        self.keypoint_head = keypoint_head
        self.keypoint_predictor = keypoint_predictor

    def has_mask(self) -> bool:
        """Returns whether there are heads for masks."""
        return None not in (self.mask_roi_pool, self.mask_head, self.mask_predictor)

    def has_keypoint(self) -> bool:
        """Returns whether there are heads for keypoints."""
        return None not in (self.keypoint_roi_pool, self.keypoint_head, self.keypoint_predictor)

    # Training

    def check_targets(self, targets: list[Target] | None) -> None:
        """Refuses targets without what the heads learn from, or of other dtypes.

        Raises:
            ValueError: if there are no targets, or no masks.
            KeyError: if another key is missing.
            TypeError: if something has another dtype.
        """
        if targets is None:
            raise ValueError("RoIHeads: targets should not be None.")
        names = ["boxes", "labels", *(["masks"] if self.has_mask() else [])]
        names += ["keypoints"] if self.has_keypoint() else []
        for name in names:
            if not all(name in target for target in targets):
                kind = ValueError if name == "masks" else KeyError
                raise kind(f"RoIHeads: Every element of targets should have a {name} key.")
        for target in targets:
            for name in ("boxes", "keypoints"):
                if name in names and not target[name].is_floating_point():
                    raise TypeError(
                        f"RoIHeads: target {name} must of float type, instead got "
                        f"{target[name].dtype}."
                    )
            if target["labels"].dtype != rl.int64:
                raise TypeError(
                    "RoIHeads: target labels must of int64 type, instead got "
                    f"{target['labels'].dtype}."
                )

    def assign_targets_to_proposals(
        self, proposals: list[Tensor], gt_boxes: list[Tensor], gt_labels: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Returns for each image the target of each proposal, and its class, -1 for unsaid ones."""
        matched, classes = [], []
        for boxes, targets, labels in zip(proposals, gt_boxes, gt_labels, strict=True):
            if targets.numel() == 0:
                matches = rl.zeros(len(boxes), dtype=rl.int64, device=boxes.device)
                chosen = matches
            else:
                found = self.proposal_matcher(self.box_similarity(targets, boxes))
                matches = found.clamp(min=0)
                chosen = labels[matches].to(rl.int64)
                chosen = chosen.masked_fill(found == Matcher.BELOW_LOW_THRESHOLD, 0)
                chosen = chosen.masked_fill(found == Matcher.BETWEEN_THRESHOLDS, -1)
            matched.append(matches)
            classes.append(chosen)
        return matched, classes

    def select_training_samples(
        self, proposals: list[Tensor], targets: list[Target] | None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
        """Returns for each image the proposals to learn from, their targets, classes and codes."""
        self.check_targets(targets)
        assert targets is not None
        dtype = proposals[0].dtype
        gt_boxes = [target["boxes"].to(dtype) for target in targets]
        proposals = [rl.cat(both) for both in zip(proposals, gt_boxes, strict=True)]
        matched, labels = self.assign_targets_to_proposals(
            proposals, gt_boxes, [target["labels"] for target in targets]
        )
        positive, negative = self.fg_bg_sampler(labels)
        reference = []
        for i, boxes in enumerate(gt_boxes):
            drawn = rl.where(positive[i] | negative[i])[0]
            proposals[i], labels[i] = proposals[i][drawn], labels[i][drawn]
            matched[i] = matched[i][drawn]
            boxes = boxes if boxes.numel() > 0 else boxes.new_zeros((1, 4))
            reference.append(boxes[matched[i]])
        return proposals, matched, labels, self.box_coder.encode(reference, proposals)

    # Inference

    def postprocess_detections(
        self,
        class_logits: Tensor,
        box_regression: Tensor,
        proposals: list[Tensor],
        image_shapes: list[tuple[int, int]],
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Returns the boxes of each image, their scores and their classes."""
        counts = [len(boxes) for boxes in proposals]
        decoded = self.box_coder.decode(box_regression, proposals).split(counts, 0)
        scores = class_logits.softmax(-1).split(counts, 0)
        detections: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        for boxes, score, shape in zip(decoded, scores, image_shapes, strict=True):
            found = self._detections(ops.clip_boxes_to_image(boxes, shape), score)
            for of_all, of_image in zip(detections, found, strict=True):
                of_all.append(of_image)
        return detections

    def _detections(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best of boxes (L, classes, 4), where the first class is none."""
        labels = rl.arange(scores.shape[1], device=scores.device).expand_as(scores)
        boxes = boxes[:, 1:].flatten(0, 1)
        scores, labels = scores[:, 1:].flatten(), labels[:, 1:].flatten()
        chosen = rl.where(scores > self.score_thresh)[0]
        boxes, scores, labels = boxes[chosen], scores[chosen], labels[chosen]
        chosen = ops.remove_small_boxes(boxes, min_size=1e-2)
        boxes, scores, labels = boxes[chosen], scores[chosen], labels[chosen]
        chosen = ops.batched_nms(boxes, scores, labels, self.nms_thresh)[: self.detections_per_img]
        return boxes[chosen], scores[chosen], labels[chosen]

    def forward(
        self,
        features: dict[str, Tensor],
        proposals: list[Tensor],
        image_shapes: list[tuple[int, int]],
        targets: list[Target] | None = None,
    ) -> tuple[list[Target], dict[str, Tensor]]:
        """Returns the detections of each image, and losses while training.

        Args:
            features: the backbone's maps by name.
            proposals: (L, 4) for each image.
            image_shapes: (height, width) of each image.
            targets: those of each image, while training.

        Raises:
            ValueError, KeyError, TypeError: as check_targets.
        """
        matched: list[Tensor] = []
        labels: list[Tensor] = []
        regression_targets: list[Tensor] = []
        if self.training:
            proposals, matched, labels, regression_targets = self.select_training_samples(
                proposals, targets
            )
        pooled = self.box_roi_pool(features, proposals, image_shapes)
        class_logits, box_regression = self.box_predictor(self.box_head(pooled))
        result: list[dict[str, Any]] = []
        losses: dict[str, Tensor] = {}
        if self.training:
            losses["loss_classifier"], losses["loss_box_reg"] = fastrcnn_loss(
                class_logits, box_regression, labels, regression_targets
            )
        else:
            found = self.postprocess_detections(
                class_logits, box_regression, proposals, image_shapes
            )
            result = [
                {"boxes": b, "labels": k, "scores": s} for b, s, k in zip(*found, strict=True)
            ]
        if not (self.has_mask() or self.has_keypoint()):
            return result, losses
        # Masks and keypoints are learned from the proposals that are for a target.
        if self.training:
            positive = [rl.where(of_image > 0)[0] for of_image in labels]
            boxes = [of[at] for of, at in zip(proposals, positive, strict=True)]
            matched = [of[at] for of, at in zip(matched, positive, strict=True)]
        else:
            boxes = [found["boxes"] for found in result]
        if self.has_mask():
            self._masks(features, boxes, image_shapes, targets, matched, result, losses)
        if self.has_keypoint():
            self._keypoints(features, boxes, image_shapes, targets, matched, result, losses)
        return result, losses

    def _masks(
        self,
        features: Any,
        boxes: Any,
        image_shapes: Any,
        targets: Any,
        matched: Any,
        result: Any,
        losses: Any,
    ) -> None:
        """Adds the loss of the masks, or the masks."""
        logits = self.mask_predictor(  # pyright: ignore[reportOptionalCall]
            self.mask_head(self.mask_roi_pool(features, boxes, image_shapes))  # pyright: ignore[reportOptionalCall]
        )
        if self.training:
            masks, labels = ([target[name] for target in targets] for name in ("masks", "labels"))
            losses["loss_mask"] = maskrcnn_loss(logits, boxes, masks, labels, matched)
            return
        found = maskrcnn_inference(logits, [of_image["labels"] for of_image in result])
        for of_image, masks in zip(result, found, strict=True):
            of_image["masks"] = masks

    def _keypoints(
        self,
        features: Any,
        boxes: Any,
        image_shapes: Any,
        targets: Any,
        matched: Any,
        result: Any,
        losses: Any,
    ) -> None:
        """Adds the loss of the keypoints, or the keypoints."""
        logits = self.keypoint_predictor(  # pyright: ignore[reportOptionalCall]
            self.keypoint_head(self.keypoint_roi_pool(features, boxes, image_shapes))  # pyright: ignore[reportOptionalCall]
        )
        if self.training:
            points = [target["keypoints"] for target in targets]
            losses["loss_keypoint"] = keypointrcnn_loss(logits, boxes, points, matched)
            return
        found = keypointrcnn_inference(logits, boxes)
        for of_image, points, scores in zip(result, *found, strict=True):
            of_image["keypoints"] = points
            of_image["keypoints_scores"] = scores
