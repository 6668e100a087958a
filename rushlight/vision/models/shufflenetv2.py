"""ShuffleNet v2: Ma et al. 2018, Practical Guidelines for Efficient CNN Architecture Design.

A block works on half of its channels; shuffling them lets the halves meet in the next block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published

__all__ = [
    "ShuffleNetV2",
    "ShuffleNet_V2_X0_5_Weights",
    "ShuffleNet_V2_X1_0_Weights",
    "ShuffleNet_V2_X1_5_Weights",
    "ShuffleNet_V2_X2_0_Weights",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
]


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Returns (N, C, H, W) with the channels of the groups taken in turn."""
    return x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


def _conv_norm(inp: int, oup: int, *, relu: bool = False, **kwargs: Any) -> list[nn.Module]:
    layers = [nn.Conv2d(inp, oup, bias=False, **kwargs), nn.BatchNorm2d(oup)]
    return [*layers, nn.ReLU(inplace=True)] if relu else layers


class InvertedResidual(nn.Module):
    """Convolutions on half of the channels or, with stride 2, two branches on all of them.

    Args:
        inp: channels of the input.
        oup: channels of the result.
        stride: 1, 2 or 3.
    """

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        half = oup // 2
        if stride == 1 and inp != half * 2:
            raise ValueError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. "
                "If stride == 1 then inp should be equal to oup // 2 << 1."
            )
        depthwise: dict[str, Any] = {"kernel_size": 3, "stride": stride, "padding": 1}
        self.stride = stride
        self.branch1 = nn.Sequential()
        if stride > 1:
            self.branch1 = nn.Sequential(
                *_conv_norm(inp, inp, groups=inp, **depthwise),
                *_conv_norm(inp, half, kernel_size=1, relu=True),
            )
        self.branch2 = nn.Sequential(
            *_conv_norm(inp if stride > 1 else half, half, kernel_size=1, relu=True),
            *_conv_norm(half, half, groups=half, **depthwise),
            *_conv_norm(half, half, kernel_size=1, relu=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            kept, worked = x.chunk(2, dim=1)
            out = rl.cat((kept, self.branch2(worked)), dim=1)
        else:
            out = rl.cat((self.branch1(x), self.branch2(x)), dim=1)
        return channel_shuffle(out, 2)


class ShuffleNetV2(nn.Module):
    """A convolution and a pool, three stages, a convolution, a mean and a linear layer.

    Args:
        stages_repeats: number of blocks in each of the three stages.
        stages_out_channels: channels after the first convolution, the stages, the last convolution.
        num_classes: size of the result.
        inverted_residual: makes a block.
    """

    def __init__(
        self,
        stages_repeats: list[int],
        stages_out_channels: list[int],
        num_classes: int = 1000,
        inverted_residual: Callable[..., nn.Module] = InvertedResidual,
    ) -> None:
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        self._stage_out_channels = stages_out_channels
        first, *widths, last = stages_out_channels

        def stage(inp: int, oup: int, repeats: int) -> nn.Sequential:
            rest = [inverted_residual(oup, oup, 1) for _ in range(repeats - 1)]
            return nn.Sequential(inverted_residual(inp, oup, 2), *rest)

        self.conv1 = nn.Sequential(
            *_conv_norm(3, first, kernel_size=3, stride=2, padding=1, relu=True)
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.stage2 = stage(first, widths[0], stages_repeats[0])
        self.stage3 = stage(widths[0], widths[1], stages_repeats[1])
        self.stage4 = stage(widths[1], widths[2], stages_repeats[2])
        self.conv5 = nn.Sequential(*_conv_norm(widths[2], last, kernel_size=1, relu=True))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.conv1(x))
        x = self.conv5(self.stage4(self.stage3(self.stage2(x))))
        return self.fc(x.mean([2, 3]))


class ShuffleNet_V2_X0_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("shufflenetv2_x0.5-f707e7126e.pth")
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("shufflenetv2_x1-5666bf0f80.pth")
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X1_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("shufflenetv2_x1_5-3c479a10.pth")
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X2_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("shufflenetv2_x2_0-8be3c8ee.pth")
    DEFAULT = IMAGENET1K_V1


@builder(ShuffleNet_V2_X0_5_Weights)
def shufflenet_v2_x0_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2, half as wide."""
    return ShuffleNetV2([4, 8, 4], [24, 48, 96, 192, 1024], **kwargs)


@builder(ShuffleNet_V2_X1_0_Weights)
def shufflenet_v2_x1_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2."""
    return ShuffleNetV2([4, 8, 4], [24, 116, 232, 464, 1024], **kwargs)


@builder(ShuffleNet_V2_X1_5_Weights)
def shufflenet_v2_x1_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2, 1.5 times as wide."""
    return ShuffleNetV2([4, 8, 4], [24, 176, 352, 704, 1024], **kwargs)


@builder(ShuffleNet_V2_X2_0_Weights)
def shufflenet_v2_x2_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2, twice as wide."""
    return ShuffleNetV2([4, 8, 4], [24, 244, 488, 976, 2048], **kwargs)
