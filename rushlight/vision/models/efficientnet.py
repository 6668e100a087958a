"""EfficientNet v1 and v2.

Tan and Le 2019, Rethinking Model Scaling: one network (B0), made wider, deeper and for larger
images together (B1 to B7). Tan and Le 2021, Smaller Models and Faster Training: its first blocks
join the 1x1 and the depthwise convolution into one, which processors run faster (V2).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _make_divisible, init_by_fan_out
from rushlight.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from rushlight.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "EfficientNet",
    "EfficientNet_B0_Weights",
    "EfficientNet_B1_Weights",
    "EfficientNet_B2_Weights",
    "EfficientNet_B3_Weights",
    "EfficientNet_B4_Weights",
    "EfficientNet_B5_Weights",
    "EfficientNet_B6_Weights",
    "EfficientNet_B7_Weights",
    "EfficientNet_V2_L_Weights",
    "EfficientNet_V2_M_Weights",
    "EfficientNet_V2_S_Weights",
    "efficientnet_b0",
    "efficientnet_b1",
    "efficientnet_b2",
    "efficientnet_b3",
    "efficientnet_b4",
    "efficientnet_b5",
    "efficientnet_b6",
    "efficientnet_b7",
    "efficientnet_v2_l",
    "efficientnet_v2_m",
    "efficientnet_v2_s",
]

MakeLayer = Callable[..., nn.Module]


@dataclass
class _MBConvConfig:
    """A stage: how much wider the middle of its blocks is, and what of them."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: MakeLayer

    @staticmethod
    def adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
        """Returns channels times width_mult as a multiple of 8."""
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of MBConv blocks, its widths and depth multiplied."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        block: MakeLayer | None = None,
    ) -> None:
        super().__init__(
            expand_ratio,
            kernel,
            stride,
            self.adjust_channels(input_channels, width_mult),
            self.adjust_channels(out_channels, width_mult),
            self.adjust_depth(num_layers, depth_mult),
            block or MBConv,
        )

    @staticmethod
    def adjust_depth(num_layers: int, depth_mult: float) -> int:
        """Returns num_layers times depth_mult, rounded up."""
        return math.ceil(num_layers * depth_mult)


class FusedMBConvConfig(_MBConvConfig):
    """A stage of FusedMBConv blocks."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        block: MakeLayer | None = None,
    ) -> None:
        super().__init__(
            expand_ratio,
            kernel,
            stride,
            input_channels,
            out_channels,
            num_layers,
            block or FusedMBConv,
        )


class _Block(nn.Module):
    """What both blocks share: layers, left out at random in training, and the input."""

    def __init__(
        self, cnf: _MBConvConfig, stochastic_depth_prob: float, layers: list[nn.Module]
    ) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        if self.use_res_connect:
            result = self.stochastic_depth(result)
            result += input
        return result


class MBConv(_Block):
    """A 1x1 convolution to more channels, a depthwise one, squeeze-excitation, 1x1 to few."""

    def __init__(
        self,
        cnf: MBConvConfig,
        stochastic_depth_prob: float,
        norm_layer: MakeLayer,
        se_layer: MakeLayer = SqueezeExcitation,
    ) -> None:
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        width = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        squeezed = max(1, cnf.input_channels // 4)
        layers: list[nn.Module] = []
        if width != cnf.input_channels:
            layers.append(conv(cnf.input_channels, width, kernel_size=1))
        layers += [
            conv(width, width, kernel_size=cnf.kernel, stride=cnf.stride, groups=width),
            se_layer(width, squeezed, activation=partial(nn.SiLU, inplace=True)),
            conv(width, cnf.out_channels, kernel_size=1, activation_layer=None),
        ]
        super().__init__(cnf, stochastic_depth_prob, layers)


class FusedMBConv(_Block):
    """A full convolution to more channels and a 1x1 one to few; one alone if it is not wider."""

    def __init__(
        self, cnf: FusedMBConvConfig, stochastic_depth_prob: float, norm_layer: MakeLayer
    ) -> None:
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        width = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        is_wider = width != cnf.input_channels
        first = width if is_wider else cnf.out_channels
        layers: list[nn.Module] = [
            conv(cnf.input_channels, first, kernel_size=cnf.kernel, stride=cnf.stride)
        ]
        if is_wider:
            layers.append(conv(width, cnf.out_channels, kernel_size=1, activation_layer=None))
        super().__init__(cnf, stochastic_depth_prob, layers)


class EfficientNet(nn.Module):
    """A convolution, stages of blocks, a convolution, a mean and a linear layer.

    Args:
        inverted_residual_setting: the stages.
        dropout: probability to zero an element before the linear layer.
        stochastic_depth_prob: probability to leave out the last block in training; those before it
            are left out less, the first never.
        num_classes: size of the result.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d.
        last_channel: channels of the last convolution, by default 4 times the last stage's.
    """

    def __init__(
        self,
        inverted_residual_setting: Sequence[MBConvConfig | FusedMBConvConfig],
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: MakeLayer | None = None,
        last_channel: int | None = None,
    ) -> None:
        super().__init__()
        setting = inverted_residual_setting
        if not setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(setting, Sequence) or not all(
            isinstance(row, _MBConvConfig) for row in setting
        ):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm_layer = norm_layer or nn.BatchNorm2d
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        layers: list[nn.Module] = [conv(3, setting[0].input_channels, kernel_size=3, stride=2)]
        total = sum(row.num_layers for row in setting)
        count = 0
        for row in setting:
            stage: list[nn.Module] = []
            for i in range(row.num_layers):
                cnf = copy.copy(row)
                if i > 0:
                    cnf.input_channels = cnf.out_channels
                    cnf.stride = 1
                stage.append(cnf.block(cnf, stochastic_depth_prob * count / total, norm_layer))
                count += 1
            layers.append(nn.Sequential(*stage))
        width = setting[-1].out_channels
        last_channel = 4 * width if last_channel is None else last_channel
        layers.append(conv(width, last_channel, kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(last_channel, num_classes)
        )
        bound = 1 / math.sqrt(num_classes)
        init_by_fan_out(self, partial(nn.init.uniform_, a=-bound, b=bound))

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.features(x))
        return self.classifier(rl.flatten(x, 1))


# Stages: how much wider the middle is, kernel, stride, channels in and out, number of blocks.
_B0 = [
    (1, 3, 1, 32, 16, 1),
    (6, 3, 2, 16, 24, 2),
    (6, 5, 2, 24, 40, 2),
    (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
]
_V2_S = [
    FusedMBConvConfig(1, 3, 1, 24, 24, 2),
    FusedMBConvConfig(4, 3, 2, 24, 48, 4),
    FusedMBConvConfig(4, 3, 2, 48, 64, 4),
    MBConvConfig(4, 3, 2, 64, 128, 6),
    MBConvConfig(6, 3, 1, 128, 160, 9),
    MBConvConfig(6, 3, 2, 160, 256, 15),
]
_V2_M = [
    FusedMBConvConfig(1, 3, 1, 24, 24, 3),
    FusedMBConvConfig(4, 3, 2, 24, 48, 5),
    FusedMBConvConfig(4, 3, 2, 48, 80, 5),
    MBConvConfig(4, 3, 2, 80, 160, 7),
    MBConvConfig(6, 3, 1, 160, 176, 14),
    MBConvConfig(6, 3, 2, 176, 304, 18),
    MBConvConfig(6, 3, 1, 304, 512, 5),
]
_V2_L = [
    FusedMBConvConfig(1, 3, 1, 32, 32, 4),
    FusedMBConvConfig(4, 3, 2, 32, 64, 7),
    FusedMBConvConfig(4, 3, 2, 64, 96, 7),
    MBConvConfig(4, 3, 2, 96, 192, 10),
    MBConvConfig(6, 3, 1, 192, 224, 19),
    MBConvConfig(6, 3, 2, 224, 384, 25),
    MBConvConfig(6, 3, 1, 384, 640, 7),
]
_NORM_LARGE = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
_NORM_V2 = partial(nn.BatchNorm2d, eps=0.001)


def _scaled(width: float, depth: float, **kwargs: Any) -> EfficientNet:
    """B0, made wider and deeper."""
    setting = [MBConvConfig(*row, width_mult=width, depth_mult=depth) for row in _B0]
    return EfficientNet(setting, **kwargs)


def _v2(setting: list[Any], **kwargs: Any) -> EfficientNet:
    return EfficientNet(setting, **{"norm_layer": _NORM_V2, "last_channel": 1280} | kwargs)


class EfficientNet_B0_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b0_rwightman-7f5810bc.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B1_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b1_rwightman-bac287d4.pth")
    IMAGENET1K_V2 = published("efficientnet_b1-c27df63c.pth")
    DEFAULT = IMAGENET1K_V2


class EfficientNet_B2_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b2_rwightman-c35c1473.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B3_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b3_rwightman-b3899882.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B4_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b4_rwightman-23ab8bcd.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B5_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b5_lukemelas-1a07897c.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B6_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b6_lukemelas-24a108a5.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B7_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_b7_lukemelas-c5b4e57e.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_v2_s-dd5fe13b.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_M_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_v2_m-dc08266a.pth")
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_L_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("efficientnet_v2_l-59c71312.pth")
    DEFAULT = IMAGENET1K_V1


@builder(EfficientNet_B0_Weights)
def efficientnet_b0(**kwargs: Any) -> EfficientNet:
    """EfficientNet B0."""
    return _scaled(1.0, 1.0, **{"dropout": 0.2} | kwargs)


@builder(EfficientNet_B1_Weights)
def efficientnet_b1(**kwargs: Any) -> EfficientNet:
    """EfficientNet B1."""
    return _scaled(1.0, 1.1, **{"dropout": 0.2} | kwargs)


@builder(EfficientNet_B2_Weights)
def efficientnet_b2(**kwargs: Any) -> EfficientNet:
    """EfficientNet B2."""
    return _scaled(1.1, 1.2, **{"dropout": 0.3} | kwargs)


@builder(EfficientNet_B3_Weights)
def efficientnet_b3(**kwargs: Any) -> EfficientNet:
    """EfficientNet B3."""
    return _scaled(1.2, 1.4, **{"dropout": 0.3} | kwargs)


@builder(EfficientNet_B4_Weights)
def efficientnet_b4(**kwargs: Any) -> EfficientNet:
    """EfficientNet B4."""
    return _scaled(1.4, 1.8, **{"dropout": 0.4} | kwargs)


@builder(EfficientNet_B5_Weights)
def efficientnet_b5(**kwargs: Any) -> EfficientNet:
    """EfficientNet B5."""
    return _scaled(1.6, 2.2, **{"dropout": 0.4, "norm_layer": _NORM_LARGE} | kwargs)


@builder(EfficientNet_B6_Weights)
def efficientnet_b6(**kwargs: Any) -> EfficientNet:
    """EfficientNet B6."""
    return _scaled(1.8, 2.6, **{"dropout": 0.5, "norm_layer": _NORM_LARGE} | kwargs)


@builder(EfficientNet_B7_Weights)
def efficientnet_b7(**kwargs: Any) -> EfficientNet:
    """EfficientNet B7."""
    return _scaled(2.0, 3.1, **{"dropout": 0.5, "norm_layer": _NORM_LARGE} | kwargs)


@builder(EfficientNet_V2_S_Weights)
def efficientnet_v2_s(**kwargs: Any) -> EfficientNet:
    """EfficientNet V2, small."""
    return _v2(_V2_S, **{"dropout": 0.2} | kwargs)


@builder(EfficientNet_V2_M_Weights)
def efficientnet_v2_m(**kwargs: Any) -> EfficientNet:
    """EfficientNet V2, medium."""
    return _v2(_V2_M, **{"dropout": 0.3} | kwargs)


@builder(EfficientNet_V2_L_Weights)
def efficientnet_v2_l(**kwargs: Any) -> EfficientNet:
    """EfficientNet V2, large."""
    return _v2(_V2_L, **{"dropout": 0.4} | kwargs)
