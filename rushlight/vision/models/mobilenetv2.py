"""MobileNet v2: Sandler et al. 2018, Inverted Residuals and Linear Bottlenecks.

A block widens its few channels, filters each by itself (a depthwise convolution), and narrows them
again; the sums run between the narrow ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _make_divisible, init_by_fan_out, init_narrow
from rushlight.vision.ops.misc import Conv2dNormActivation

__all__ = ["MobileNetV2", "MobileNet_V2_Weights", "mobilenet_v2"]

MakeLayer = Callable[..., nn.Module]

# The paper's table 2: how much wider, channels, number of blocks, stride of the first.
_SETTING = [
    [1, 16, 1, 1],
    [6, 24, 2, 2],
    [6, 32, 3, 2],
    [6, 64, 4, 2],
    [6, 96, 3, 1],
    [6, 160, 3, 2],
    [6, 320, 1, 1],
]


class InvertedResidual(nn.Module):
    """A 1x1 convolution to more channels, a 3x3 one on each, and a 1x1 one to few.

    Args:
        inp: channels of the input.
        oup: channels of the result.
        stride: 1 or 2.
        expand_ratio: how many times wider the middle is.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d.
    """

    def __init__(
        self,
        inp: int,
        oup: int,
        stride: int,
        expand_ratio: int,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm_layer = norm_layer or nn.BatchNorm2d
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        width = round(inp * expand_ratio)
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, width, kernel_size=1, **options))
        layers += [
            Conv2dNormActivation(width, width, stride=stride, groups=width, **options),
            nn.Conv2d(width, oup, 1, 1, 0, bias=False),
            norm_layer(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self.stride = stride
        self.use_res_connect = stride == 1 and inp == oup
        self.out_channels = oup
        self._is_cn = stride > 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """A convolution, inverted residuals, a convolution, a mean and a linear layer.

    Args:
        num_classes: size of the result.
        width_mult: how many times wider than in the paper.
        inverted_residual_setting: rows of [expand_ratio, channels, blocks, stride].
        round_nearest: all widths are multiples of it.
        block: makes a block, by default InvertedResidual.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d.
        dropout: probability to zero an element before the linear layer.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: list[list[int]] | None = None,
        round_nearest: int = 8,
        block: MakeLayer | None = None,
        norm_layer: MakeLayer | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        setting = _SETTING if inverted_residual_setting is None else inverted_residual_setting
        if not setting or len(setting[0]) != 4:
            raise ValueError(
                "inverted_residual_setting should be non-empty or a 4-element list, got "
                f"{inverted_residual_setting}"
            )
        block = block or InvertedResidual
        norm_layer = norm_layer or nn.BatchNorm2d
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        width = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [Conv2dNormActivation(3, width, stride=2, **options)]
        for expand_ratio, channels, count, first_stride in setting:
            out_width = _make_divisible(channels * width_mult, round_nearest)
            for i in range(count):
                stride = first_stride if i == 0 else 1
                features.append(
                    block(
                        width, out_width, stride, expand_ratio=expand_ratio, norm_layer=norm_layer
                    )
                )
                width = out_width
        features.append(Conv2dNormActivation(width, self.last_channel, kernel_size=1, **options))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes)
        )
        init_by_fan_out(self, init_narrow)

    def forward(self, x: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(rl.flatten(x, 1))


class MobileNet_V2_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("mobilenet_v2-b0353104.pth")
    IMAGENET1K_V2 = published("mobilenet_v2-7ebf99e0.pth")
    DEFAULT = IMAGENET1K_V2


@builder(MobileNet_V2_Weights)
def mobilenet_v2(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2."""
    return MobileNetV2(**kwargs)
