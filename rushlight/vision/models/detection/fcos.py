"""FCOS: Tian et al. 2019, FCOS: Fully Convolutional One-Stage Object Detection.

An "anchor" is one box for each place of a map, of which only the center and the size count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
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
from rushlight.vision.models.detection._utils import BoxLinearCoder
from rushlight.vision.models.detection.anchor_utils import AnchorGenerator
from rushlight.vision.models.detection.retinanet import (
    best_of_levels,
    prior_bias,
    small_maps_pyramid,
)
from rushlight.vision.models.detection.rpn import by_anchors
from rushlight.vision.models.detection.transform import GeneralizedRCNNTransform
from rushlight.vision.models.resnet import ResNet50_Weights

__all__ = ["FCOS", "FCOS_ResNet50_FPN_Weights", "fcos_resnet50_fpn"]

MakeLayer = Callable[..., nn.Module]


class FCOSHead(nn.Module):
    """Says of each anchor what is there, how far the sides are, and how central it is.

    Args:
        in_channels: channels of the maps.
        num_anchors: anchors of a place, which is 1.
        num_classes: classes.
        num_convs: convolutions of each tower.
    """

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int | None = 4
    ) -> None:
        super().__init__()
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        convs = num_convs or 4
        self.classification_head = FCOSClassificationHead(
            in_channels, num_anchors, num_classes, convs
        )
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, convs)

    def compute_loss(
        self,
        targets: list[Target],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        """Returns the losses of classes, boxes and centralities, for each anchor with a target."""
        logits = head_outputs["cls_logits"]  # (N, anchors, classes)
        centers = rl.stack(anchors)
        labels, reference = [], []
        for target, matched in zip(targets, matched_idxs, strict=True):
            label = target["labels"]
            if len(label) == 0:  # what stands for no target
                labels.append(rl.full_like(matched, -1))
                reference.append(centers.new_zeros((len(matched), 4)))
                continue
            at = matched.clamp(min=0)
            labels.append(label[at].masked_fill(matched < 0, -1))
            reference.append(target["boxes"][at].to(centers.dtype))
        label, boxes = rl.stack(labels), rl.stack(reference)
        positive = rl.where(label >= 0)
        count = max(1, len(positive[0]))
        wanted = rl.zeros_like(logits)
        wanted[(*positive, label[positive])] = 1.0
        loss_cls = ops.sigmoid_focal_loss(logits, wanted, reduction="sum")
        centers, boxes = centers[positive], boxes[positive]
        found = self.box_coder.decode(head_outputs["bbox_regression"][positive], centers)
        loss_box = ops.generalized_box_iou_loss(found, boxes, reduction="sum")
        loss_center = F.binary_cross_entropy_with_logits(
            head_outputs["bbox_ctrness"][..., 0][positive],
            self._centrality(centers, boxes),
            reduction="sum",
        )
        return {
            "classification": loss_cls / count,
            "bbox_regression": loss_box / count,
            "bbox_ctrness": loss_center / count,
        }

    def _centrality(self, anchors: Tensor, boxes: Tensor) -> Tensor:
        """1 in the center of a box, 0 at its sides: equation 3 of the paper."""
        if len(boxes) == 0:
            return boxes.new_zeros(0)
        distances = self.box_coder.encode(anchors, boxes)
        across, down = distances[:, 0::2], distances[:, 1::2]
        return rl.sqrt(across.amin(1) / across.amax(1) * (down.amin(1) / down.amax(1)))

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        """Returns "cls_logits", "bbox_regression" and "bbox_ctrness", (N, anchors, ...) each."""
        codes, centrality = self.regression_head(x)
        return {
            "cls_logits": self.classification_head(x),
            "bbox_regression": codes,
            "bbox_ctrness": centrality,
        }


def _tower(in_channels: int, num_convs: int, norm_layer: MakeLayer | None) -> nn.Sequential:
    norm_layer = norm_layer or partial(nn.GroupNorm, 32)
    layers: list[nn.Module] = []
    for _ in range(num_convs):
        conv = nn.Conv2d(in_channels, in_channels, 3, stride=1, padding=1)
        _init_convolution(conv)
        layers += [conv, norm_layer(in_channels), nn.ReLU()]
    return nn.Sequential(*layers)


def _init_convolution(conv: nn.Conv2d, bias: float = 0.0) -> None:
    nn.init.normal_(conv.weight, std=0.01)
    nn.init.constant_(conv.bias, bias)  # pyright: ignore[reportArgumentType]


class FCOSClassificationHead(nn.Module):
    """Says of each anchor what is there."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        num_convs: int = 4,
        prior_probability: float = 0.01,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.num_anchors = num_anchors
        self.conv = _tower(in_channels, num_convs, norm_layer)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, padding=1)
        _init_convolution(self.cls_logits, prior_bias(prior_probability))

    def forward(self, x: list[Tensor]) -> Tensor:
        scores = [by_anchors(self.cls_logits(self.conv(f)), self.num_classes) for f in x]
        return rl.cat(scores, dim=1)


class FCOSRegressionHead(nn.Module):
    """Says of each anchor how far the sides of the box are, and how central the anchor is."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_convs: int = 4,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        self.conv = _tower(in_channels, num_convs, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, padding=1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, 3, padding=1)
        _init_convolution(self.bbox_reg)
        _init_convolution(self.bbox_ctrness)

    def forward(self, x: list[Tensor]) -> tuple[Tensor, Tensor]:
        hidden = [self.conv(features) for features in x]
        codes = [by_anchors(F.relu(self.bbox_reg(h)), 4) for h in hidden]
        centrality = [by_anchors(self.bbox_ctrness(h), 1) for h in hidden]
        return rl.cat(codes, dim=1), rl.cat(centrality, dim=1)


class FCOS(SingleStageDetector):
    """A backbone, and a head that says what is at each place, and how large.

    Args:
        backbone: gives a map or a dict of maps, and has the attribute out_channels.
        num_classes: classes with that of the background, which no place is learned to be.
        min_size, max_size, image_mean, image_std: of GeneralizedRCNNTransform, also **kwargs.
        anchor_generator: an AnchorGenerator of one anchor for each place.
        head: an FCOSHead.
        center_sampling_radius: how far from the center of a target places are for it, in places.
        score_thresh: detections must have a higher score.
        nms_thresh: detections of a class may overlap by this.
        detections_per_img: how many there are at most.
        topk_candidates: detections of a map before overlapping ones go.

    Raises:
        ValueError: if the backbone has no out_channels.
        TypeError: if anchor_generator is something else.
        AssertionError: if a place has several anchors.
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
        center_sampling_radius: float = 1.5,
        score_thresh: float = 0.2,
        nms_thresh: float = 0.6,
        detections_per_img: int = 100,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        check_backbone(backbone, "FCOS")
        check_anchor_generator(anchor_generator, AnchorGenerator, "FCOS")
        self.backbone = backbone
        self.anchor_generator = anchor_generator or AnchorGenerator(
            ((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5
        )
        per_place = self.anchor_generator.num_anchors_per_location()[0]
        if per_place != 1:
            raise AssertionError(
                "FCOS: anchor_generator.num_anchors_per_location()[0] should be 1, but is "
                f"{per_place}."
            )
        channels: int = backbone.out_channels
        self.head = head or FCOSHead(channels, per_place, num_classes)
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        mean, std = image_mean or [0.485, 0.456, 0.406], image_std or [0.229, 0.224, 0.225]
        self.transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        self.center_sampling_radius = center_sampling_radius
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
        matched = [
            self._match(boxes, target["boxes"], num_anchors_per_level)
            for boxes, target in zip(anchors, targets, strict=True)
        ]
        return self.head.compute_loss(targets, head_outputs, anchors, matched)

    def _match(self, anchors: Tensor, targets: Tensor, counts: list[int]) -> Tensor:
        """The target of each anchor: the smallest one that suits it; -1 for none."""
        if targets.numel() == 0:
            return rl.full((len(anchors),), -1, dtype=rl.int64, device=anchors.device)
        centers = (anchors[:, :2] + anchors[:, 2:]) / 2
        sizes = anchors[:, 2] - anchors[:, 0]
        target_centers = (targets[:, :2] + targets[:, 2:]) / 2
        apart = (centers[:, None] - target_centers).abs().amax(-1)  # (anchors, targets)
        suits = apart < self.center_sampling_radius * sizes[:, None]
        # The center lies in the box, whose sides are as far away as the map is for.
        to_sides = rl.cat(
            (centers[:, None] - targets[:, :2], targets[:, 2:] - centers[:, None]), -1
        )
        suits &= to_sides.amin(-1) > 0
        least, most = sizes * 4, sizes * 8
        least[: counts[0]] = 0
        most[-counts[-1] :] = math.inf
        farthest = to_sides.amax(-1)
        suits &= (farthest > least[:, None]) & (farthest < most[:, None])
        preference = suits.to(rl.float32) * (1e8 - ops.box_area(targets))
        best, which = preference.max(dim=1)
        return which.masked_fill(best < 1e-5, -1)

    def postprocess_detections(
        self,
        head_outputs: dict[str, list[Tensor]],
        anchors: list[list[Tensor]],
        image_shapes: Sizes,
    ) -> list[Target]:
        both = zip(head_outputs["cls_logits"], head_outputs["bbox_ctrness"], strict=True)
        scores = [rl.sqrt(logits.sigmoid() * center.sigmoid()) for logits, center in both]
        decode = self.box_coder.decode
        return best_of_levels(
            self, scores, head_outputs["bbox_regression"], decode, anchors, image_shapes
        )


class FCOS_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = published("fcos_resnet50_fpn_coco-99b0c9b7.pth")
    DEFAULT = COCO_V1


@dense_builder(FCOS_ResNet50_FPN_Weights, ResNet50_Weights, num_classes=91, layers=(5, 3))
def fcos_resnet50_fpn(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> FCOS:
    """FCOS with a ResNet-50 and a pyramid; kwargs are FCOS's."""
    backbone = small_maps_pyramid(weights_backbone, progress, is_trained, trainable_backbone_layers)
    return FCOS(backbone, num_classes, **kwargs)
