"""DeepLab v3: Chen et al. 2017, Rethinking Atrous Convolution for Semantic Image Segmentation.

The map of a dilating backbone is seen at several distances at once, see ASPP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder, stages
from rushlight.vision.models._utils import IntermediateLayerGetter
from rushlight.vision.models.mobilenetv3 import MobileNet_V3_Large_Weights, mobilenet_v3_large
from rushlight.vision.models.resnet import (
    ResNet,
    ResNet50_Weights,
    ResNet101_Weights,
    resnet50,
    resnet101,
)
from rushlight.vision.models.segmentation._utils import (
    _SimpleSegmentationModel,
    enlarged,
    resnet_body,
)
from rushlight.vision.models.segmentation.fcn import FCNHead

__all__ = [
    "DeepLabV3",
    "DeepLabV3_MobileNet_V3_Large_Weights",
    "DeepLabV3_ResNet50_Weights",
    "DeepLabV3_ResNet101_Weights",
    "deeplabv3_mobilenet_v3_large",
    "deeplabv3_resnet50",
    "deeplabv3_resnet101",
]


class DeepLabV3(_SimpleSegmentationModel):
    """A backbone with DeepLabHead as its classifier."""


class DeepLabHead(nn.Sequential):
    """Scores (N, num_classes, H, W) from a map (N, in_channels, H, W)."""

    def __init__(
        self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)
    ) -> None:
        super().__init__(
            ASPP(in_channels, atrous_rates), *_conv(256, 256, 3), nn.Conv2d(256, num_classes, 1)
        )


def _conv(in_channels: int, out_channels: int, size: int, dilation: int = 1) -> list[nn.Module]:
    padding = dilation * (size // 2)
    return [
        nn.Conv2d(in_channels, out_channels, size, padding=padding, dilation=dilation, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    ]


class ASPPConv(nn.Sequential):
    """A dilated convolution of ASPP."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(*_conv(in_channels, out_channels, 3, dilation))


class ASPPPooling(nn.Sequential):
    """The part of ASPP that sees the whole image."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_conv(in_channels, out_channels, 1))

    def forward(self, input: Tensor) -> Tensor:
        return enlarged(super().forward(input), input)


class ASPP(nn.Module):
    """Atrous spatial pyramid pooling: convolutions of several dilations, side by side.

    Args:
        in_channels: channels of the map.
        atrous_rates: the dilations, besides a 1x1 convolution and a mean of the whole.
        out_channels: channels of each, and of the result.
    """

    def __init__(
        self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256
    ) -> None:
        super().__init__()
        parts = [nn.Sequential(*_conv(in_channels, out_channels, 1))]
        parts += [ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates]
        parts.append(ASPPPooling(in_channels, out_channels))
        self.convs = nn.ModuleList(parts)
        self.project = nn.Sequential(
            *_conv(len(parts) * out_channels, out_channels, 1), nn.Dropout(0.5)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.project(rl.cat([conv(x) for conv in self.convs], dim=1))


class DeepLabV3_ResNet50_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = published("deeplabv3_resnet50_coco-cd0a2569.pth")
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class DeepLabV3_ResNet101_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = published("deeplabv3_resnet101_coco-586e9e4e.pth")
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class DeepLabV3_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = published("deeplabv3_mobilenet_v3_large-fc3c493d.pth")
    DEFAULT = COCO_WITH_VOC_LABELS_V1


def _deeplabv3_resnet(backbone: ResNet, num_classes: int, aux: bool | None) -> DeepLabV3:
    aux_classifier = FCNHead(1024, num_classes) if aux else None
    return DeepLabV3(resnet_body(backbone, aux), DeepLabHead(2048, num_classes), aux_classifier)


@dense_builder(DeepLabV3_ResNet50_Weights, ResNet50_Weights, num_classes=21)
def deeplabv3_resnet50(
    *,
    progress: bool = True,
    num_classes: int = 21,
    aux_loss: bool | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    is_trained: bool = False,
    **kwargs: Any,
) -> DeepLabV3:
    """DeepLab v3 with a ResNet-50; aux_loss adds the classifier "aux"."""
    dilated = [False, True, True]
    backbone = resnet50(
        weights=weights_backbone, progress=progress, replace_stride_with_dilation=dilated
    )
    return _deeplabv3_resnet(backbone, num_classes, aux_loss)


@dense_builder(DeepLabV3_ResNet101_Weights, ResNet101_Weights, num_classes=21)
def deeplabv3_resnet101(
    *,
    progress: bool = True,
    num_classes: int = 21,
    aux_loss: bool | None = None,
    weights_backbone: ResNet101_Weights | None = ResNet101_Weights.IMAGENET1K_V1,
    is_trained: bool = False,
    **kwargs: Any,
) -> DeepLabV3:
    """DeepLab v3 with a ResNet-101; aux_loss adds the classifier "aux"."""
    dilated = [False, True, True]
    backbone = resnet101(
        weights=weights_backbone, progress=progress, replace_stride_with_dilation=dilated
    )
    return _deeplabv3_resnet(backbone, num_classes, aux_loss)


@dense_builder(DeepLabV3_MobileNet_V3_Large_Weights, MobileNet_V3_Large_Weights, num_classes=21)
def deeplabv3_mobilenet_v3_large(
    *,
    progress: bool = True,
    num_classes: int = 21,
    aux_loss: bool | None = None,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    is_trained: bool = False,
    **kwargs: Any,
) -> DeepLabV3:
    """DeepLab v3 with a MobileNet v3; aux_loss adds the classifier "aux"."""
    backbone = mobilenet_v3_large(weights=weights_backbone, progress=progress, dilated=True)
    features = backbone.features
    starts = stages(features)
    out, aux = starts[-1], starts[-4]
    layers = {str(out): "out"} | ({str(aux): "aux"} if aux_loss else {})
    return DeepLabV3(
        IntermediateLayerGetter(features, layers),
        DeepLabHead(features[out].out_channels, num_classes),
        FCNHead(features[aux].out_channels, num_classes) if aux_loss else None,
    )
