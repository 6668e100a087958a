"""ConvNeXt: Liu et al. 2022, A ConvNet for the 2020s.

A residual network with what transformers brought: large depthwise kernels that mix places, linear
layers that mix channels, few norms and activations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.ops.misc import Conv2dNormActivation, Permute
from rushlight.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "ConvNeXt",
    "ConvNeXt_Base_Weights",
    "ConvNeXt_Large_Weights",
    "ConvNeXt_Small_Weights",
    "ConvNeXt_Tiny_Weights",
    "convnext_base",
    "convnext_large",
    "convnext_small",
    "convnext_tiny",
]

MakeLayer = Callable[..., nn.Module]


class LayerNorm2d(nn.LayerNorm):
    """Layer norm over the channels of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        x = input.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A depthwise 7x7 convolution, norm, two linear layers with gelu, and the input.

    Args:
        dim: channels.
        layer_scale: first value of what each channel of the result is multiplied by.
        stochastic_depth_prob: probability to leave the block out in training.
        norm_layer: makes a norm from the number of channels, by default LayerNorm with eps=1e-6.
    """

    def __init__(
        self,
        dim: int,
        layer_scale: float,
        stochastic_depth_prob: float,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim, bias=True),
            Permute([0, 2, 3, 1]),  # (N, H, W, C)
            norm_layer(dim),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(rl.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        result = self.stochastic_depth(self.layer_scale * self.block(input))
        result += input
        return result


class CNBlockConfig:
    """A stage: its channels, those after it (None at the end), the number of its blocks."""

    def __init__(self, input_channels: int, out_channels: int | None, num_layers: int) -> None:
        self.input_channels = input_channels
        self.out_channels = out_channels
        self.num_layers = num_layers

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_channels={self.input_channels}, "
            f"out_channels={self.out_channels}, num_layers={self.num_layers})"
        )


class ConvNeXt(nn.Module):
    """Patches of 4x4 pixels, stages of blocks with halvings between them, a mean, a linear layer.

    Args:
        block_setting: the stages.
        stochastic_depth_prob: probability to leave out the last block in training; those before it
            are left out less, the first never.
        layer_scale: first value of what each channel of a block's result is multiplied by.
        num_classes: size of the result.
        block: makes a block, by default CNBlock.
        norm_layer: makes a norm from the number of channels, by default LayerNorm2d with eps=1e-6.
        **kwargs: ignored, as torchvision does.
    """

    def __init__(
        self,
        block_setting: list[CNBlockConfig],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
        block: MakeLayer | None = None,
        norm_layer: MakeLayer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not isinstance(block_setting, Sequence) or not all(
            isinstance(row, CNBlockConfig) for row in block_setting
        ):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block = block or CNBlock
        norm_layer = norm_layer or partial(LayerNorm2d, eps=1e-6)
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                3,
                block_setting[0].input_channels,
                kernel_size=4,
                stride=4,
                padding=0,
                norm_layer=norm_layer,
                activation_layer=None,
                bias=True,
            )
        ]
        total = sum(row.num_layers for row in block_setting)
        count = 0
        for row in block_setting:
            width = row.input_channels
            stage: list[nn.Module] = []
            for _ in range(row.num_layers):
                prob = stochastic_depth_prob * count / (total - 1.0)
                stage.append(block(width, layer_scale, prob))
                count += 1
            layers.append(nn.Sequential(*stage))
            if row.out_channels is not None:
                halve = nn.Conv2d(width, row.out_channels, kernel_size=2, stride=2)
                layers.append(nn.Sequential(norm_layer(width), halve))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = block_setting[-1]
        width = last.input_channels if last.out_channels is None else last.out_channels
        self.classifier = nn.Sequential(
            norm_layer(width), nn.Flatten(1), nn.Linear(width, num_classes)
        )
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))


def _make(widths: list[int], depths: list[int], **kwargs: Any) -> ConvNeXt:
    following = [*widths[1:], None]
    rows = [CNBlockConfig(*row) for row in zip(widths, following, depths, strict=True)]
    return ConvNeXt(rows, **kwargs)


class ConvNeXt_Tiny_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("convnext_tiny-983f1562.pth")
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Small_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("convnext_small-0c510722.pth")
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Base_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("convnext_base-6075fbad.pth")
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Large_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("convnext_large-ea097f82.pth")
    DEFAULT = IMAGENET1K_V1


@builder(ConvNeXt_Tiny_Weights)
def convnext_tiny(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, tiny."""
    return _make([96, 192, 384, 768], [3, 3, 9, 3], **{"stochastic_depth_prob": 0.1} | kwargs)


@builder(ConvNeXt_Small_Weights)
def convnext_small(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, small."""
    return _make([96, 192, 384, 768], [3, 3, 27, 3], **{"stochastic_depth_prob": 0.4} | kwargs)


@builder(ConvNeXt_Base_Weights)
def convnext_base(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, base."""
    return _make([128, 256, 512, 1024], [3, 3, 27, 3], **{"stochastic_depth_prob": 0.5} | kwargs)


@builder(ConvNeXt_Large_Weights)
def convnext_large(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, large."""
    return _make([192, 384, 768, 1536], [3, 3, 27, 3], **{"stochastic_depth_prob": 0.5} | kwargs)
