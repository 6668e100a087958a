"""FCN: Long et al. 2015, Fully Convolutional Networks for Semantic Segmentation.

A convolution and a 1x1 convolution on the map of a ResNet that dilates instead of shrinking.
"""

from __future__ import annotations

from typing import Any

from rushlight import nn
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder
from rushlight.vision.models.resnet import (
    ResNet,
    ResNet50_Weights,
    ResNet101_Weights,
    resnet50,
    resnet101,
)
from rushlight.vision.models.segmentation._utils import _SimpleSegmentationModel, resnet_body

__all__ = ["FCN", "FCN_ResNet50_Weights", "FCN_ResNet101_Weights", "fcn_resnet50", "fcn_resnet101"]


class FCN(_SimpleSegmentationModel):
    """A backbone with FCNHead as its classifier.

    Example:
        >>> model = torch.vision.models.segmentation.fcn_resnet50(weights_backbone=None)
        >>> model.eval()(torch.zeros(1, 3, 32, 32))["out"].shape
        torch.Size([1, 21, 32, 32])
    """


class FCNHead(nn.Sequential):
    """Scores (N, channels, H, W) from a map (N, in_channels, H, W)."""

    def __init__(self, in_channels: int, channels: int) -> None:
        middle = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, middle, 3, padding=1, bias=False),
            nn.BatchNorm2d(middle),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(middle, channels, 1),
        )


class FCN_ResNet50_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = published("fcn_resnet50_coco-1167a1af.pth")
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class FCN_ResNet101_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = published("fcn_resnet101_coco-7ecb50ca.pth")
    DEFAULT = COCO_WITH_VOC_LABELS_V1


def _fcn_resnet(backbone: ResNet, num_classes: int, aux: bool | None) -> FCN:
    aux_classifier = FCNHead(1024, num_classes) if aux else None
    return FCN(resnet_body(backbone, aux), FCNHead(2048, num_classes), aux_classifier)


@dense_builder(FCN_ResNet50_Weights, ResNet50_Weights, num_classes=21)
def fcn_resnet50(
    *,
    progress: bool = True,
    num_classes: int = 21,
    aux_loss: bool | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    is_trained: bool = False,
    **kwargs: Any,
) -> FCN:
    """FCN with a ResNet-50; aux_loss adds the classifier "aux"."""
    dilated = [False, True, True]
    backbone = resnet50(
        weights=weights_backbone, progress=progress, replace_stride_with_dilation=dilated
    )
    return _fcn_resnet(backbone, num_classes, aux_loss)


@dense_builder(FCN_ResNet101_Weights, ResNet101_Weights, num_classes=21)
def fcn_resnet101(
    *,
    progress: bool = True,
    num_classes: int = 21,
    aux_loss: bool | None = None,
    weights_backbone: ResNet101_Weights | None = ResNet101_Weights.IMAGENET1K_V1,
    is_trained: bool = False,
    **kwargs: Any,
) -> FCN:
    """FCN with a ResNet-101; aux_loss adds the classifier "aux"."""
    dilated = [False, True, True]
    backbone = resnet101(
        weights=weights_backbone, progress=progress, replace_stride_with_dilation=dilated
    )
    return _fcn_resnet(backbone, num_classes, aux_loss)
