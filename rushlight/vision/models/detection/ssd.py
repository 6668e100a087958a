"""SSD: Liu et al. 2016, SSD: Single Shot MultiBox Detector."""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision import ops
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder
from rushlight.vision.models.detection._detector import SingleStageDetector, Sizes, Target
from rushlight.vision.models.detection._utils import (
    BoxCoder,
    SSDMatcher,
    _topk_min,
    retrieve_out_channels,
)
from rushlight.vision.models.detection.anchor_utils import DefaultBoxGenerator
from rushlight.vision.models.detection.backbone_utils import freeze_stages
from rushlight.vision.models.detection.retinanet import match_anchors
from rushlight.vision.models.detection.rpn import by_anchors
from rushlight.vision.models.detection.transform import GeneralizedRCNNTransform
from rushlight.vision.models.vgg import VGG, VGG16_Weights, vgg16

__all__ = ["SSD", "SSD300_VGG16_Weights", "ssd300_vgg16"]


def _xavier_init(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class SSDHead(nn.Module):
    """Says of each default box what is there, and how it must move.

    Args:
        in_channels: channels of each map.
        num_anchors: boxes of a place of each map.
        num_classes: classes with that of the background.
    """

    def __init__(self, in_channels: list[int], num_anchors: list[int], num_classes: int) -> None:
        super().__init__()
        self.classification_head = SSDClassificationHead(in_channels, num_anchors, num_classes)
        self.regression_head = SSDRegressionHead(in_channels, num_anchors)

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        """Returns "bbox_regression" (N, boxes, 4) and "cls_logits" (N, boxes, classes)."""
        return {
            "bbox_regression": self.regression_head(x),
            "cls_logits": self.classification_head(x),
        }


class SSDScoringHead(nn.Module):
    """A module for each map, that gives num_columns numbers for each of its boxes."""

    def __init__(self, module_list: nn.ModuleList, num_columns: int) -> None:
        super().__init__()
        self.module_list = module_list
        self.num_columns = num_columns

    def forward(self, x: list[Tensor]) -> Tensor:
        maps = zip(self.module_list, x, strict=True)
        return rl.cat([by_anchors(head(f), self.num_columns) for head, f in maps], dim=1)


def _convolutions(in_channels: list[int], num_anchors: list[int], columns: int) -> nn.ModuleList:
    convs = nn.ModuleList(
        [
            nn.Conv2d(channels, columns * anchors, 3, padding=1)
            for channels, anchors in zip(in_channels, num_anchors, strict=True)
        ]
    )
    _xavier_init(convs)
    return convs


class SSDClassificationHead(SSDScoringHead):
    """Says of each default box what is there."""

    def __init__(self, in_channels: list[int], num_anchors: list[int], num_classes: int) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, num_classes), num_classes)


class SSDRegressionHead(SSDScoringHead):
    """Says of each default box how it must move."""

    def __init__(self, in_channels: list[int], num_anchors: list[int]) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, 4), 4)


class SSD(SingleStageDetector):
    """A backbone of several maps, and a head that classifies and moves each default box.

    Args:
        backbone: gives a dict of maps.
        anchor_generator: a DefaultBoxGenerator.
        size: (width, height) that all images get.
        num_classes: classes with that of the background, which is 0.
        image_mean, image_std: of GeneralizedRCNNTransform, also **kwargs.
        head: an SSDHead.
        score_thresh: detections must have a higher score.
        nms_thresh: detections of a class may overlap by this.
        detections_per_img: how many there are at most.
        iou_thresh: the overlap from which on a default box is for a target.
        topk_candidates: detections of a class before overlapping ones go.
        positive_fraction: the share of boxes for targets among those that are learned from.

    Raises:
        ValueError: if there are not as many maps as the generator makes boxes for.
    """

    def __init__(
        self,
        backbone: nn.Module,
        anchor_generator: DefaultBoxGenerator,
        size: tuple[int, int],
        num_classes: int,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        head: nn.Module | None = None,
        score_thresh: float = 0.01,
        nms_thresh: float = 0.45,
        detections_per_img: int = 200,
        iou_thresh: float = 0.5,
        topk_candidates: int = 400,
        positive_fraction: float = 0.25,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.anchor_generator = anchor_generator
        self.box_coder = BoxCoder((10.0, 10.0, 5.0, 5.0))
        if head is None:
            channels: Any = getattr(backbone, "out_channels", None)
            channels = channels or retrieve_out_channels(backbone, size)
            check_maps(channels, anchor_generator)
            head = SSDHead(channels, anchor_generator.num_anchors_per_location(), num_classes)
        self.head = head
        self.proposal_matcher = SSDMatcher(iou_thresh)
        mean, std = image_mean or [0.485, 0.456, 0.406], image_std or [0.229, 0.224, 0.225]
        self.transform = GeneralizedRCNNTransform(
            min(size), max(size), mean, std, size_divisible=1, fixed_size=size, **kwargs
        )
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.topk_candidates = topk_candidates
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def compute_loss(
        self,
        targets: list[Target],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        num_anchors_per_level: list[int],
    ) -> dict[str, Tensor]:
        matched = match_anchors(self.proposal_matcher, anchors, targets)
        logits = head_outputs["cls_logits"]
        box_losses, labels, positives = [], [], 0
        for i, (target, at) in enumerate(zip(targets, matched, strict=True)):
            positive = rl.where(at >= 0)[0]
            positives += len(positive)
            chosen = at[positive]
            codes = self.box_coder.encode_single(target["boxes"][chosen], anchors[i][positive])
            found = head_outputs["bbox_regression"][i][positive]
            box_losses.append(F.smooth_l1_loss(found, codes, reduction="sum"))
            label = rl.zeros(len(at), dtype=target["labels"].dtype, device=at.device)
            label[positive] = target["labels"][chosen]
            labels.append(label)
        label = rl.stack(labels)  # (N, anchors)
        losses = F.cross_entropy(logits.flatten(0, 1), label.flatten(), reduction="none")
        losses = losses.view(label.shape)
        count = max(1, positives)
        return {
            "bbox_regression": rl.stack(box_losses).sum() / count,
            "classification": self._balanced(losses, label > 0) / count,
        }

    def _balanced(self, losses: Tensor, is_positive: Tensor) -> Tensor:
        """The losses of positive boxes and of the worst negative ones, some for each positive."""
        most = self.neg_to_pos_ratio * is_positive.sum(1, keepdim=True)
        hardness = losses.detach().masked_fill(is_positive, -math.inf)
        rank = hardness.argsort(dim=1, descending=True).argsort(dim=1)
        return losses[is_positive].sum() + losses[rank < most].sum()

    def postprocess_detections(
        self,
        head_outputs: dict[str, list[Tensor]],
        anchors: list[list[Tensor]],
        image_shapes: Sizes,
    ) -> list[Target]:
        codes = rl.cat(head_outputs["bbox_regression"], 1)
        scores = rl.cat(head_outputs["cls_logits"], 1).softmax(-1)
        detections = []
        for code, score, levels, shape in zip(codes, scores, anchors, image_shapes, strict=True):
            boxes = self.box_coder.decode_single(code, rl.cat(levels))
            boxes = ops.clip_boxes_to_image(boxes, shape)
            found = [self._best_of_class(score[:, k], k) for k in range(1, score.shape[1])]
            place, value, label = (rl.cat(parts) for parts in zip(*found, strict=True))
            chosen = boxes[place]
            keep = ops.batched_nms(chosen, value, label, self.nms_thresh)
            keep = keep[: self.detections_per_img]
            detections.append({"boxes": chosen[keep], "scores": value[keep], "labels": label[keep]})
        return detections

    def _best_of_class(self, scores: Tensor, label: int) -> tuple[Tensor, Tensor, Tensor]:
        """Where the best scores are, the scores, and the class of each."""
        chosen = rl.where(scores > self.score_thresh)[0]
        count = _topk_min(chosen, self.topk_candidates, 0)
        best, rank = scores[chosen].topk(count)
        return chosen[rank], best, rl.full_like(rank, label)


def check_maps(channels: list[int], anchor_generator: DefaultBoxGenerator) -> None:
    """Refuses maps for which a generator has no boxes."""
    ratios = anchor_generator.aspect_ratios
    if len(channels) != len(ratios):
        raise ValueError(
            f"The length of the output channels from the backbone ({len(channels)}) do not match "
            f"the length of the anchor generator aspect ratios ({len(ratios)})."
        )


class SSDFeatureExtractorVGG(nn.Module):
    """A VGG's maps of 1 / 8 of the image and less, with more convolutions behind it.

    Args:
        backbone: the features of a VGG.
        highres: whether there is one map more, for images of 512 pixels.
    """

    def __init__(self, backbone: nn.Sequential, highres: bool) -> None:
        super().__init__()
        pools = [i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d)]
        third, fourth = pools[2], pools[3]
        backbone[third].ceil_mode = True  # so that 75 pixels become 38
        self.scale_weight = nn.Parameter(rl.ones(512) * 20)
        self.features = nn.Sequential(*backbone[:fourth])

        def convs(*layers: tuple[int, int, int, dict[str, Any]]) -> nn.Sequential:
            made: list[nn.Module] = []
            for in_channels, out_channels, size, options in layers:
                made += [nn.Conv2d(in_channels, out_channels, size, **options), nn.ReLU(True)]
            return nn.Sequential(*made)

        halving = {"padding": 1, "stride": 2}
        extra = [
            convs((1024, 256, 1, {}), (256, 512, 3, halving)),
            convs((512, 128, 1, {}), (128, 256, 3, halving)),
            convs((256, 128, 1, {}), (128, 256, 3, {})),
            convs((256, 128, 1, {}), (128, 256, 3, {})),
        ]
        if highres:
            extra.append(convs((256, 128, 1, {}), (128, 256, 4, {})))
        # The linear layers of the VGG, as convolutions.
        dense = nn.Sequential(
            nn.MaxPool2d(3, stride=1, padding=1),
            *convs((512, 1024, 3, {"padding": 6, "dilation": 6}), (1024, 1024, 1, {})),
        )
        for module in (*extra, dense):
            _xavier_init(module)
        first = nn.Sequential(*backbone[fourth:-1], dense)
        self.extra = nn.ModuleList([first, *extra])

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.features(x)
        maps = [self.scale_weight.view(1, -1, 1, 1) * F.normalize(x)]
        for block in self.extra:
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), features) for i, features in enumerate(maps))


def _vgg_extractor(backbone: VGG, highres: bool, trainable_layers: int) -> SSDFeatureExtractorVGG:
    features: Any = backbone.features
    pools = [i for i, layer in enumerate(features) if isinstance(layer, nn.MaxPool2d)]
    freeze_stages(features, [0, *pools[:-1]], trainable_layers)
    return SSDFeatureExtractorVGG(features, highres)


class SSD300_VGG16_Weights(WeightsEnum):
    COCO_V1 = published("ssd300_vgg16_coco-b556d3b4.pth")
    DEFAULT = COCO_V1


@dense_builder(
    SSD300_VGG16_Weights,
    VGG16_Weights,
    num_classes=91,
    layers=(5, 4),
    legacy_backbone="IMAGENET1K_FEATURES",
)
def ssd300_vgg16(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: VGG16_Weights | None = VGG16_Weights.IMAGENET1K_FEATURES,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> SSD:
    """SSD with a VGG-16 for images of 300 pixels; kwargs are SSD's."""
    refuse_size(kwargs)
    vgg = vgg16(weights=weights_backbone, progress=progress)
    layers = 5 if trainable_backbone_layers is None else trainable_backbone_layers
    boxes = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2, 3], [2], [2]],
        scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
        steps=[8, 16, 32, 64, 100, 300],
    )
    # The weights of the VGG are for means of its own, and for numbers from 0 to 255.
    usual: dict[str, Any] = {
        "image_mean": [0.48235, 0.45882, 0.40784],
        "image_std": [1.0 / 255.0] * 3,
    }
    backbone = _vgg_extractor(vgg, False, layers)
    return SSD(backbone, boxes, (300, 300), num_classes, **(usual | kwargs))


def refuse_size(kwargs: dict[str, Any]) -> None:
    """Takes away a size that a builder does not let be chosen, with a warning."""
    if "size" in kwargs:
        warnings.warn(
            "The size of the model is already fixed; ignoring the parameter.", stacklevel=4
        )
        del kwargs["size"]
