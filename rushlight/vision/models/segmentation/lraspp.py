"""Lite R-ASPP: Howard et al. 2019, Searching for MobileNetV3, section 6.4."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder, stages
from rushlight.vision.models._utils import IntermediateLayerGetter
from rushlight.vision.models.mobilenetv3 import MobileNet_V3_Large_Weights, mobilenet_v3_large
from rushlight.vision.models.segmentation._utils import enlarged

__all__ = ["LRASPP", "LRASPP_MobileNet_V3_Large_Weights", "lraspp_mobilenet_v3_large"]


class LRASPP(nn.Module):
    """A backbone with LRASPPHead on two of its maps.

    Args:
        backbone: gives a dict with the maps "low" and "high".
        low_channels: channels of "low", the larger map.
        high_channels: channels of "high".
        num_classes: classes of a pixel.
        inter_channels: channels inside of the head.

    Returns:
        From forward, a dict of "out", scores (N, num_classes, H, W).
    """

    def __init__(
        self,
        backbone: nn.Module,
        low_channels: int,
        high_channels: int,
        num_classes: int,
        inter_channels: int = 128,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Tensor) -> dict[str, Tensor]:
        scores = self.classifier(self.backbone(input))
        return OrderedDict(out=enlarged(scores, input))


class LRASPPHead(nn.Module):
    """Scores of the small map, weighted by its mean, enlarged, and added to those of the large."""

    def __init__(
        self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int
    ) -> None:
        super().__init__()
        self.cbr = nn.Sequential(
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.BatchNorm2d(inter_channels),
            nn.ReLU(inplace=True),
        )
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.Sigmoid(),
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: dict[str, Tensor]) -> Tensor:
        low, high = input["low"], input["high"]
        high = enlarged(self.cbr(high) * self.scale(high), low)
        return self.low_classifier(low) + self.high_classifier(high)


class LRASPP_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = published("lraspp_mobilenet_v3_large-d234d4ea.pth")
    DEFAULT = COCO_WITH_VOC_LABELS_V1


@dense_builder(LRASPP_MobileNet_V3_Large_Weights, MobileNet_V3_Large_Weights, num_classes=21)
def lraspp_mobilenet_v3_large(
    *,
    progress: bool = True,
    num_classes: int = 21,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    is_trained: bool = False,
    **kwargs: Any,
) -> LRASPP:
    """Lite R-ASPP with a MobileNet v3."""
    if kwargs.pop("aux_loss", False):
        raise NotImplementedError(
            "lraspp_mobilenet_v3_large: This model does not use auxiliary loss."
        )
    backbone = mobilenet_v3_large(weights=weights_backbone, progress=progress, dilated=True)
    features = backbone.features
    starts = stages(features)
    low, high = starts[-4], starts[-1]
    return LRASPP(
        IntermediateLayerGetter(features, {str(low): "low", str(high): "high"}),
        features[low].out_channels,
        features[high].out_channels,
        num_classes,
    )
