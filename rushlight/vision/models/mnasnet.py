"""MNASNet: Tan et al. 2018, Platform-Aware Neural Architecture Search for Mobile (MnasNet-B1)."""

from __future__ import annotations

from functools import partial
from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _make_divisible, init_by_fan_out

__all__ = [
    "MNASNet",
    "MNASNet0_5_Weights",
    "MNASNet0_75_Weights",
    "MNASNet1_0_Weights",
    "MNASNet1_3_Weights",
    "mnasnet0_5",
    "mnasnet0_75",
    "mnasnet1_0",
    "mnasnet1_3",
]

_norm = partial(nn.BatchNorm2d, momentum=1 - 0.9997)  # TensorFlow's 0.9997 is what is kept

# The paper's figure 7: channels, kernel, stride, how much wider the middle is, number of blocks.
_STACKS = [
    (24, 3, 2, 3, 3),
    (40, 5, 2, 3, 3),
    (80, 5, 2, 6, 3),
    (96, 3, 1, 6, 2),
    (192, 5, 2, 6, 4),
    (320, 3, 1, 6, 1),
]


def _conv_norm(inp: int, oup: int, kernel_size: int, **kwargs: Any) -> list[nn.Module]:
    padding = kernel_size // 2
    return [nn.Conv2d(inp, oup, kernel_size, padding=padding, bias=False, **kwargs), _norm(oup)]


class _InvertedResidual(nn.Module):
    """A 1x1 convolution to more channels, a depthwise one, and a 1x1 one to few."""

    def __init__(self, inp: int, oup: int, kernel_size: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inp * expansion
        self.apply_residual = inp == oup and stride == 1
        self.layers = nn.Sequential(
            *_conv_norm(inp, width, 1),
            nn.ReLU(inplace=True),
            *_conv_norm(width, width, kernel_size, stride=stride, groups=width),
            nn.ReLU(inplace=True),
            *_conv_norm(width, oup, 1),
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.layers(input) + input if self.apply_residual else self.layers(input)


class MNASNet(nn.Module):
    """Convolutions, stacks of inverted residuals, a convolution, a mean and a linear layer.

    Args:
        alpha: how many times wider than in the paper.
        num_classes: size of the result.
        dropout: probability to zero an element before the linear layer.

    Example:
        >>> MNASNet(1.0, num_classes=10)(torch.rand(1, 3, 64, 64)).shape
        torch.Size([1, 10])
    """

    _version = 2  # version 1 had a first convolution of 32 channels for every alpha

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha = alpha
        self.num_classes = num_classes
        first, width = _make_divisible(32 * alpha, 8), _make_divisible(16 * alpha, 8)
        layers = [
            *_conv_norm(3, first, 3, stride=2),
            nn.ReLU(inplace=True),
            *_conv_norm(first, first, 3, groups=first),
            nn.ReLU(inplace=True),
            *_conv_norm(first, width, 1),
        ]
        for channels, kernel_size, stride, expansion, count in _STACKS:
            oup = _make_divisible(channels * alpha, 8)
            blocks = [_InvertedResidual(width, oup, kernel_size, stride, expansion)]
            for _ in range(count - 1):
                blocks.append(_InvertedResidual(oup, oup, kernel_size, 1, expansion))
            layers.append(nn.Sequential(*blocks))
            width = oup
        self.layers = nn.Sequential(*layers, *_conv_norm(width, 1280, 1), nn.ReLU(inplace=True))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes)
        )
        init_by_fan_out(
            self, partial(nn.init.kaiming_uniform_, mode="fan_out", nonlinearity="sigmoid")
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean([2, 3]))


class MNASNet0_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("mnasnet0.5_top1_67.823-3ffadce67e.pth")
    DEFAULT = IMAGENET1K_V1


class MNASNet0_75_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("mnasnet0_75-7090bc5f.pth")
    DEFAULT = IMAGENET1K_V1


class MNASNet1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("mnasnet1.0_top1_73.512-f206786ef8.pth")
    DEFAULT = IMAGENET1K_V1


class MNASNet1_3_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("mnasnet1_3-a4c69d6f.pth")
    DEFAULT = IMAGENET1K_V1


@builder(MNASNet0_5_Weights)
def mnasnet0_5(**kwargs: Any) -> MNASNet:
    """MNASNet, half as wide."""
    return MNASNet(0.5, **kwargs)


@builder(MNASNet0_75_Weights)
def mnasnet0_75(**kwargs: Any) -> MNASNet:
    """MNASNet, 0.75 times as wide."""
    return MNASNet(0.75, **kwargs)


@builder(MNASNet1_0_Weights)
def mnasnet1_0(**kwargs: Any) -> MNASNet:
    """MNASNet."""
    return MNASNet(1.0, **kwargs)


@builder(MNASNet1_3_Weights)
def mnasnet1_3(**kwargs: Any) -> MNASNet:
    """MNASNet, 1.3 times as wide."""
    return MNASNet(1.3, **kwargs)
