"""The first stage of R-CNNs: the region proposal network, which says where something is.

Source: Ren et al., "Faster R-CNN", 2015.
"""

from __future__ import annotations

from collections.abc import Iterable

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision import ops
from rushlight.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    Matcher,
    _topk_min,
)
from rushlight.vision.models.detection.anchor_utils import AnchorGenerator
from rushlight.vision.models.detection.image_list import ImageList
from rushlight.vision.ops._older_names import OlderNames

__all__ = ["AnchorGenerator", "RPNHead", "RegionProposalNetwork"]

Target = dict[str, Tensor]


class RPNHead(OlderNames):
    """Says for each anchor whether something is there, and how the box must move.

    Args:
        in_channels: channels of the maps.
        num_anchors: anchors of a place.
        conv_depth: number of convolutions before the two that answer.
    """

    def __init__(self, in_channels: int, num_anchors: int, conv_depth: int = 1) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            *[
                ops.Conv2dNormActivation(in_channels, in_channels, norm_layer=None)
                for _ in range(conv_depth)
            ]
        )
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, 1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, 1)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)  # pyright: ignore[reportArgumentType]

    def _older_names(self) -> Iterable[tuple[str, str]]:
        return (("conv", "conv.0.0"),)  # there was no block around the convolution

    def forward(self, x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Returns for each map scores (N, A, H, W) and codes (N, 4 * A, H, W)."""
        hidden = [self.conv(features) for features in x]
        return [self.cls_logits(h) for h in hidden], [self.bbox_pred(h) for h in hidden]


def permute_and_flatten(layer: Tensor, N: int, A: int, C: int, H: int, W: int) -> Tensor:
    """Returns (N, A * C, H, W) as (N, H * W * A, C), which is the order of anchors."""
    return layer.reshape(N, A, C, H, W).permute(0, 3, 4, 1, 2).reshape(N, -1, C)


def by_anchors(layer: Tensor, columns: int) -> Tensor:
    """Returns a map with `columns` numbers for each anchor as (N, anchors, columns)."""
    n, channels, height, width = layer.shape
    return permute_and_flatten(layer, n, channels // columns, columns, height, width)


class RegionProposalNetwork(nn.Module):
    """Proposes boxes.

    Args:
        anchor_generator: makes the anchors.
        head: says what is at each.
        fg_iou_thresh: the overlap from which on an anchor is for a target.
        bg_iou_thresh: the overlap below which it is for none.
        batch_size_per_image: anchors that are learned from.
        positive_fraction: the largest share of those for targets among them.
        pre_nms_top_n: proposals of each map before overlapping ones go, a dict with the numbers for
            "training" and "testing".
        post_nms_top_n: proposals of an image after that, likewise.
        nms_thresh: proposals of a map may overlap by this.
        score_thresh: proposals must have at least this score.
    """

    def __init__(
        self,
        anchor_generator: AnchorGenerator,
        head: nn.Module,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        pre_nms_top_n: dict[str, int],
        post_nms_top_n: dict[str, int],
        nms_thresh: float,
        score_thresh: float = 0.0,
    ) -> None:
        super().__init__()
        self.anchor_generator = anchor_generator
        self.head = head
        self.box_coder = BoxCoder((1.0, 1.0, 1.0, 1.0))
        self.box_similarity = ops.box_iou
        self.proposal_matcher = Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self._pre_nms_top_n = pre_nms_top_n
        self._post_nms_top_n = post_nms_top_n
        self.nms_thresh = nms_thresh
        self.score_thresh = score_thresh
        self.min_size = 1e-3

    def pre_nms_top_n(self) -> int:
        """Returns the number of proposals of each map before overlapping ones go."""
        return self._pre_nms_top_n["training" if self.training else "testing"]

    def post_nms_top_n(self) -> int:
        """Returns the number of proposals of an image after that."""
        return self._post_nms_top_n["training" if self.training else "testing"]

    def assign_targets_to_anchors(
        self, anchors: list[Tensor], targets: list[Target]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Returns for each image 1, 0 or, for unsaid ones, -1 for each anchor; and its target."""
        labels, matched_boxes = [], []
        for boxes, target in zip(anchors, targets, strict=True):
            reference = target["boxes"]
            if reference.numel() == 0:
                matched_boxes.append(rl.zeros_like(boxes))
                labels.append(boxes.new_zeros(len(boxes), dtype=rl.float32))
                continue
            matched = self.proposal_matcher(self.box_similarity(reference, boxes))
            matched_boxes.append(reference[matched.clamp(min=0)])
            label = (matched >= 0).to(rl.float32)
            labels.append(label.masked_fill(matched == Matcher.BETWEEN_THRESHOLDS, -1.0))
        return labels, matched_boxes

    def filter_proposals(
        self,
        proposals: Tensor,
        objectness: Tensor,
        image_shapes: list[tuple[int, int]],
        num_anchors_per_level: list[int],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Returns the best boxes of each image, and their scores.

        Args:
            proposals: (N, anchors, 4).
            objectness: scores (N * anchors, 1) before the sigmoid.
            image_shapes: (height, width) of each image.
            num_anchors_per_level: anchors of each map.
        """
        objectness = objectness.detach().reshape(len(proposals), -1)
        places, levels, first = [], [], 0
        for level, scores in enumerate(objectness.split(num_anchors_per_level, 1)):
            _, best = scores.topk(_topk_min(scores, self.pre_nms_top_n(), 1), dim=1)
            places.append(best + first)
            levels.append(rl.full_like(best[0], level))
            first += scores.shape[1]
        place = rl.cat(places, 1)  # (N, candidates)
        level = rl.cat(levels)
        probabilities = objectness.gather(1, place).sigmoid()
        candidates = proposals.gather(1, place[..., None].expand(-1, -1, 4))
        final: tuple[list[Tensor], list[Tensor]] = ([], [])
        for boxes, scores, shape in zip(candidates, probabilities, image_shapes, strict=True):
            boxes = ops.clip_boxes_to_image(boxes, shape)
            is_large = ((boxes[:, 2:] - boxes[:, :2]) >= self.min_size).all(1)
            keep = rl.where(is_large & (scores >= self.score_thresh))[0]
            boxes, scores = boxes[keep], scores[keep]
            keep = ops.batched_nms(boxes, scores, level[keep], self.nms_thresh)
            keep = keep[: self.post_nms_top_n()]
            final[0].append(boxes[keep])
            final[1].append(scores[keep])
        return final

    def compute_loss(
        self,
        objectness: Tensor,
        pred_bbox_deltas: Tensor,
        labels: list[Tensor],
        regression_targets: list[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Returns the losses of the scores and of the boxes of some anchors, drawn at random."""
        drawn = self.fg_bg_sampler(labels)
        positive, negative = (rl.where(rl.cat(masks))[0] for masks in drawn)
        sampled = rl.cat((positive, negative))
        label, target = rl.cat(labels), rl.cat(regression_targets)
        box_loss = F.smooth_l1_loss(
            pred_bbox_deltas[positive], target[positive], beta=1 / 9, reduction="sum"
        )
        objectness_loss = F.binary_cross_entropy_with_logits(
            objectness.flatten()[sampled], label[sampled]
        )
        return objectness_loss, box_loss / sampled.numel()

    def forward(
        self,
        images: ImageList,
        features: dict[str, Tensor],
        targets: list[Target] | None = None,
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Returns the proposals (L, 4) of each image, and losses while training.

        Raises:
            ValueError: if there are no targets while training.
        """
        maps = list(features.values())
        objectness, codes = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        counts = [scores[0].numel() for scores in objectness]
        scores = rl.cat([by_anchors(s, 1) for s in objectness], 1).flatten(0, 1)
        deltas = rl.cat([by_anchors(c, 4) for c in codes], 1).flatten(0, 1)
        # Proposals are constants to the second stage.
        proposals = self.box_coder.decode(deltas.detach(), anchors).reshape(len(anchors), -1, 4)
        boxes, _ = self.filter_proposals(proposals, scores, images.image_sizes, counts)
        if not self.training:
            return boxes, {}
        if targets is None:
            raise ValueError("RegionProposalNetwork: targets should not be None.")
        labels, matched = self.assign_targets_to_anchors(anchors, targets)
        loss = self.compute_loss(scores, deltas, labels, self.box_coder.encode(matched, anchors))
        return boxes, {"loss_objectness": loss[0], "loss_rpn_box_reg": loss[1]}
