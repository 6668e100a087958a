"""Backbones of detectors: the layers of a classifier, and a pyramid of their maps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models import mobilenet, resnet
from rushlight.vision.models._api import get_model_weights
from rushlight.vision.models._dense import stages
from rushlight.vision.models._utils import IntermediateLayerGetter, handle_legacy_interface
from rushlight.vision.ops import FeaturePyramidNetwork, FrozenBatchNorm2d
from rushlight.vision.ops.feature_pyramid_network import ExtraFPNBlock, LastLevelMaxPool

__all__ = ["BackboneWithFPN", "mobilenet_backbone", "resnet_fpn_backbone"]

MakeLayer = Callable[..., nn.Module]


def _pretrained_weights(arguments: dict[str, Any]) -> Any:
    return get_model_weights(arguments["backbone_name"])["IMAGENET1K_V1"]


_take_old_arguments = handle_legacy_interface(weights=("pretrained", _pretrained_weights))


class BackboneWithFPN(nn.Module):
    """The layers of a model and a FeaturePyramidNetwork of their maps.

    Args:
        backbone: the model.
        return_layers: of IntermediateLayerGetter.
        in_channels_list: channels of the maps that these give.
        out_channels: channels of the pyramid.
        extra_blocks: adds maps to the pyramid, LastLevelMaxPool if None.
        norm_layer: makes the norms of the pyramid.
    """

    def __init__(
        self,
        backbone: nn.Module,
        return_layers: dict[str, str],
        in_channels_list: list[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers=return_layers)
        self.fpn = FeaturePyramidNetwork(
            in_channels_list,
            out_channels,
            extra_blocks=extra_blocks or LastLevelMaxPool(),
            norm_layer=norm_layer,
        )
        self.out_channels = out_channels

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return self.fpn(self.body(x))


@_take_old_arguments
def resnet_fpn_backbone(
    *,
    backbone_name: str,
    weights: Any,
    norm_layer: MakeLayer = FrozenBatchNorm2d,
    trainable_layers: int = 3,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
) -> BackboneWithFPN:
    """Returns a ResNet with a pyramid of its maps.

    Args:
        backbone_name: "resnet18" and so on, also ResNeXts and wide ResNets.
        weights: of the ResNet.
        norm_layer: makes its norms.
        trainable_layers: how many of its five layers learn, from the last one on.
        returned_layers: numbers of those whose maps are in the pyramid, 1 to 4; all if None.
        extra_blocks: adds maps, LastLevelMaxPool if None.

    Example:
        >>> from rushlight.vision.models.detection.backbone_utils import resnet_fpn_backbone
        >>> backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None)
        >>> [(name, tuple(x.shape)) for name, x in backbone(torch.rand(1, 3, 64, 64)).items()][:2]
        [('0', (1, 256, 16, 16)), ('1', (1, 256, 8, 8))]
    """
    backbone = getattr(resnet, backbone_name)(weights=weights, norm_layer=norm_layer)
    return _resnet_fpn_extractor(backbone, trainable_layers, returned_layers, extra_blocks)


def _resnet_fpn_extractor(
    backbone: resnet.ResNet,
    trainable_layers: int,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: MakeLayer | None = None,
) -> BackboneWithFPN:
    if not 0 <= trainable_layers <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {trainable_layers}.")
    trained = ("layer4", "layer3", "layer2", "layer1", "conv1")[:trainable_layers]
    if trainable_layers == 5:
        trained += ("bn1",)
    for name, parameter in backbone.named_parameters():
        if not name.startswith(trained) or not trained:
            parameter.requires_grad_(False)
    returned_layers = returned_layers or [1, 2, 3, 4]
    if min(returned_layers) <= 0 or max(returned_layers) >= 5:
        raise ValueError(
            f"Each returned layer should be in the range [1,4]. Got {returned_layers}."
        )
    return_layers = {f"layer{k}": str(i) for i, k in enumerate(returned_layers)}
    first = backbone.inplanes // 8
    channels = [first * 2 ** (k - 1) for k in returned_layers]
    return BackboneWithFPN(backbone, return_layers, channels, 256, extra_blocks, norm_layer)


def _validate_trainable_layers(
    is_trained: bool,
    trainable_backbone_layers: int | None,
    max_value: int,
    default_value: int,
) -> int:
    """Returns how many layers learn: all of them where nothing was trained before."""
    if not is_trained:
        if trainable_backbone_layers is not None:
            warnings.warn(
                "Changing trainable_backbone_layers has no effect if neither pretrained nor "
                "pretrained_backbone have been set to True, falling back to "
                f"trainable_backbone_layers={max_value} so that all layers are trainable",
                stacklevel=2,
            )
        return max_value
    layers = default_value if trainable_backbone_layers is None else trainable_backbone_layers
    if not 0 <= layers <= max_value:
        raise ValueError(
            f"Trainable backbone layers should be in the range [0,{max_value}], got {layers}."
        )
    return layers


@_take_old_arguments
def mobilenet_backbone(
    *,
    backbone_name: str,
    weights: Any,
    fpn: bool,
    norm_layer: MakeLayer = FrozenBatchNorm2d,
    trainable_layers: int = 2,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
) -> nn.Module:
    """Returns a MobileNet, with a pyramid of its maps if fpn.

    Args:
        backbone_name: "mobilenet_v2", "mobilenet_v3_large" or "mobilenet_v3_small".
        weights: of the MobileNet.
        fpn: whether there is a pyramid; else there is one map of as many channels.
        norm_layer: makes its norms.
        trainable_layers: how many of its stages learn, from the last one on.
        returned_layers: numbers of those whose maps are in the pyramid; the last two if None.
        extra_blocks: adds maps, LastLevelMaxPool if None.
    """
    backbone = getattr(mobilenet, backbone_name)(weights=weights, norm_layer=norm_layer)
    return _mobilenet_extractor(backbone, fpn, trainable_layers, returned_layers, extra_blocks)


def freeze_stages(features: nn.Sequential, starts: list[int], trainable_layers: int) -> None:
    """Lets only the last stages of a model learn.

    Raises:
        ValueError: if there are not that many.
    """
    if not 0 <= trainable_layers <= len(starts):
        raise ValueError(
            f"Trainable layers should be in the range [0,{len(starts)}], got {trainable_layers}."
        )
    first = len(features) if trainable_layers == 0 else starts[len(starts) - trainable_layers]
    for block in features[:first]:
        block.requires_grad_(False)


def _mobilenet_extractor(
    backbone: Any,
    fpn: bool,
    trainable_layers: int,
    returned_layers: list[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: MakeLayer | None = None,
) -> nn.Module:
    features = backbone.features
    starts = stages(features)
    freeze_stages(features, starts, trainable_layers)
    out_channels = 256
    if not fpn:
        model = nn.Sequential(features, nn.Conv2d(features[-1].out_channels, out_channels, 1))
        model.out_channels = out_channels
        return model
    returned_layers = returned_layers or [len(starts) - 2, len(starts) - 1]
    if min(returned_layers) < 0 or max(returned_layers) >= len(starts):
        raise ValueError(
            f"Each returned layer should be in the range [0,{len(starts) - 1}], got "
            f"{returned_layers}."
        )
    return_layers = {str(starts[k]): str(i) for i, k in enumerate(returned_layers)}
    channels = [features[starts[k]].out_channels for k in returned_layers]
    return BackboneWithFPN(
        features, return_layers, channels, out_channels, extra_blocks, norm_layer
    )
