"""RetinaNet: Lin et al. 2017, Focal Loss for Dense Object Detection.

Version 2 is after Zhang et al. 2020, Bridging the Gap Between Anchor-based and Anchor-free
Detection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision import ops
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder
from rushlight.vision.models.detection._detector import (
    SingleStageDetector,
    Sizes,
    Target,
    check_anchor_generator,
    check_backbone,
)
from rushlight.vision.models.detection._utils import BoxCoder, Matcher, _box_loss, _topk_min
from rushlight.vision.models.detection.anchor_utils import AnchorGenerator
from rushlight.vision.models.detection.backbone_utils import _resnet_fpn_extractor
from rushlight.vision.models.detection.rpn import by_anchors
from rushlight.vision.models.detection.transform import GeneralizedRCNNTransform
from rushlight.vision.models.resnet import ResNet50_Weights, resnet50
from rushlight.vision.ops._older_names import OlderNames
from rushlight.vision.ops.feature_pyramid_network import LastLevelP6P7

__all__ = [
    "RetinaNet",
    "RetinaNet_ResNet50_FPN_V2_Weights",
    "RetinaNet_ResNet50_FPN_Weights",
    "retinanet_resnet50_fpn",
    "retinanet_resnet50_fpn_v2",
]

MakeLayer = Callable[..., nn.Module]


def _default_anchorgen() -> AnchorGenerator:
    """Three sizes for each map of a pyramid of five, a third of an octave apart."""
    sizes = tuple(
        tuple(int(size * 2 ** (k / 3)) for k in range(3)) for size in (32, 64, 128, 256, 512)
    )
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * 5)


def _tower(in_channels: int, norm_layer: MakeLayer | None) -> nn.Sequential:
    """Four convolutions."""
    tower = nn.Sequential(
        *[
            ops.Conv2dNormActivation(in_channels, in_channels, norm_layer=norm_layer)
            for _ in range(4)
        ]
    )
    for layer in tower.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=0.01)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return tower


def prior_bias(prior_probability: float) -> float:
    """Returns the bias of scores that are of this probability at first."""
    return -math.log((1 - prior_probability) / prior_probability)


class RetinaNetHead(nn.Module):
    """Says of each anchor what is there, and how the box must move.

    Args:
        in_channels: channels of the maps.
        num_anchors: anchors of a place.
        num_classes: classes, none of which is the background.
        norm_layer: makes the norms of the convolutions.
    """

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer=norm_layer
        )
        self.regression_head = RetinaNetRegressionHead(
            in_channels, num_anchors, norm_layer=norm_layer
        )

    def compute_loss(
        self,
        targets: list[Target],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        """Returns the losses of both heads."""
        return {
            "classification": self.classification_head.compute_loss(
                targets, head_outputs, matched_idxs
            ),
            "bbox_regression": self.regression_head.compute_loss(
                targets, head_outputs, anchors, matched_idxs
            ),
        }

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        """Returns "cls_logits" (N, anchors, classes) and "bbox_regression" (N, anchors, 4)."""
        return {
            "cls_logits": self.classification_head(x),
            "bbox_regression": self.regression_head(x),
        }


class _Head(OlderNames):
    def _older_names(self) -> Iterable[tuple[str, str]]:
        return ((f"conv.{2 * i}", f"conv.{i}.0") for i in range(4))  # without blocks around them


class RetinaNetClassificationHead(_Head):
    """Says of each anchor what is there."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        prior_probability: float = 0.01,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        self.conv = _tower(in_channels, norm_layer)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, padding=1)
        nn.init.normal_(self.cls_logits.weight, std=0.01)
        nn.init.constant_(self.cls_logits.bias, prior_bias(prior_probability))  # pyright: ignore[reportArgumentType]
        self.num_classes = num_classes
        self.num_anchors = num_anchors

    def compute_loss(
        self, targets: list[Target], head_outputs: dict[str, Tensor], matched_idxs: list[Tensor]
    ) -> Tensor:
        """Returns the focal loss, for each anchor with a target, as a mean over the images."""
        losses = []
        for target, logits, matched in zip(
            targets, head_outputs["cls_logits"], matched_idxs, strict=True
        ):
            positive = rl.where(matched >= 0)[0]
            wanted = rl.zeros_like(logits)
            wanted[positive, target["labels"][matched[positive]]] = 1.0
            said = matched != Matcher.BETWEEN_THRESHOLDS
            loss = ops.sigmoid_focal_loss(logits[said], wanted[said], reduction="sum")
            losses.append(loss / max(1, len(positive)))
        return rl.stack(losses).sum() / max(1, len(targets))

    def forward(self, x: list[Tensor]) -> Tensor:
        scores = [by_anchors(self.cls_logits(self.conv(f)), self.num_classes) for f in x]
        return rl.cat(scores, dim=1)


class RetinaNetRegressionHead(_Head):
    """Says of each anchor how the box must move."""

    def __init__(
        self, in_channels: int, num_anchors: int, norm_layer: MakeLayer | None = None
    ) -> None:
        super().__init__()
        self.conv = _tower(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, padding=1)
        nn.init.normal_(self.bbox_reg.weight, std=0.01)
        nn.init.zeros_(self.bbox_reg.bias)  # pyright: ignore[reportArgumentType]
        self.box_coder = BoxCoder((1.0, 1.0, 1.0, 1.0))
        self._loss_type = "l1"

    def compute_loss(
        self,
        targets: list[Target],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:
        """Returns the loss of boxes, for each anchor with a target, as a mean over the images."""
        losses = []
        for target, codes, boxes, matched in zip(
            targets, head_outputs["bbox_regression"], anchors, matched_idxs, strict=True
        ):
            positive = rl.where(matched >= 0)[0]
            reference = target["boxes"][matched[positive]]
            loss = _box_loss(
                self._loss_type, self.box_coder, boxes[positive], reference, codes[positive]
            )
            losses.append(loss / max(1, len(positive)))
        return rl.stack(losses).sum() / max(1, len(targets))

    def forward(self, x: list[Tensor]) -> Tensor:
        return rl.cat([by_anchors(self.bbox_reg(self.conv(f)), 4) for f in x], dim=1)


class RetinaNet(SingleStageDetector):
    """A backbone, and a head that classifies and moves each anchor.

    Args:
        backbone: gives a map or a dict of maps, and has the attribute out_channels.
        num_classes: classes with that of the background, which no anchor is learned to be.
        min_size, max_size, image_mean, image_std: of GeneralizedRCNNTransform, also **kwargs.
        anchor_generator: an AnchorGenerator.
        head: a RetinaNetHead.
        proposal_matcher: says which target an anchor is for.
        score_thresh: detections must have a higher score.
        nms_thresh: detections of a class may overlap by this.
        detections_per_img: how many there are at most.
        fg_iou_thresh: the overlap from which on an anchor is for a target.
        bg_iou_thresh: the overlap below which it is for none.
        topk_candidates: detections of a map before overlapping ones go.

    Raises:
        ValueError: if the backbone has no out_channels.
        TypeError: if anchor_generator is something else.
    """

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int,
        # transform
        min_size: int | tuple[int, ...] = 800,
        max_size: int = 1333,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        # anchors
        anchor_generator: AnchorGenerator | None = None,
        head: nn.Module | None = None,
        proposal_matcher: Matcher | None = None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        check_backbone(backbone, "RetinaNet")
        check_anchor_generator(anchor_generator, AnchorGenerator, "RetinaNet")
        self.backbone = backbone
        self.anchor_generator = anchor_generator or _default_anchorgen()
        channels: int = backbone.out_channels
        per_place = self.anchor_generator.num_anchors_per_location()[0]
        self.head = head or RetinaNetHead(channels, per_place, num_classes)
        self.proposal_matcher = proposal_matcher or Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.box_coder = BoxCoder((1.0, 1.0, 1.0, 1.0))
        mean, std = image_mean or [0.485, 0.456, 0.406], image_std or [0.229, 0.224, 0.225]
        self.transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.topk_candidates = topk_candidates

    def compute_loss(
        self,
        targets: list[Target],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        num_anchors_per_level: list[int],
    ) -> dict[str, Tensor]:
        matched = match_anchors(self.proposal_matcher, anchors, targets)
        return self.head.compute_loss(targets, head_outputs, anchors, matched)

    def postprocess_detections(
        self,
        head_outputs: dict[str, list[Tensor]],
        anchors: list[list[Tensor]],
        image_shapes: Sizes,
    ) -> list[Target]:
        scores = [logits.sigmoid() for logits in head_outputs["cls_logits"]]
        decode = self.box_coder.decode_single
        return best_of_levels(
            self, scores, head_outputs["bbox_regression"], decode, anchors, image_shapes
        )


def match_anchors(matcher: Matcher, anchors: list[Tensor], targets: list[Target]) -> list[Tensor]:
    """Returns for each image what a matcher says of each anchor."""
    matched = []
    for boxes, target in zip(anchors, targets, strict=True):
        if target["boxes"].numel() == 0:
            matched.append(rl.full((len(boxes),), -1, dtype=rl.int64, device=boxes.device))
        else:
            matched.append(matcher(ops.box_iou(target["boxes"], boxes)))
    return matched


def best_of_levels(
    model: Any,
    scores: list[Tensor],
    codes: list[Tensor],
    decode: Callable[[Tensor, Tensor], Tensor],
    anchors: list[list[Tensor]],
    image_shapes: Sizes,
) -> list[Target]:
    """Returns the detections of each image: the best of each map, less those that overlap.

    Args:
        model: has score_thresh, topk_candidates, nms_thresh and detections_per_img.
        scores: probabilities (N, anchors, classes) of each map.
        codes: (N, anchors, 4) of each map.
        decode: makes boxes of codes and anchors.
        anchors: for each image, those of each map.
        image_shapes: (height, width) of each image.
    """
    detections = []
    for i, shape in enumerate(image_shapes):
        found = []
        for score, code, level in zip(scores, codes, anchors[i], strict=True):
            classes = score.shape[-1]
            flat = score[i].flatten()
            chosen = rl.where(flat > model.score_thresh)[0]
            count = _topk_min(chosen, model.topk_candidates, 0)
            best, rank = flat[chosen].topk(count)
            chosen = chosen[rank]
            anchor = chosen // classes
            boxes = ops.clip_boxes_to_image(decode(code[i][anchor], level[anchor]), shape)
            found.append((boxes, best, chosen % classes))
        boxes, of_image, labels = (rl.cat(parts) for parts in zip(*found, strict=True))
        keep = ops.batched_nms(boxes, of_image, labels, model.nms_thresh)
        keep = keep[: model.detections_per_img]
        detections.append({"boxes": boxes[keep], "scores": of_image[keep], "labels": labels[keep]})
    return detections


class RetinaNet_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = published("retinanet_resnet50_fpn_coco-eeacb38b.pth")
    DEFAULT = COCO_V1


class RetinaNet_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = published("retinanet_resnet50_fpn_v2_coco-5905b1c5.pth")
    DEFAULT = COCO_V1


@dense_builder(
    RetinaNet_ResNet50_FPN_Weights,
    ResNet50_Weights,
    num_classes=91,
    layers=(5, 3),
    exact_norm=True,
)
def retinanet_resnet50_fpn(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> RetinaNet:
    """RetinaNet with a ResNet-50 and a pyramid; kwargs are RetinaNet's."""
    backbone = small_maps_pyramid(weights_backbone, progress, is_trained, trainable_backbone_layers)
    return RetinaNet(backbone, num_classes, **kwargs)


def small_maps_pyramid(
    weights: ResNet50_Weights | None, progress: bool, is_trained: bool, trainable: int | None
) -> nn.Module:
    """Returns a ResNet-50 with a pyramid of its three smaller maps and two smaller ones."""
    norm_layer = ops.FrozenBatchNorm2d if is_trained else nn.BatchNorm2d
    backbone = resnet50(weights=weights, progress=progress, norm_layer=norm_layer)
    layers = 5 if trainable is None else trainable
    return _resnet_fpn_extractor(backbone, layers, [2, 3, 4], LastLevelP6P7(256, 256))


@dense_builder(RetinaNet_ResNet50_FPN_V2_Weights, ResNet50_Weights, num_classes=91, layers=(5, 3))
def retinanet_resnet50_fpn_v2(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: ResNet50_Weights | None = None,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> RetinaNet:
    """RetinaNet with a ResNet-50, a pyramid and norms in its head; kwargs are RetinaNet's."""
    layers = 5 if trainable_backbone_layers is None else trainable_backbone_layers
    resnet = resnet50(weights=weights_backbone, progress=progress)
    backbone = _resnet_fpn_extractor(resnet, layers, [2, 3, 4], LastLevelP6P7(2048, 256))
    anchors = _default_anchorgen()
    head = RetinaNetHead(
        backbone.out_channels,
        anchors.num_anchors_per_location()[0],
        num_classes,
        norm_layer=partial(nn.GroupNorm, 32),
    )
    head.regression_head._loss_type = "giou"
    return RetinaNet(backbone, num_classes, anchor_generator=anchors, head=head, **kwargs)
