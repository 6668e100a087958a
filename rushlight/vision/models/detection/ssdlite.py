"""SSDLite: Sandler et al. 2018, MobileNetV2, section 6.2, with the MobileNet of Howard et al. 2019.

SSD whose convolutions are depthwise and then 1x1.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder, stages
from rushlight.vision.models.detection._utils import retrieve_out_channels
from rushlight.vision.models.detection.anchor_utils import DefaultBoxGenerator
from rushlight.vision.models.detection.backbone_utils import freeze_stages
from rushlight.vision.models.detection.ssd import SSD, SSDScoringHead, check_maps, refuse_size
from rushlight.vision.models.mobilenetv3 import MobileNet_V3_Large_Weights, mobilenet_v3_large
from rushlight.vision.ops import Conv2dNormActivation

__all__ = ["SSDLite320_MobileNet_V3_Large_Weights", "ssdlite320_mobilenet_v3_large"]

MakeLayer = Callable[..., nn.Module]


def _prediction_block(
    in_channels: int, out_channels: int, kernel_size: int, norm_layer: MakeLayer
) -> nn.Sequential:
    """A depthwise convolution and a 1x1 one."""
    return nn.Sequential(
        Conv2dNormActivation(
            in_channels,
            in_channels,
            kernel_size,
            groups=in_channels,
            norm_layer=norm_layer,
            activation_layer=nn.ReLU6,
        ),
        nn.Conv2d(in_channels, out_channels, 1),
    )


def _extra_block(in_channels: int, out_channels: int, norm_layer: MakeLayer) -> nn.Sequential:
    """Half the height and width: a 1x1 convolution, a depthwise one and a 1x1 one."""
    conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.ReLU6)
    middle = out_channels // 2
    return nn.Sequential(
        conv(in_channels, middle, kernel_size=1),
        conv(middle, middle, kernel_size=3, stride=2, groups=middle),
        conv(middle, out_channels, kernel_size=1),
    )


def _normal_init(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, mean=0.0, std=0.03)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class SSDLiteHead(nn.Module):
    """Says of each default box what is there, and how it must move: see SSDHead."""

    def __init__(
        self,
        in_channels: list[int],
        num_anchors: list[int],
        num_classes: int,
        norm_layer: MakeLayer,
    ) -> None:
        super().__init__()
        self.classification_head = SSDLiteClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer
        )
        self.regression_head = SSDLiteRegressionHead(in_channels, num_anchors, norm_layer)

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        return {
            "bbox_regression": self.regression_head(x),
            "cls_logits": self.classification_head(x),
        }


def _blocks(
    in_channels: list[int], num_anchors: list[int], columns: int, norm_layer: MakeLayer
) -> nn.ModuleList:
    blocks = nn.ModuleList(
        [
            _prediction_block(channels, columns * anchors, 3, norm_layer)
            for channels, anchors in zip(in_channels, num_anchors, strict=True)
        ]
    )
    _normal_init(blocks)
    return blocks


class SSDLiteClassificationHead(SSDScoringHead):
    """Says of each default box what is there."""

    def __init__(
        self,
        in_channels: list[int],
        num_anchors: list[int],
        num_classes: int,
        norm_layer: MakeLayer,
    ) -> None:
        super().__init__(_blocks(in_channels, num_anchors, num_classes, norm_layer), num_classes)


class SSDLiteRegressionHead(SSDScoringHead):
    """Says of each default box how it must move."""

    def __init__(
        self, in_channels: list[int], num_anchors: list[int], norm_layer: MakeLayer
    ) -> None:
        super().__init__(_blocks(in_channels, num_anchors, 4, norm_layer), 4)


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """A MobileNet's maps of 1 / 16 and 1 / 32 of the image, with more blocks behind it.

    Args:
        backbone: the features of a MobileNet.
        c4_pos: the block that halves the map of 1 / 16; its first layer still gives that size.
        norm_layer: makes the norms of the blocks.
        width_mult: how many times wider these are.
        min_depth: the fewest channels that they have.

    Raises:
        ValueError: if block c4_pos adds its input, so that it cannot be cut.
    """

    def __init__(
        self,
        backbone: nn.Sequential,
        c4_pos: int,
        norm_layer: MakeLayer,
        width_mult: float = 1.0,
        min_depth: int = 16,
    ) -> None:
        super().__init__()
        cut = backbone[c4_pos]
        if cut.use_res_connect:
            raise ValueError("backbone[c4_pos].use_res_connect should be False.")
        self.features = nn.Sequential(
            nn.Sequential(*backbone[:c4_pos], cut.block[0]),
            nn.Sequential(cut.block[1:], *backbone[c4_pos + 1 :]),
        )
        widths = [max(min_depth, int(width * width_mult)) for width in (512, 256, 256, 128)]
        inputs = [backbone[-1].out_channels, *widths[:-1]]
        extra = [_extra_block(i, o, norm_layer) for i, o in zip(inputs, widths, strict=True)]
        self.extra = nn.ModuleList(extra)
        _normal_init(self.extra)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        maps = []
        for block in (*self.features, *self.extra):
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), features) for i, features in enumerate(maps))


def _mobilenet_extractor(
    features: nn.Sequential, trainable_layers: int, norm_layer: MakeLayer
) -> SSDLiteFeatureExtractorMobileNet:
    starts = stages(features)
    freeze_stages(features, starts, trainable_layers)
    return SSDLiteFeatureExtractorMobileNet(features, starts[-2], norm_layer)


class SSDLite320_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_V1 = published("ssdlite320_mobilenet_v3_large_coco-a79551df.pth")
    DEFAULT = COCO_V1


@dense_builder(
    SSDLite320_MobileNet_V3_Large_Weights,
    MobileNet_V3_Large_Weights,
    num_classes=91,
    layers=(6, 6),
)
def ssdlite320_mobilenet_v3_large(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    norm_layer: MakeLayer | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> SSD:
    """SSDLite with a MobileNet v3 for images of 320 pixels; kwargs are SSD's."""
    refuse_size(kwargs)
    norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.03)
    mobilenet = mobilenet_v3_large(
        weights=weights_backbone,
        progress=progress,
        norm_layer=norm_layer,
        reduced_tail=weights_backbone is None,
    )
    if weights_backbone is None:
        _normal_init(mobilenet)
    layers = 6 if trainable_backbone_layers is None else trainable_backbone_layers
    backbone = _mobilenet_extractor(mobilenet.features, layers, norm_layer)
    size = (320, 320)
    boxes = DefaultBoxGenerator([[2, 3] for _ in range(6)], min_ratio=0.2, max_ratio=0.95)
    channels = retrieve_out_channels(backbone, size)
    check_maps(channels, boxes)
    head = SSDLiteHead(channels, boxes.num_anchors_per_location(), num_classes, norm_layer)
    usual: dict[str, Any] = {
        "score_thresh": 0.001,
        "nms_thresh": 0.55,
        "detections_per_img": 300,
        "topk_candidates": 300,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    return SSD(backbone, boxes, size, num_classes, head=head, **(usual | kwargs))
