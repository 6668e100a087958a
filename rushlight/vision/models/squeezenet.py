"""SqueezeNet: Iandola et al. 2016, AlexNet-level accuracy with 50x fewer parameters."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published

__all__ = [
    "SqueezeNet",
    "SqueezeNet1_0_Weights",
    "SqueezeNet1_1_Weights",
    "squeezenet1_0",
    "squeezenet1_1",
]

# Fire modules as channels squeezed-expanded, M for a pool; 1.1 pools earlier.
_LAYERS: dict[str, str] = {
    "1_0": "M 16-64 16-64 32-128 M 32-128 48-192 48-192 64-256 M 64-256",
    "1_1": "M 16-64 16-64 M 32-128 32-128 M 48-192 48-192 64-256 64-256",
}


class Fire(nn.Module):
    """A 1x1 convolution to few channels, then 1x1 and 3x3 convolutions side by side."""

    def __init__(
        self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int
    ) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        narrow = self.expand1x1_activation(self.expand1x1(x))
        wide = self.expand3x3_activation(self.expand3x3(x))
        return rl.cat([narrow, wide], 1)


class SqueezeNet(nn.Module):
    """A convolution, fire modules, a convolution to the classes and a mean.

    Args:
        version: "1_0" or "1_1".
        num_classes: size of the result.
        dropout: probability to zero an element before the last convolution.
    """

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in _LAYERS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        channels, kernel_size = (96, 7) if version == "1_0" else (64, 3)
        layers: list[nn.Module] = [
            nn.Conv2d(3, channels, kernel_size=kernel_size, stride=2),
            nn.ReLU(inplace=True),
        ]
        for item in _LAYERS[version].split():
            if item == "M":
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
                continue
            squeezed, expanded = map(int, item.split("-"))
            layers.append(Fire(channels, squeezed, expanded, expanded))
            channels = 2 * expanded
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(channels, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )

        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                if layer is last:
                    nn.init.normal_(layer.weight, mean=0.0, std=0.01)
                else:
                    nn.init.kaiming_uniform_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return rl.flatten(self.classifier(self.features(x)), 1)


class SqueezeNet1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("squeezenet1_0-b66bff10.pth")
    DEFAULT = IMAGENET1K_V1


class SqueezeNet1_1_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("squeezenet1_1-b8a52dc0.pth")
    DEFAULT = IMAGENET1K_V1


@builder(SqueezeNet1_0_Weights)
def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0."""
    return SqueezeNet("1_0", **kwargs)


@builder(SqueezeNet1_1_Weights)
def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1, which costs 2.4 times less."""
    return SqueezeNet("1_1", **kwargs)
