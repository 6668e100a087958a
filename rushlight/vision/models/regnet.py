"""RegNet X and Y: Radosavovic et al. 2020, Designing Network Design Spaces.

The widths of all blocks lie on a line, rounded to few steps; six numbers describe a network. Y is X
with squeeze-excitation.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _make_divisible
from rushlight.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "RegNet",
    "RegNet_X_1_6GF_Weights",
    "RegNet_X_3_2GF_Weights",
    "RegNet_X_8GF_Weights",
    "RegNet_X_16GF_Weights",
    "RegNet_X_32GF_Weights",
    "RegNet_X_400MF_Weights",
    "RegNet_X_800MF_Weights",
    "RegNet_Y_1_6GF_Weights",
    "RegNet_Y_3_2GF_Weights",
    "RegNet_Y_8GF_Weights",
    "RegNet_Y_16GF_Weights",
    "RegNet_Y_32GF_Weights",
    "RegNet_Y_128GF_Weights",
    "RegNet_Y_400MF_Weights",
    "RegNet_Y_800MF_Weights",
    "regnet_x_1_6gf",
    "regnet_x_3_2gf",
    "regnet_x_8gf",
    "regnet_x_16gf",
    "regnet_x_32gf",
    "regnet_x_400mf",
    "regnet_x_800mf",
    "regnet_y_1_6gf",
    "regnet_y_3_2gf",
    "regnet_y_8gf",
    "regnet_y_16gf",
    "regnet_y_32gf",
    "regnet_y_128gf",
    "regnet_y_400mf",
    "regnet_y_800mf",
]

MakeLayer = Callable[..., nn.Module]


class SimpleStemIN(Conv2dNormActivation):
    """The first convolution, with stride 2."""

    def __init__(
        self, width_in: int, width_out: int, norm_layer: MakeLayer, activation_layer: MakeLayer
    ) -> None:
        super().__init__(
            width_in,
            width_out,
            kernel_size=3,
            stride=2,
            norm_layer=norm_layer,
            activation_layer=activation_layer,
        )


class BottleneckTransform(nn.Sequential):
    """What a block adds to its input: 1x1, 3x3 in groups, squeeze-excitation, 1x1."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        norm_layer: MakeLayer,
        activation_layer: MakeLayer,
        group_width: int,
        bottleneck_multiplier: float,
        se_ratio: float | None,
    ) -> None:
        width = round(width_out * bottleneck_multiplier)
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation_layer}
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["a"] = Conv2dNormActivation(width_in, width, kernel_size=1, **options)
        layers["b"] = Conv2dNormActivation(
            width, width, kernel_size=3, stride=stride, groups=width // group_width, **options
        )
        if se_ratio:
            squeezed = round(se_ratio * width_in)
            layers["se"] = SqueezeExcitation(width, squeezed, activation=activation_layer)
        options["activation_layer"] = None
        layers["c"] = Conv2dNormActivation(width, width_out, kernel_size=1, **options)
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """A bottleneck and the input, which a 1x1 convolution brings to the shape of the result."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        norm_layer: MakeLayer,
        activation_layer: MakeLayer,
        group_width: int = 1,
        bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
    ) -> None:
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(
                width_in,
                width_out,
                kernel_size=1,
                stride=stride,
                norm_layer=norm_layer,
                activation_layer=None,
            )
        self.f = BottleneckTransform(
            width_in,
            width_out,
            stride,
            norm_layer,
            activation_layer,
            group_width,
            bottleneck_multiplier,
            se_ratio,
        )
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.proj is None else self.proj(x)
        return self.activation(identity + self.f(x))


class AnyStage(nn.Sequential):
    """Blocks of one width; the first has the stride."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        depth: int,
        block_constructor: MakeLayer,
        norm_layer: MakeLayer,
        activation_layer: MakeLayer,
        group_width: int,
        bottleneck_multiplier: float,
        se_ratio: float | None = None,
        stage_index: int = 0,
    ) -> None:
        super().__init__()
        for i in range(depth):
            block = block_constructor(
                width_in if i == 0 else width_out,
                width_out,
                stride if i == 0 else 1,
                norm_layer,
                activation_layer,
                group_width,
                bottleneck_multiplier,
                se_ratio,
            )
            self.add_module(f"block{stage_index}-{i}", block)


class BlockParams:
    """For each stage the number of blocks, their width, that of their groups, and the stride."""

    def __init__(
        self,
        depths: list[int],
        widths: list[int],
        group_widths: list[int],
        bottleneck_multipliers: list[float],
        strides: list[int],
        se_ratio: float | None = None,
    ) -> None:
        self.depths = depths
        self.widths = widths
        self.group_widths = group_widths
        self.bottleneck_multipliers = bottleneck_multipliers
        self.strides = strides
        self.se_ratio = se_ratio

    @classmethod
    def from_init_params(
        cls,
        depth: int,
        w_0: int,
        w_a: float,
        w_m: float,
        group_width: int,
        bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
        **kwargs: Any,
    ) -> BlockParams:
        """Returns the stages that the numbers of the paper describe (its equations 2 to 4).

        Block j would have the width u = w_0 + w_a * j; it gets w_0 * w_m ** s, where s is the
        whole number for which that is nearest to u, as a multiple of 8.

        Args:
            depth: number of blocks.
            w_0: width of the first.
            w_a: slope of the line.
            w_m: ratio between two steps.
            group_width: channels of a group.
            bottleneck_multiplier: width of the 3x3 convolution over that of the block.
            se_ratio: channels in the middle of squeeze-excitation over those of the block's input.
            **kwargs: ignored, as torchvision does.
        """
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ValueError("Invalid RegNet settings")
        steps = [round(math.log(1 + w_a * j / w_0, w_m)) for j in range(depth)]
        block_widths = [round(w_0 * w_m**step / 8) * 8 for step in steps]
        widths, depths = [], []
        for width, blocks in itertools.groupby(block_widths):
            widths.append(width)
            depths.append(len(list(blocks)))
        group_widths = []
        for i, width in enumerate(widths):
            inner = int(width * bottleneck_multiplier)
            group_widths.append(min(group_width, inner))
            inner = _make_divisible(inner, group_widths[i])  # whole groups
            widths[i] = int(inner / bottleneck_multiplier)
        strides, multipliers = [2] * len(widths), [bottleneck_multiplier] * len(widths)
        return cls(depths, widths, group_widths, multipliers, strides, se_ratio)


class RegNet(nn.Module):
    """A convolution, stages of bottlenecks, a mean and a linear layer.

    Args:
        block_params: the stages.
        num_classes: size of the result.
        stem_width: channels after the first convolution.
        stem_type: makes the first convolution, by default SimpleStemIN.
        block_type: makes a block, by default ResBottleneckBlock.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d.
        activation: makes an activation, by default ReLU.
    """

    def __init__(
        self,
        block_params: BlockParams,
        num_classes: int = 1000,
        stem_width: int = 32,
        stem_type: MakeLayer | None = None,
        block_type: MakeLayer | None = None,
        norm_layer: MakeLayer | None = None,
        activation: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        activation = activation or nn.ReLU
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, norm_layer, activation)
        width = stem_width
        stages: OrderedDict[str, nn.Module] = OrderedDict()
        rows = zip(
            block_params.widths,
            block_params.strides,
            block_params.depths,
            block_params.group_widths,
            block_params.bottleneck_multipliers,
            strict=True,
        )
        for i, (width_out, stride, depth, group_width, multiplier) in enumerate(rows, 1):
            stages[f"block{i}"] = AnyStage(
                width,
                width_out,
                stride,
                depth,
                block_type or ResBottleneckBlock,
                norm_layer,
                activation,
                group_width,
                multiplier,
                block_params.se_ratio,
                stage_index=i,
            )
            width = width_out
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width, num_classes)

        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):  # by the fan out of a convolution without groups
                fan_out = math.prod(layer.kernel_size) * layer.out_channels
                nn.init.normal_(layer.weight, mean=0.0, std=math.sqrt(2.0 / fan_out))
            elif isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.normal_(layer.weight, mean=0.0, std=0.01)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.trunk_output(self.stem(x)))
        return self.fc(x.flatten(start_dim=1))


def _make(*numbers: Any, se_ratio: float | None = None, **kwargs: Any) -> RegNet:
    """Makes the network that the numbers of BlockParams.from_init_params describe."""
    return RegNet(BlockParams.from_init_params(*numbers, se_ratio=se_ratio), **kwargs)


class RegNet_Y_400MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_y_400mf-c65dace8.pth")
    IMAGENET1K_V2 = published("regnet_y_400mf-e6988f5f.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_800MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_y_800mf-1b27b58c.pth")
    IMAGENET1K_V2 = published("regnet_y_800mf-58fc7688.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_1_6GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_y_1_6gf-b11a554e.pth")
    IMAGENET1K_V2 = published("regnet_y_1_6gf-0d7bc02a.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_3_2GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_y_3_2gf-b5a9779c.pth")
    IMAGENET1K_V2 = published("regnet_y_3_2gf-9180c971.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_8GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_y_8gf-d0d0e4a8.pth")
    IMAGENET1K_V2 = published("regnet_y_8gf-dc2b1b54.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_16GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_y_16gf-9e6ed7dd.pth")
    IMAGENET1K_V2 = published("regnet_y_16gf-3e4a00f9.pth")
    IMAGENET1K_SWAG_E2E_V1 = published("regnet_y_16gf_swag-43afe44d.pth")
    IMAGENET1K_SWAG_LINEAR_V1 = published("regnet_y_16gf_lc_swag-f3ec0043.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_32GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_y_32gf-4dee3f7a.pth")
    IMAGENET1K_V2 = published("regnet_y_32gf-8db6d4b5.pth")
    IMAGENET1K_SWAG_E2E_V1 = published("regnet_y_32gf_swag-04fdfa75.pth")
    IMAGENET1K_SWAG_LINEAR_V1 = published("regnet_y_32gf_lc_swag-e1583746.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_128GF_Weights(WeightsEnum):
    IMAGENET1K_SWAG_E2E_V1 = published("regnet_y_128gf_swag-c8ce3e52.pth")
    IMAGENET1K_SWAG_LINEAR_V1 = published("regnet_y_128gf_lc_swag-cbe8ce12.pth")
    DEFAULT = IMAGENET1K_SWAG_E2E_V1


class RegNet_X_400MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_x_400mf-adf1edd5.pth")
    IMAGENET1K_V2 = published("regnet_x_400mf-62229a5f.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_X_800MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_x_800mf-ad17e45c.pth")
    IMAGENET1K_V2 = published("regnet_x_800mf-94a99ebd.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_X_1_6GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_x_1_6gf-e3633e7f.pth")
    IMAGENET1K_V2 = published("regnet_x_1_6gf-a12f2b72.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_X_3_2GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_x_3_2gf-f342aeae.pth")
    IMAGENET1K_V2 = published("regnet_x_3_2gf-7071aa85.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_X_8GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_x_8gf-03ceed89.pth")
    IMAGENET1K_V2 = published("regnet_x_8gf-2b70d774.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_X_16GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_x_16gf-2007eb11.pth")
    IMAGENET1K_V2 = published("regnet_x_16gf-ba3796d7.pth")
    DEFAULT = IMAGENET1K_V2


class RegNet_X_32GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("regnet_x_32gf-9d47f8d0.pth")
    IMAGENET1K_V2 = published("regnet_x_32gf-6eb8fdc6.pth")
    DEFAULT = IMAGENET1K_V2


@builder(RegNet_Y_400MF_Weights)
def regnet_y_400mf(**kwargs: Any) -> RegNet:
    """RegNet Y, 400 million multiplications and additions."""
    return _make(16, 48, 27.89, 2.09, 8, se_ratio=0.25, **kwargs)


@builder(RegNet_Y_800MF_Weights)
def regnet_y_800mf(**kwargs: Any) -> RegNet:
    """RegNet Y, 800 million multiplications and additions."""
    return _make(14, 56, 38.84, 2.4, 16, se_ratio=0.25, **kwargs)


@builder(RegNet_Y_1_6GF_Weights)
def regnet_y_1_6gf(**kwargs: Any) -> RegNet:
    """RegNet Y, 1.6 billion multiplications and additions."""
    return _make(27, 48, 20.71, 2.65, 24, se_ratio=0.25, **kwargs)


@builder(RegNet_Y_3_2GF_Weights)
def regnet_y_3_2gf(**kwargs: Any) -> RegNet:
    """RegNet Y, 3.2 billion multiplications and additions."""
    return _make(21, 80, 42.63, 2.66, 24, se_ratio=0.25, **kwargs)


@builder(RegNet_Y_8GF_Weights)
def regnet_y_8gf(**kwargs: Any) -> RegNet:
    """RegNet Y, 8 billion multiplications and additions."""
    return _make(17, 192, 76.82, 2.19, 56, se_ratio=0.25, **kwargs)


@builder(RegNet_Y_16GF_Weights)
def regnet_y_16gf(**kwargs: Any) -> RegNet:
    """RegNet Y, 16 billion multiplications and additions."""
    return _make(18, 200, 106.23, 2.48, 112, se_ratio=0.25, **kwargs)


@builder(RegNet_Y_32GF_Weights)
def regnet_y_32gf(**kwargs: Any) -> RegNet:
    """RegNet Y, 32 billion multiplications and additions."""
    return _make(20, 232, 115.89, 2.53, 232, se_ratio=0.25, **kwargs)


@builder(RegNet_Y_128GF_Weights)
def regnet_y_128gf(**kwargs: Any) -> RegNet:
    """RegNet Y, 128 billion multiplications and additions."""
    return _make(27, 456, 160.83, 2.52, 264, se_ratio=0.25, **kwargs)


@builder(RegNet_X_400MF_Weights)
def regnet_x_400mf(**kwargs: Any) -> RegNet:
    """RegNet X, 400 million multiplications and additions."""
    return _make(22, 24, 24.48, 2.54, 16, **kwargs)


@builder(RegNet_X_800MF_Weights)
def regnet_x_800mf(**kwargs: Any) -> RegNet:
    """RegNet X, 800 million multiplications and additions."""
    return _make(16, 56, 35.73, 2.28, 16, **kwargs)


@builder(RegNet_X_1_6GF_Weights)
def regnet_x_1_6gf(**kwargs: Any) -> RegNet:
    """RegNet X, 1.6 billion multiplications and additions."""
    return _make(18, 80, 34.01, 2.25, 24, **kwargs)


@builder(RegNet_X_3_2GF_Weights)
def regnet_x_3_2gf(**kwargs: Any) -> RegNet:
    """RegNet X, 3.2 billion multiplications and additions."""
    return _make(25, 88, 26.31, 2.25, 48, **kwargs)


@builder(RegNet_X_8GF_Weights)
def regnet_x_8gf(**kwargs: Any) -> RegNet:
    """RegNet X, 8 billion multiplications and additions."""
    return _make(23, 80, 49.56, 2.88, 120, **kwargs)


@builder(RegNet_X_16GF_Weights)
def regnet_x_16gf(**kwargs: Any) -> RegNet:
    """RegNet X, 16 billion multiplications and additions."""
    return _make(22, 216, 55.59, 2.1, 128, **kwargs)


@builder(RegNet_X_32GF_Weights)
def regnet_x_32gf(**kwargs: Any) -> RegNet:
    """RegNet X, 32 billion multiplications and additions."""
    return _make(23, 320, 69.86, 2.0, 168, **kwargs)
