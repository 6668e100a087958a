"""MobileNet v3: Howard et al. 2019, Searching for MobileNetV3.

The inverted residuals of v2, some with squeeze-excitation, in an order that a search found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _make_divisible, init_by_fan_out, init_narrow
from rushlight.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "MobileNetV3",
    "MobileNet_V3_Large_Weights",
    "MobileNet_V3_Small_Weights",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
]

MakeLayer = Callable[..., nn.Module]

# The paper's tables 1 and 2: channels in, kernel, channels in the middle, channels out, whether
# there is squeeze-excitation, RE for relu or HS for hardswish, stride. After the rows, the features
# between the two linear layers.
_LARGE = (
    [
        (16, 3, 16, 16, False, "RE", 1),
        (16, 3, 64, 24, False, "RE", 2),
        (24, 3, 72, 24, False, "RE", 1),
        (24, 5, 72, 40, True, "RE", 2),
        (40, 5, 120, 40, True, "RE", 1),
        (40, 5, 120, 40, True, "RE", 1),
        (40, 3, 240, 80, False, "HS", 2),
        (80, 3, 200, 80, False, "HS", 1),
        (80, 3, 184, 80, False, "HS", 1),
        (80, 3, 184, 80, False, "HS", 1),
        (80, 3, 480, 112, True, "HS", 1),
        (112, 3, 672, 112, True, "HS", 1),
        (112, 5, 672, 160, True, "HS", 2),
        (160, 5, 960, 160, True, "HS", 1),
        (160, 5, 960, 160, True, "HS", 1),
    ],
    1280,
)
_SMALL = (
    [
        (16, 3, 16, 16, True, "RE", 2),
        (16, 3, 72, 24, False, "RE", 2),
        (24, 3, 88, 24, False, "RE", 1),
        (24, 5, 96, 40, True, "HS", 2),
        (40, 5, 240, 40, True, "HS", 1),
        (40, 5, 240, 40, True, "HS", 1),
        (40, 5, 120, 48, True, "HS", 1),
        (48, 5, 144, 48, True, "HS", 1),
        (48, 5, 288, 96, True, "HS", 2),
        (96, 5, 576, 96, True, "HS", 1),
        (96, 5, 576, 96, True, "HS", 1),
    ],
    1024,
)


_SE = partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)


class InvertedResidualConfig:
    """A row of the paper's tables, with widths multiplied by width_mult."""

    def __init__(
        self,
        input_channels: int,
        kernel: int,
        expanded_channels: int,
        out_channels: int,
        use_se: bool,
        activation: str,
        stride: int,
        dilation: int,
        width_mult: float,
    ) -> None:
        self.input_channels = self.adjust_channels(input_channels, width_mult)
        self.kernel = kernel
        self.expanded_channels = self.adjust_channels(expanded_channels, width_mult)
        self.out_channels = self.adjust_channels(out_channels, width_mult)
        self.use_se = use_se
        self.use_hs = activation == "HS"
        self.stride = stride
        self.dilation = dilation

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        """Returns channels times width_mult as a multiple of 8."""
        return _make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """A 1x1 convolution to more channels, a depthwise one, squeeze-excitation, a 1x1 one to few."""

    def __init__(
        self,
        cnf: InvertedResidualConfig,
        norm_layer: MakeLayer,
        se_layer: MakeLayer = _SE,
    ) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        conv = partial(
            Conv2dNormActivation,
            norm_layer=norm_layer,
            activation_layer=nn.Hardswish if cnf.use_hs else nn.ReLU,
        )
        width = cnf.expanded_channels
        layers: list[nn.Module] = []
        if width != cnf.input_channels:
            layers.append(conv(cnf.input_channels, width, kernel_size=1))
        layers.append(
            conv(
                width,
                width,
                kernel_size=cnf.kernel,
                stride=1 if cnf.dilation > 1 else cnf.stride,
                dilation=cnf.dilation,
                groups=width,
            )
        )
        if cnf.use_se:
            layers.append(se_layer(width, _make_divisible(width // 4, 8)))
        layers.append(conv(width, cnf.out_channels, kernel_size=1, activation_layer=None))
        self.block = nn.Sequential(*layers)
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.out_channels = cnf.out_channels
        self._is_cn = cnf.stride > 1

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        if self.use_res_connect:
            result += input
        return result


class MobileNetV3(nn.Module):
    """A convolution, inverted residuals, a convolution, a mean and two linear layers.

    Args:
        inverted_residual_setting: the blocks.
        last_channel: features between the two linear layers.
        num_classes: size of the result.
        block: makes a block, by default InvertedResidual.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d with
            eps=0.001, momentum=0.01.
        dropout: probability to zero an element before the last layer.
        **kwargs: ignored, as torchvision does.
    """

    def __init__(
        self,
        inverted_residual_setting: list[InvertedResidualConfig],
        last_channel: int,
        num_classes: int = 1000,
        block: MakeLayer | None = None,
        norm_layer: MakeLayer | None = None,
        dropout: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        setting = inverted_residual_setting
        if not setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(setting, Sequence) or not all(
            isinstance(row, InvertedResidualConfig) for row in setting
        ):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block = block or InvertedResidual
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish)
        narrow = setting[-1].out_channels
        self.features = nn.Sequential(
            conv(3, setting[0].input_channels, kernel_size=3, stride=2),
            *[block(row, norm_layer) for row in setting],
            conv(narrow, 6 * narrow, kernel_size=1),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * narrow, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        init_by_fan_out(self, init_narrow)

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.features(x))
        return self.classifier(rl.flatten(x, 1))


def _make(
    table: tuple[list[tuple[Any, ...]], int],
    width_mult: float = 1.0,
    reduced_tail: bool = False,
    dilated: bool = False,
    **kwargs: Any,
) -> MobileNetV3:
    """Makes the model of a table.

    Args:
        table: _LARGE or _SMALL.
        width_mult: how many times wider than in the paper.
        reduced_tail: whether the last three blocks and what follows have half the channels.
        dilated: whether the last three blocks dilate instead of halving the size.
        **kwargs: arguments of MobileNetV3.
    """
    rows, last_channel = table
    shrink = 2 if reduced_tail else 1
    setting = []
    for i, (inp, kernel, middle, out, use_se, activation, stride) in enumerate(rows):
        tail = i - (len(rows) - 3)  # from 0 on in the last three blocks
        setting.append(
            InvertedResidualConfig(
                inp // shrink if tail > 0 else inp,
                kernel,
                middle // shrink if tail > 0 else middle,
                out // shrink if tail >= 0 else out,
                use_se,
                activation,
                stride,
                2 if dilated and tail >= 0 else 1,
                width_mult,
            )
        )
    last = InvertedResidualConfig.adjust_channels(last_channel // shrink, width_mult)
    return MobileNetV3(setting, last, **kwargs)


class MobileNet_V3_Large_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("mobilenet_v3_large-8738ca79.pth")
    IMAGENET1K_V2 = published("mobilenet_v3_large-5c1a4163.pth")
    DEFAULT = IMAGENET1K_V2


class MobileNet_V3_Small_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("mobilenet_v3_small-047dcff4.pth")
    DEFAULT = IMAGENET1K_V1


@builder(MobileNet_V3_Large_Weights)
def mobilenet_v3_large(**kwargs: Any) -> MobileNetV3:
    """MobileNet v3, large."""
    return _make(_LARGE, **kwargs)


@builder(MobileNet_V3_Small_Weights)
def mobilenet_v3_small(**kwargs: Any) -> MobileNetV3:
    """MobileNet v3, small."""
    return _make(_SMALL, **kwargs)
