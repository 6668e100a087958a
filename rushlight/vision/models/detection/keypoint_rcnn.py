"""Keypoint R-CNN: He et al. 2017, Mask R-CNN, section 5. The keypoints of each thing found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder
from rushlight.vision.models.detection.faster_rcnn import FasterRCNN, resnet50_pyramid
from rushlight.vision.models.resnet import ResNet50_Weights
from rushlight.vision.ops import MultiScaleRoIAlign

__all__ = ["KeypointRCNN", "KeypointRCNN_ResNet50_FPN_Weights", "keypointrcnn_resnet50_fpn"]


class KeypointRCNN(FasterRCNN):
    """Faster R-CNN with keypoints: targets have "keypoints" (L, K, 3) of x, y, visibility besides.

    Args:
        backbone: gives a map or a dict of maps, and has the attribute out_channels.
        num_classes: classes with that of the background; None with a box_predictor.
        min_size: of GeneralizedRCNNTransform, 640, 672, ... 800 if None.
        *args, **kwargs: FasterRCNN's, in its order.
        keypoint_roi_pool: a MultiScaleRoIAlign.
        keypoint_head: makes features (L, 512, H, W) of what it gives.
        keypoint_predictor: makes heatmaps (L, K, M, M) of these.
        num_keypoints: K, 17 if None; None with a keypoint_predictor.

    Raises:
        ValueError, TypeError: as FasterRCNN.
    """

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int | None = None,
        min_size: int | tuple[int, ...] | None = None,
        *args: Any,
        keypoint_roi_pool: MultiScaleRoIAlign | None = None,
        keypoint_head: nn.Module | None = None,
        keypoint_predictor: nn.Module | None = None,
        num_keypoints: int | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(keypoint_roi_pool, (MultiScaleRoIAlign, type(None))):
            raise TypeError(
                "KeypointRCNN: keypoint_roi_pool should be of type MultiScaleRoIAlign or None "
                f"instead of {type(keypoint_roi_pool)}."
            )
        if num_keypoints is not None and keypoint_predictor is not None:
            raise ValueError(
                "KeypointRCNN: num_keypoints should be None when keypoint_predictor is specified."
            )
        sizes = min_size or (640, 672, 704, 736, 768, 800)
        super().__init__(backbone, num_classes, sizes, *args, **kwargs)
        channels: int = backbone.out_channels
        heads = self.roi_heads
        heads.keypoint_roi_pool = keypoint_roi_pool or MultiScaleRoIAlign(
            ["0", "1", "2", "3"], 14, 2
        )
        heads.keypoint_head = keypoint_head or KeypointRCNNHeads(channels, (512,) * 8)
        heads.keypoint_predictor = keypoint_predictor or KeypointRCNNPredictor(
            512, num_keypoints or 17
        )


class KeypointRCNNHeads(nn.Sequential):
    """Convolutions of the features of a box, with these channels."""

    def __init__(self, in_channels: int, layers: Sequence[int]) -> None:
        blocks: list[nn.Module] = []
        for channels in layers:
            conv = nn.Conv2d(in_channels, channels, 3, stride=1, padding=1)
            _init_convolution(conv)
            blocks += [conv, nn.ReLU(inplace=True)]
            in_channels = channels
        super().__init__(*blocks)


def _init_convolution(conv: nn.Conv2d | nn.ConvTranspose2d) -> None:
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    nn.init.zeros_(conv.bias)  # pyright: ignore[reportArgumentType]


class KeypointRCNNPredictor(nn.Module):
    """Heatmaps of four times the height and width of the features."""

    def __init__(self, in_channels: int, num_keypoints: int) -> None:
        super().__init__()
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, 2, padding=1)
        _init_convolution(self.kps_score_lowres)
        self.up_scale = 2
        self.out_channels = num_keypoints

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(
            self.kps_score_lowres(x),
            scale_factor=float(self.up_scale),
            mode="bilinear",
            align_corners=False,
            recompute_scale_factor=False,
        )


class KeypointRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_LEGACY = published("keypointrcnn_resnet50_fpn_coco-9f466800.pth")
    COCO_V1 = published("keypointrcnn_resnet50_fpn_coco-fc266e95.pth")
    DEFAULT = COCO_V1


@dense_builder(
    KeypointRCNN_ResNet50_FPN_Weights,
    ResNet50_Weights,
    num_classes=2,
    layers=(5, 3),
    exact_norm=True,
)
def keypointrcnn_resnet50_fpn(
    *,
    progress: bool = True,
    num_classes: int = 2,
    num_keypoints: int | None = None,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> KeypointRCNN:
    """Keypoint R-CNN with a ResNet-50 and a pyramid; kwargs are KeypointRCNN's."""
    backbone = resnet50_pyramid(weights_backbone, progress, is_trained, trainable_backbone_layers)
    return KeypointRCNN(backbone, num_classes, num_keypoints=num_keypoints, **kwargs)
