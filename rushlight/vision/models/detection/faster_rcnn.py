"""Faster R-CNN: Ren et al. 2015, Faster R-CNN: Towards Real-Time Object Detection.

Version 2 is after Li et al. 2021, Benchmarking Detection Transfer Learning with Vision
Transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, published
from rushlight.vision.models._dense import dense_builder
from rushlight.vision.models.detection._detector import check_backbone
from rushlight.vision.models.detection.anchor_utils import AnchorGenerator
from rushlight.vision.models.detection.backbone_utils import (
    _mobilenet_extractor,
    _resnet_fpn_extractor,
)
from rushlight.vision.models.detection.generalized_rcnn import GeneralizedRCNN
from rushlight.vision.models.detection.roi_heads import RoIHeads
from rushlight.vision.models.detection.rpn import RegionProposalNetwork, RPNHead
from rushlight.vision.models.detection.transform import GeneralizedRCNNTransform
from rushlight.vision.models.mobilenetv3 import MobileNet_V3_Large_Weights, mobilenet_v3_large
from rushlight.vision.models.resnet import ResNet50_Weights, resnet50
from rushlight.vision.ops import Conv2dNormActivation, FrozenBatchNorm2d, MultiScaleRoIAlign

__all__ = [
    "FasterRCNN",
    "FasterRCNN_MobileNet_V3_Large_320_FPN_Weights",
    "FasterRCNN_MobileNet_V3_Large_FPN_Weights",
    "FasterRCNN_ResNet50_FPN_V2_Weights",
    "FasterRCNN_ResNet50_FPN_Weights",
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
]


def _default_anchorgen() -> AnchorGenerator:
    """One size for each map of a pyramid of five."""
    return AnchorGenerator(((32,), (64,), (128,), (256,), (512,)), ((0.5, 1.0, 2.0),) * 5)


class FasterRCNN(GeneralizedRCNN):
    """A backbone, proposals, and heads that classify and move their boxes.

    Args:
        backbone: gives a map or a dict of maps, and has the attribute out_channels.
        num_classes: classes with that of the background, which is 0; None with a box_predictor.
        min_size, max_size, image_mean, image_std: of GeneralizedRCNNTransform, also **kwargs.
        rpn_anchor_generator: an AnchorGenerator.
        rpn_head: an RPNHead.
        rpn_pre_nms_top_n_train, rpn_pre_nms_top_n_test: proposals of a map before overlapping go.
        rpn_post_nms_top_n_train, rpn_post_nms_top_n_test: proposals of an image after that.
        rpn_nms_thresh, rpn_fg_iou_thresh, rpn_bg_iou_thresh, rpn_batch_size_per_image,
            rpn_positive_fraction, rpn_score_thresh: of RegionProposalNetwork.
        box_roi_pool, box_head, box_predictor, box_score_thresh, box_nms_thresh,
            box_detections_per_img, box_fg_iou_thresh, box_bg_iou_thresh, box_batch_size_per_image,
            box_positive_fraction, bbox_reg_weights: of RoIHeads.

    Raises:
        ValueError: if the backbone has no out_channels, or classes are given twice or not at all.
        TypeError: if rpn_anchor_generator or box_roi_pool is something else.

    Example:
        >>> from rushlight.vision.models.detection import FasterRCNN
        >>> from rushlight.vision.models.detection.rpn import AnchorGenerator
        >>> backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=8))
        >>> backbone.out_channels = 8
        >>> anchors = AnchorGenerator(((32,),), ((1.0,),))
        >>> model = FasterRCNN(backbone, 2, 64, 64, rpn_anchor_generator=anchors).eval()
        >>> sorted(model([torch.rand(3, 64, 64)])[0])
        ['boxes', 'labels', 'scores']
    """

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int | None = None,
        # transform
        min_size: int | tuple[int, ...] = 800,
        max_size: int = 1333,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        # proposals
        rpn_anchor_generator: AnchorGenerator | None = None,
        rpn_head: nn.Module | None = None,
        rpn_pre_nms_top_n_train: int = 2000,
        rpn_pre_nms_top_n_test: int = 1000,
        rpn_post_nms_top_n_train: int = 2000,
        rpn_post_nms_top_n_test: int = 1000,
        rpn_nms_thresh: float = 0.7,
        rpn_fg_iou_thresh: float = 0.7,
        rpn_bg_iou_thresh: float = 0.3,
        rpn_batch_size_per_image: int = 256,
        rpn_positive_fraction: float = 0.5,
        rpn_score_thresh: float = 0.0,
        # boxes
        box_roi_pool: MultiScaleRoIAlign | None = None,
        box_head: nn.Module | None = None,
        box_predictor: nn.Module | None = None,
        box_score_thresh: float = 0.05,
        box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100,
        box_fg_iou_thresh: float = 0.5,
        box_bg_iou_thresh: float = 0.5,
        box_batch_size_per_image: int = 512,
        box_positive_fraction: float = 0.25,
        bbox_reg_weights: tuple[float, float, float, float] | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        check_backbone(backbone, name)
        if not isinstance(rpn_anchor_generator, (AnchorGenerator, type(None))):
            raise TypeError(
                f"{name}: rpn_anchor_generator should be of type AnchorGenerator or None instead "
                f"of {type(rpn_anchor_generator)}."
            )
        if not isinstance(box_roi_pool, (MultiScaleRoIAlign, type(None))):
            raise TypeError(
                f"{name}: box_roi_pool should be of type MultiScaleRoIAlign or None instead of "
                f"{type(box_roi_pool)}."
            )
        if num_classes is not None and box_predictor is not None:
            raise ValueError(f"{name}: num_classes should be None when box_predictor is specified.")
        if num_classes is None and box_predictor is None:
            raise ValueError(
                f"{name}: num_classes should not be None when box_predictor is not specified."
            )
        channels: int = backbone.out_channels
        anchors = rpn_anchor_generator or _default_anchorgen()
        rpn = RegionProposalNetwork(
            anchors,
            rpn_head or RPNHead(channels, anchors.num_anchors_per_location()[0]),
            rpn_fg_iou_thresh,
            rpn_bg_iou_thresh,
            rpn_batch_size_per_image,
            rpn_positive_fraction,
            {"training": rpn_pre_nms_top_n_train, "testing": rpn_pre_nms_top_n_test},
            {"training": rpn_post_nms_top_n_train, "testing": rpn_post_nms_top_n_test},
            rpn_nms_thresh,
            score_thresh=rpn_score_thresh,
        )
        if box_roi_pool is None:
            box_roi_pool = MultiScaleRoIAlign(["0", "1", "2", "3"], 7, 2)
        if box_head is None:
            box_head = TwoMLPHead(channels * box_roi_pool.output_size[0] ** 2, 1024)
        if box_predictor is None:
            assert num_classes is not None
            box_predictor = FastRCNNPredictor(1024, num_classes)
        roi_heads = RoIHeads(
            box_roi_pool,
            box_head,
            box_predictor,
            box_fg_iou_thresh,
            box_bg_iou_thresh,
            box_batch_size_per_image,
            box_positive_fraction,
            bbox_reg_weights,
            box_score_thresh,
            box_nms_thresh,
            box_detections_per_img,
        )
        mean, std = image_mean or [0.485, 0.456, 0.406], image_std or [0.229, 0.224, 0.225]
        transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        super().__init__(backbone, rpn, roi_heads, transform)


class TwoMLPHead(nn.Module):
    """Two linear layers with relu, of all features of a box."""

    def __init__(self, in_channels: int, representation_size: int) -> None:
        super().__init__()
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.fc7(F.relu(self.fc6(x.flatten(1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions, and then linear layers with relu, of the features of a box.

    Args:
        input_size: (C, H, W) of the features.
        conv_layers: channels of each convolution.
        fc_layers: features of each linear layer.
        norm_layer: makes the norms of the convolutions.
    """

    def __init__(
        self,
        input_size: tuple[int, int, int],
        conv_layers: list[int],
        fc_layers: list[int],
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        channels, height, width = input_size
        blocks: list[nn.Module] = []
        for out_channels in conv_layers:
            blocks.append(Conv2dNormActivation(channels, out_channels, norm_layer=norm_layer))
            channels = out_channels
        blocks.append(nn.Flatten())
        features = channels * height * width
        for out_features in fc_layers:
            blocks += [nn.Linear(features, out_features), nn.ReLU(inplace=True)]
            features = out_features
        super().__init__(*blocks)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)


class FastRCNNPredictor(nn.Module):
    """Scores of classes and codes of boxes.

    Example:
        >>> predictor = FastRCNNPredictor(16, num_classes=3)
        >>> [tuple(x.shape) for x in predictor(torch.rand(5, 16))]
        [(5, 3), (5, 12)]
    """

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.dim() == 4 and x.shape[2:] != (1, 1):
            raise AssertionError(
                "FastRCNNPredictor: x has the wrong shape, expecting the last two dimensions to "
                f"be [1,1] instead of {list(x.shape[2:])}."
            )
        x = x.flatten(1)
        return self.cls_score(x), self.bbox_pred(x)


class FasterRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = published("fasterrcnn_resnet50_fpn_coco-258fb6c6.pth")
    DEFAULT = COCO_V1


class FasterRCNN_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = published("fasterrcnn_resnet50_fpn_v2_coco-dd69338a.pth")
    DEFAULT = COCO_V1


class FasterRCNN_MobileNet_V3_Large_FPN_Weights(WeightsEnum):
    COCO_V1 = published("fasterrcnn_mobilenet_v3_large_fpn-fb6a3cc7.pth")
    DEFAULT = COCO_V1


class FasterRCNN_MobileNet_V3_Large_320_FPN_Weights(WeightsEnum):
    COCO_V1 = published("fasterrcnn_mobilenet_v3_large_320_fpn-907ea3f9.pth")
    DEFAULT = COCO_V1


def resnet50_pyramid(
    weights: ResNet50_Weights | None, progress: bool, is_trained: bool, trainable: int | None
) -> nn.Module:
    """Returns a ResNet-50 with a pyramid, whose statistics stay as they were trained."""
    norm_layer = FrozenBatchNorm2d if is_trained else nn.BatchNorm2d
    backbone = resnet50(weights=weights, progress=progress, norm_layer=norm_layer)
    return _resnet_fpn_extractor(backbone, 5 if trainable is None else trainable)


def resnet50_pyramid_v2(
    weights: ResNet50_Weights | None, progress: bool, trainable: int | None
) -> nn.Module:
    """Returns the backbone of version 2, with norms everywhere that learn."""
    backbone = resnet50(weights=weights, progress=progress)
    layers = 5 if trainable is None else trainable
    return _resnet_fpn_extractor(backbone, layers, norm_layer=nn.BatchNorm2d)


def heads_v2(backbone: nn.Module) -> dict[str, Any]:
    """Returns the heads of version 2, as arguments."""
    channels: int = backbone.out_channels
    anchors = _default_anchorgen()
    rpn_head = RPNHead(channels, anchors.num_anchors_per_location()[0], conv_depth=2)
    box_head = FastRCNNConvFCHead((channels, 7, 7), [256] * 4, [1024], nn.BatchNorm2d)
    return {"rpn_anchor_generator": anchors, "rpn_head": rpn_head, "box_head": box_head}


@dense_builder(
    FasterRCNN_ResNet50_FPN_Weights,
    ResNet50_Weights,
    num_classes=91,
    layers=(5, 3),
    exact_norm=True,
)
def fasterrcnn_resnet50_fpn(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: ResNet50_Weights | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN with a ResNet-50 and a pyramid; kwargs are FasterRCNN's."""
    backbone = resnet50_pyramid(weights_backbone, progress, is_trained, trainable_backbone_layers)
    return FasterRCNN(backbone, num_classes=num_classes, **kwargs)


@dense_builder(FasterRCNN_ResNet50_FPN_V2_Weights, ResNet50_Weights, num_classes=91, layers=(5, 3))
def fasterrcnn_resnet50_fpn_v2(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: ResNet50_Weights | None = None,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN with a ResNet-50, a pyramid and larger heads; kwargs are FasterRCNN's."""
    backbone = resnet50_pyramid_v2(weights_backbone, progress, trainable_backbone_layers)
    return FasterRCNN(backbone, num_classes=num_classes, **(heads_v2(backbone) | kwargs))


def _fasterrcnn_mobilenet(
    weights: MobileNet_V3_Large_Weights | None,
    progress: bool,
    is_trained: bool,
    trainable: int | None,
    num_classes: int,
    **kwargs: Any,
) -> FasterRCNN:
    norm_layer = FrozenBatchNorm2d if is_trained else nn.BatchNorm2d
    backbone = mobilenet_v3_large(weights=weights, progress=progress, norm_layer=norm_layer)
    body = _mobilenet_extractor(backbone, True, 6 if trainable is None else trainable)
    anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * 3, ((0.5, 1.0, 2.0),) * 3)
    kwargs.setdefault("rpn_score_thresh", 0.05)
    return FasterRCNN(body, num_classes, rpn_anchor_generator=anchors, **kwargs)


@dense_builder(
    FasterRCNN_MobileNet_V3_Large_320_FPN_Weights,
    MobileNet_V3_Large_Weights,
    num_classes=91,
    layers=(6, 3),
)
def fasterrcnn_mobilenet_v3_large_320_fpn(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN with a MobileNet v3, for images of 320 pixels; kwargs are FasterRCNN's."""
    usual = {
        "min_size": 320,
        "max_size": 640,
        "rpn_pre_nms_top_n_test": 150,
        "rpn_post_nms_top_n_test": 150,
    }
    trainable = trainable_backbone_layers
    return _fasterrcnn_mobilenet(
        weights_backbone, progress, is_trained, trainable, num_classes, **(usual | kwargs)
    )


@dense_builder(
    FasterRCNN_MobileNet_V3_Large_FPN_Weights,
    MobileNet_V3_Large_Weights,
    num_classes=91,
    layers=(6, 3),
)
def fasterrcnn_mobilenet_v3_large_fpn(
    *,
    progress: bool = True,
    num_classes: int = 91,
    weights_backbone: MobileNet_V3_Large_Weights | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    is_trained: bool = False,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN with a MobileNet v3; kwargs are FasterRCNN's."""
    trainable = trainable_backbone_layers
    return _fasterrcnn_mobilenet(
        weights_backbone, progress, is_trained, trainable, num_classes, **kwargs
    )
