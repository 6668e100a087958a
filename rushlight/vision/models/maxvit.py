"""MaxViT: Tu et al. 2022, Multi-Axis Vision Transformer.

Each layer: a mobile convolution, attention within windows, then attention along a grid, whose
places lie a window's distance apart, so that all places meet at a linear cost.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _ovewrite_named_param
from rushlight.vision.models._windows import relative_position_index
from rushlight.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from rushlight.vision.ops.stochastic_depth import StochasticDepth

__all__ = ["MaxVit", "MaxVit_T_Weights", "maxvit_t"]

MakeLayer = Callable[..., nn.Module]


def _halve(size: tuple[int, int]) -> tuple[int, int]:
    """The size after a 3x3 convolution with stride 2 and padding 1."""
    return (size[0] - 1) // 2 + 1, (size[1] - 1) // 2 + 1


class MBConv(nn.Module):
    """Norm, 1x1 to more channels, depthwise 3x3, squeeze-excitation, 1x1 to few; and the input."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        expansion_ratio: float,
        squeeze_ratio: float,
        stride: int,
        activation_layer: MakeLayer,
        norm_layer: MakeLayer,
        p_stochastic_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.proj: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            match = nn.Conv2d(in_channels, out_channels, kernel_size=1)
            pool = [nn.AvgPool2d(kernel_size=3, stride=2, padding=1)] if stride == 2 else []
            self.proj = nn.Sequential(*pool, match)
        width = int(out_channels * expansion_ratio)
        squeezed = int(out_channels * squeeze_ratio)
        self.stochastic_depth = (
            StochasticDepth(p_stochastic_dropout, mode="row")
            if p_stochastic_dropout
            else nn.Identity()
        )
        conv = partial(
            Conv2dNormActivation,
            norm_layer=norm_layer,
            activation_layer=activation_layer,
            inplace=None,
        )
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["pre_norm"] = norm_layer(in_channels)
        layers["conv_a"] = conv(in_channels, width, kernel_size=1)
        layers["conv_b"] = conv(width, width, kernel_size=3, stride=stride, groups=width)
        layers["squeeze_excitation"] = SqueezeExcitation(width, squeezed, activation=nn.SiLU)
        layers["conv_c"] = nn.Conv2d(width, out_channels, kernel_size=1)
        self.layers = nn.Sequential(layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x) + self.stochastic_depth(self.layers(x))


class RelativePositionalMultiHeadAttention(nn.Module):
    """Attention among the places of each group, with a learned bias for each distance.

    Args:
        feat_dim: channels.
        head_dim: channels of a head.
        max_seq_len: places of a group, a square number.
    """

    relative_position_index: Tensor

    def __init__(self, feat_dim: int, head_dim: int, max_seq_len: int) -> None:
        super().__init__()
        if feat_dim % head_dim != 0:
            raise ValueError(f"feat_dim: {feat_dim} must be divisible by head_dim: {head_dim}")
        self.n_heads = feat_dim // head_dim
        self.head_dim = head_dim
        self.size = math.isqrt(max_seq_len)
        self.max_seq_len = max_seq_len
        self.to_qkv = nn.Linear(feat_dim, feat_dim * 3)
        self.scale_factor = feat_dim**-0.5
        self.merge = nn.Linear(feat_dim, feat_dim)
        rows = (2 * self.size - 1) ** 2
        self.relative_position_bias_table = nn.Parameter(rl.empty(rows, self.n_heads))
        self.register_buffer(
            "relative_position_index", relative_position_index([self.size, self.size])
        )
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def get_relative_positional_bias(self) -> Tensor:
        """Returns the biases of all pairs of places: (1, heads, P, P)."""
        bias = self.relative_position_bias_table[self.relative_position_index]
        return bias.permute(2, 0, 1).contiguous().unsqueeze(0)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.to_qkv(x).unflatten(-1, (3, self.n_heads, self.head_dim))
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5).unbind()  # each (N, groups, heads, P, head_dim)
        bias = self.get_relative_positional_bias()
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scale_factor)
        return self.merge(out.transpose(2, 3).flatten(3))


class SwapAxes(nn.Module):
    """The input with two dimensions swapped."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.a = a
        self.b = b

    def forward(self, x: Tensor) -> Tensor:
        return rl.swapaxes(x, self.a, self.b)


class WindowPartition(nn.Module):
    """(N, C, H, W) to (N, windows, p * p, C)."""

    def forward(self, x: Tensor, p: int) -> Tensor:
        N, C, H, W = x.shape
        x = x.reshape(N, C, H // p, p, W // p, p).permute(0, 2, 4, 3, 5, 1)
        return x.reshape(N, (H // p) * (W // p), p * p, C)


class WindowDepartition(nn.Module):
    """(N, windows, p * p, C) to (N, C, H, W)."""

    def forward(self, x: Tensor, p: int, h_partitions: int, w_partitions: int) -> Tensor:
        N, _, _, C = x.shape
        x = x.reshape(N, h_partitions, w_partitions, p, p, C).permute(0, 5, 1, 3, 2, 4)
        return x.reshape(N, C, h_partitions * p, w_partitions * p)


class PartitionAttentionLayer(nn.Module):
    """Attention within groups of places, then two linear layers.

    Args:
        in_channels: channels.
        head_dim: channels of a head.
        partition_size: height and width of a group, in places.
        partition_type: "window" groups neighbors, "grid" places that lie a group apart.
        grid_size: height and width of the input.
        mlp_ratio: how many times wider the middle of the two linear layers is.
        activation_layer: makes the activation between them.
        norm_layer: makes the norm before the attention.
        attention_dropout: probability to zero an element after the attention.
        mlp_dropout: probability to zero an element after the linear layers.
        p_stochastic_dropout: probability to leave a branch out in training.
    """

    def __init__(
        self,
        in_channels: int,
        head_dim: int,
        partition_size: int,
        partition_type: str,
        grid_size: tuple[int, int],
        mlp_ratio: int,
        activation_layer: MakeLayer,
        norm_layer: MakeLayer,
        attention_dropout: float,
        mlp_dropout: float,
        p_stochastic_dropout: float,
    ) -> None:
        super().__init__()
        if partition_type not in ("grid", "window"):
            raise ValueError("partition_type must be either 'grid' or 'window'")
        self.n_heads = in_channels // head_dim
        self.head_dim = head_dim
        self.n_partitions = grid_size[0] // partition_size
        self.partition_type = partition_type
        self.grid_size = grid_size
        is_grid = partition_type == "grid"
        self.p, self.g = partition_size, self.n_partitions
        if is_grid:  # windows as many places apart as a group is to hold, then turned inside out
            self.p, self.g = self.g, self.p
        self.partition_op = WindowPartition()
        self.departition_op = WindowDepartition()
        self.partition_swap = SwapAxes(-2, -3) if is_grid else nn.Identity()
        self.departition_swap = SwapAxes(-2, -3) if is_grid else nn.Identity()
        self.attn_layer = nn.Sequential(
            norm_layer(in_channels),
            RelativePositionalMultiHeadAttention(in_channels, head_dim, partition_size**2),
            nn.Dropout(attention_dropout),
        )
        self.mlp_layer = nn.Sequential(
            nn.LayerNorm(in_channels),
            nn.Linear(in_channels, in_channels * mlp_ratio),
            activation_layer(),
            nn.Linear(in_channels * mlp_ratio, in_channels),
            nn.Dropout(mlp_dropout),
        )
        self.stochastic_dropout = StochasticDepth(p_stochastic_dropout, mode="row")

    def forward(self, x: Tensor) -> Tensor:
        height, width = self.grid_size
        if height % self.p or width % self.p:
            raise AssertionError(
                "Grid size must be divisible by partition size. Got grid size of "
                f"{self.grid_size} and partition size of {self.p}"
            )
        x = self.partition_swap(self.partition_op(x, self.p))
        x = x + self.stochastic_dropout(self.attn_layer(x))
        x = x + self.stochastic_dropout(self.mlp_layer(x))
        x = self.departition_swap(x)
        return self.departition_op(x, self.p, height // self.p, width // self.p)


class MaxVitLayer(nn.Module):
    """A mobile convolution, attention within windows, attention along the grid."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        squeeze_ratio: float,
        expansion_ratio: float,
        stride: int,
        norm_layer: MakeLayer,
        activation_layer: MakeLayer,
        head_dim: int,
        mlp_ratio: int,
        mlp_dropout: float,
        attention_dropout: float,
        p_stochastic_dropout: float,
        partition_size: int,
        grid_size: tuple[int, int],
    ) -> None:
        super().__init__()

        def attention(partition_type: str) -> PartitionAttentionLayer:
            return PartitionAttentionLayer(
                out_channels,
                head_dim,
                partition_size,
                partition_type,
                grid_size,
                mlp_ratio,
                activation_layer,
                nn.LayerNorm,
                attention_dropout,
                mlp_dropout,
                p_stochastic_dropout,
            )

        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["MBconv"] = MBConv(
            in_channels,
            out_channels,
            expansion_ratio,
            squeeze_ratio,
            stride,
            activation_layer,
            norm_layer,
            p_stochastic_dropout,
        )
        layers["window_attention"] = attention("window")
        layers["grid_attention"] = attention("grid")
        self.layers = nn.Sequential(layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class MaxVitBlock(nn.Module):
    """Layers of one width; the first halves height and width."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        squeeze_ratio: float,
        expansion_ratio: float,
        norm_layer: MakeLayer,
        activation_layer: MakeLayer,
        head_dim: int,
        mlp_ratio: int,
        mlp_dropout: float,
        attention_dropout: float,
        partition_size: int,
        input_grid_size: tuple[int, int],
        n_layers: int,
        p_stochastic: list[float],
    ) -> None:
        super().__init__()
        if len(p_stochastic) != n_layers:
            raise ValueError(
                f"p_stochastic must have length n_layers={n_layers}, got p_stochastic="
                f"{p_stochastic}."
            )
        self.grid_size = _halve(input_grid_size)
        self.layers = nn.ModuleList(
            MaxVitLayer(
                in_channels if i == 0 else out_channels,
                out_channels,
                squeeze_ratio,
                expansion_ratio,
                2 if i == 0 else 1,
                norm_layer,
                activation_layer,
                head_dim,
                mlp_ratio,
                mlp_dropout,
                attention_dropout,
                prob,
                partition_size,
                self.grid_size,
            )
            for i, prob in enumerate(p_stochastic)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class MaxVit(nn.Module):
    """Two convolutions, blocks of layers, a mean and two linear layers.

    Args:
        input_size: height and width of the images.
        stem_channels: channels of the convolutions.
        partition_size: height and width of a window, in places.
        block_channels: channels of each block.
        block_layers: number of layers in each block.
        head_dim: channels of a head.
        stochastic_depth_prob: probability to leave out the last layer's branches in training;
            those before are left out less, the first never.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d with
            eps=0.001, momentum=0.01.
        activation_layer: makes an activation.
        squeeze_ratio: channels in the middle of squeeze-excitation over those of the result.
        expansion_ratio: how many times wider the middle of a mobile convolution is.
        mlp_ratio: how many times wider the middle of the two linear layers is.
        mlp_dropout: probability to zero an element after the linear layers.
        attention_dropout: probability to zero an element after the attention.
        num_classes: size of the result.
    """

    def __init__(
        self,
        input_size: tuple[int, int],
        stem_channels: int,
        partition_size: int,
        block_channels: list[int],
        block_layers: list[int],
        head_dim: int,
        stochastic_depth_prob: float,
        norm_layer: MakeLayer | None = None,
        activation_layer: MakeLayer = nn.GELU,
        squeeze_ratio: float = 0.25,
        expansion_ratio: float = 4,
        mlp_ratio: int = 4,
        mlp_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        size = _halve(input_size)
        sizes = []  # of the places in each block
        for _ in block_channels:
            sizes.append(_halve(sizes[-1] if sizes else size))
        for i, block_size in enumerate(sizes):
            if block_size[0] % partition_size or block_size[1] % partition_size:
                raise ValueError(
                    f"Input size {block_size} of block {i} is not divisible by partition size "
                    f"{partition_size}. Consider changing the partition size or the input size.\n"
                    f"Current configuration yields the following block input sizes: {sizes}."
                )
        self.stem = nn.Sequential(
            Conv2dNormActivation(
                3,
                stem_channels,
                stride=2,
                norm_layer=norm_layer,
                activation_layer=activation_layer,
                bias=False,
                inplace=None,
            ),
            Conv2dNormActivation(
                stem_channels, stem_channels, norm_layer=None, activation_layer=None, bias=True
            ),
        )
        self.partition_size = partition_size
        self.blocks = nn.ModuleList()
        last = max(sum(block_layers) - 1, 1)
        probs = [stochastic_depth_prob * i / last for i in range(sum(block_layers))]
        channels = stem_channels
        for out_channels, count in zip(block_channels, block_layers, strict=True):
            block = MaxVitBlock(
                channels,
                out_channels,
                squeeze_ratio,
                expansion_ratio,
                norm_layer,
                activation_layer,
                head_dim,
                mlp_ratio,
                mlp_dropout,
                attention_dropout,
                partition_size,
                size,
                count,
                probs[:count],
            )
            self.blocks.append(block)
            probs = probs[count:]
            size = block.grid_size
            channels = out_channels
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.LayerNorm(channels),
            nn.Linear(channels, channels),
            nn.Tanh(),
            nn.Linear(channels, num_classes, bias=False),
        )
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)


def _adapt(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    _ovewrite_named_param(kwargs, "input_size", weights.meta["min_size"])


class MaxVit_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("maxvit_t-bc5ab103.pth")
    DEFAULT = IMAGENET1K_V1


@builder(MaxVit_T_Weights, adapt=_adapt)
def maxvit_t(**kwargs: Any) -> MaxVit:
    """MaxViT, tiny."""
    defaults = {"input_size": (224, 224), "stochastic_depth_prob": 0.2}
    return MaxVit(
        stem_channels=64,
        partition_size=7,
        block_channels=[64, 128, 256, 512],
        block_layers=[2, 2, 5, 2],
        head_dim=32,
        **defaults | kwargs,
    )
