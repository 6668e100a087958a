"""Mask R-CNN: He et al. 2017. Faster R-CNN, and a mask of each thing that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight import nn
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder
from rushlight.vision.models.detection.faster_rcnn import (
    FasterRCNN,
    heads_v2,
    resnet50_pyramid,
    resnet50_pyramid_v2,
)
from rushlight.vision.models.resnet import ResNet50_Weights
from rushlight.vision.ops import Conv2dNormActivation, MultiScaleRoIAlign
from rushlight.vision.ops._older_names import OlderNames

__all__ = [
    "MaskRCNN",
    "MaskRCNN_ResNet50_FPN_V2_Weights",
    "MaskRCNN_ResNet50_FPN_Weights",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
]


class MaskRCNN(FasterRCNN):
    """Faster R-CNN with masks: targets have "masks" (L, H, W) of 0 and 1 besides.

    Args:
        backbone: gives a map or a dict of maps, and has the attribute out_channels.
        num_classes: classes with that of the background; None with the predictors.
        *args, **kwargs: FasterRCNN's, in its order.
        mask_roi_pool: a MultiScaleRoIAlign.
        mask_head: makes features (L, 256, H, W) of what it gives.
        mask_predictor: makes scores (L, num_classes, M, M) of these.

    Raises:
        ValueError, TypeError: as FasterRCNN.
    """

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int | None = None,
        *args: Any,
        mask_roi_pool: MultiScaleRoIAlign | None = None,
        mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(mask_roi_pool, (MultiScaleRoIAlign, type(None))):
            raise TypeError(
                "MaskRCNN: mask_roi_pool should be of type MultiScaleRoIAlign or None instead of "
                f"{type(mask_roi_pool)}."
            )
        if num_classes is not None and mask_predictor is not None:
            raise ValueError(
                "MaskRCNN: num_classes should be None when mask_predictor is specified."
            )
        super().__init__(backbone, num_classes, *args, **kwargs)
        channels: int = backbone.out_channels
        if mask_predictor is None:
            classes = self.roi_heads.box_predictor.cls_score.out_features
            mask_predictor = MaskRCNNPredictor(256, 256, classes)
        self.roi_heads.mask_roi_pool = mask_roi_pool or MultiScaleRoIAlign(
            ["0", "1", "2", "3"], 14, 2
        )
        self.roi_heads.mask_head = mask_head or MaskRCNNHeads(channels, (256,) * 4, 1)
        self.roi_heads.mask_predictor = mask_predictor


class MaskRCNNHeads(OlderNames, nn.Sequential):
    """Convolutions of the features of a box.

    Args:
        in_channels: channels of the features.
        layers: channels of each convolution.
        dilation: of all of them.
        norm_layer: makes their norms.
    """

    def __init__(
        self,
        in_channels: int,
        layers: Sequence[int],
        dilation: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        blocks = []
        for channels in layers:
            blocks.append(
                Conv2dNormActivation(
                    in_channels,
                    channels,
                    padding=dilation,
                    dilation=dilation,
                    norm_layer=norm_layer,
                )
            )
            in_channels = channels
        super().__init__(*blocks)
        _init_convolutions(self)

    def _older_names(self) -> Iterable[tuple[str, str]]:
        return ((f"mask_fcn{i + 1}", f"{i}.0") for i in range(len(self)))


def _init_convolutions(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None and not isinstance(module, MaskRCNNPredictor):
                nn.init.zeros_(layer.bias)


class MaskRCNNPredictor(nn.Sequential):
    """Scores of twice the height and width of the features.

    Example:
        >>> predictor = MaskRCNNPredictor(8, 6, num_classes=3)
        >>> predictor(torch.rand(2, 8, 14, 14)).shape
        torch.Size([2, 3, 28, 28])
    """

    def __init__(self, in_channels: int, dim_reduced: int, num_classes: int) -> None:
        super().__init__()
        self.conv5_mask = nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2, 0)
        self.relu = nn.ReLU(inplace=True)
        self.mask_fcn_logits = nn.Conv2d(dim_reduced, num_classes, 1, 1, 0)
        _init_convolutions(self)


class MaskRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = published("maskrcnn_resnet50_fpn_coco-bf2d0c1e.pth")
    DEFAULT = COCO_V1


class MaskRCNN_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = published("maskrcnn_resnet50_fpn_v2_coco-73cbd019.pth")
    DEFAULT = COCO_V1


@dense_builder(
    MaskRCNN_ResNet50_FPN_Weights,
    ResNet50_Weights,
    num_classes=91,
    layers=(5, 3),
    exact_norm=True,
)
def maskrcnn_resnet50_fpn(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> MaskRCNN:
    """Mask R-CNN with a ResNet-50 and a pyramid; kwargs are MaskRCNN's."""
    backbone = resnet50_pyramid(weights_backbone, progress, is_trained, trainable_backbone_layers)
    return MaskRCNN(backbone, num_classes=num_classes, **kwargs)


@dense_builder(MaskRCNN_ResNet50_FPN_V2_Weights, ResNet50_Weights, num_classes=91, layers=(5, 3))
def maskrcnn_resnet50_fpn_v2(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: ResNet50_Weights | None = None,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> MaskRCNN:
    """Mask R-CNN with a ResNet-50, a pyramid and larger heads; kwargs are MaskRCNN's."""
    backbone = resnet50_pyramid_v2(weights_backbone, progress, trainable_backbone_layers)
    channels: int = backbone.out_channels
    mask_head = MaskRCNNHeads(channels, (256,) * 4, 1, norm_layer=nn.BatchNorm2d)
    heads: dict[str, Any] = heads_v2(backbone) | {"mask_head": mask_head}
    return MaskRCNN(backbone, num_classes=num_classes, **(heads | kwargs))
