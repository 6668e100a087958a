"""VGG: Simonyan and Zisserman 2014, Very Deep Convolutional Networks for Large-Scale Recognition.

Stacks of 3x3 convolutions, a pool that halves the image after each stack, three linear layers.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import init_by_fan_out, init_narrow

__all__ = [
    "VGG",
    "VGG11_BN_Weights",
    "VGG11_Weights",
    "VGG13_BN_Weights",
    "VGG13_Weights",
    "VGG16_BN_Weights",
    "VGG16_Weights",
    "VGG19_BN_Weights",
    "VGG19_Weights",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
]

# The columns of the paper's table 1: channels of each convolution, M for a pool.
cfgs: dict[str, list[str | int]] = {
    "A": [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "B": [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "D": [64, 64, "M", 128, 128, "M", *[256] * 3, "M", *[512] * 3, "M", *[512] * 3, "M"],
    "E": [64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M"],
}


class VGG(nn.Module):
    """A stack of convolutions and the classifier after it.

    Args:
        features: the convolutions, (N, 3, H, W) to (N, 512, ..., ...).
        num_classes: size of the result.
        init_weights: whether to initialize as the paper does.
        dropout: probability to zero an element in the classifier.
    """

    def __init__(
        self,
        features: nn.Module,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            init_by_fan_out(self, init_narrow)

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.features(x))
        return self.classifier(rl.flatten(x, 1))


def make_layers(cfg: list[str | int], batch_norm: bool = False) -> nn.Sequential:
    """Returns the convolutions and pools that a column of cfgs describes."""
    layers: list[nn.Module] = []
    channels = 3
    for item in cfg:
        if isinstance(item, str):
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, item, kernel_size=3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(item))
        layers.append(nn.ReLU(inplace=True))
        channels = item
    return nn.Sequential(*layers)


def _no_init(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    kwargs["init_weights"] = False  # takes seconds, and the weights come after it


class VGG11_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg11-8a719046.pth")
    DEFAULT = IMAGENET1K_V1


class VGG11_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg11_bn-6002323d.pth")
    DEFAULT = IMAGENET1K_V1


class VGG13_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg13-19584684.pth")
    DEFAULT = IMAGENET1K_V1


class VGG13_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg13_bn-abd245e5.pth")
    DEFAULT = IMAGENET1K_V1


class VGG16_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg16-397923af.pth")
    IMAGENET1K_FEATURES = published("vgg16_features-amdegroot-88682ab5.pth")
    DEFAULT = IMAGENET1K_V1


class VGG16_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg16_bn-6c64b313.pth")
    DEFAULT = IMAGENET1K_V1


class VGG19_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg19-dcbb9e9d.pth")
    DEFAULT = IMAGENET1K_V1


class VGG19_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vgg19_bn-c79401a0.pth")
    DEFAULT = IMAGENET1K_V1


@builder(VGG11_Weights, adapt=_no_init)
def vgg11(**kwargs: Any) -> VGG:
    """VGG with 11 layers that learn."""
    return VGG(make_layers(cfgs["A"]), **kwargs)


@builder(VGG11_BN_Weights, adapt=_no_init)
def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG with 11 layers that learn and batch norm after each convolution."""
    return VGG(make_layers(cfgs["A"], batch_norm=True), **kwargs)


@builder(VGG13_Weights, adapt=_no_init)
def vgg13(**kwargs: Any) -> VGG:
    """VGG with 13 layers that learn."""
    return VGG(make_layers(cfgs["B"]), **kwargs)


@builder(VGG13_BN_Weights, adapt=_no_init)
def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG with 13 layers that learn and batch norm after each convolution."""
    return VGG(make_layers(cfgs["B"], batch_norm=True), **kwargs)


@builder(VGG16_Weights, adapt=_no_init)
def vgg16(**kwargs: Any) -> VGG:
    """VGG with 16 layers that learn."""
    return VGG(make_layers(cfgs["D"]), **kwargs)


@builder(VGG16_BN_Weights, adapt=_no_init)
def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG with 16 layers that learn and batch norm after each convolution."""
    return VGG(make_layers(cfgs["D"], batch_norm=True), **kwargs)


@builder(VGG19_Weights, adapt=_no_init)
def vgg19(**kwargs: Any) -> VGG:
    """VGG with 19 layers that learn."""
    return VGG(make_layers(cfgs["E"]), **kwargs)


@builder(VGG19_BN_Weights, adapt=_no_init)
def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG with 19 layers that learn and batch norm after each convolution."""
    return VGG(make_layers(cfgs["E"], batch_norm=True), **kwargs)
