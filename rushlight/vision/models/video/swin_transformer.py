"""Swin transformers for videos: Liu et al. 2021, Video Swin Transformer.

The blocks of the Swin transformer for images, with windows over time, height and width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._windows import relative_position_index, shifted_window_attention
from rushlight.vision.models.swin_transformer import (
    PatchMerging,
    ShiftedWindowAttention,
    SwinTransformerBlock,
    init_linear_layers,
    make_stages,
)

__all__ = [
    "Swin3D_B_Weights",
    "Swin3D_S_Weights",
    "Swin3D_T_Weights",
    "SwinTransformer3d",
    "swin3d_b",
    "swin3d_s",
    "swin3d_t",
]

MakeLayer = Callable[..., nn.Module]

# What torch.fx records as one node.
__fx_wrapped__ = {"_bias_of", "_fit", "_pad_to_patches", "shifted_window_attention"}


class ShiftedWindowAttention3d(ShiftedWindowAttention):
    """Attention within shifted windows; where the input is smaller, so is the window.

    The arguments are those of ShiftedWindowAttention.
    """

    _axes = 3

    def define_relative_position_index(self) -> None:
        """Makes the buffer with the row of the table for each pair of places, (L, L)."""
        self.register_buffer("relative_position_index", relative_position_index(self.window_size))

    def get_relative_position_bias(self, window_size: list[int] | None = None) -> Tensor:
        """Returns the biases of all pairs of places of a window: (1, heads, L, L)."""
        window = self.window_size if window_size is None else window_size
        return _bias_of(self.relative_position_bias_table, self.relative_position_index, window)

    def forward(self, x: Tensor) -> Tensor:
        window, shift = _fit(x, self.window_size, self.shift_size)
        return shifted_window_attention(
            x,
            self.qkv.weight,
            self.proj.weight,
            self.get_relative_position_bias(window),
            window,
            self.num_heads,
            shift,
            self.attention_dropout,
            self.dropout,
            self.qkv.bias,
            self.proj.bias,
            training=self.training,
        )


def _fit(x: Tensor, window_size: list[int], shift_size: list[int]) -> tuple[list[int], list[int]]:
    """Windows no larger than the places, and no shift along an axis that one window fills."""
    sizes = [*zip(x.shape[1:-1], window_size, shift_size, strict=True)]
    window = [min(size, window) for size, window, _ in sizes]
    return window, [0 if size <= window else shift for size, window, shift in sizes]


def _bias_of(table: Tensor, index: Tensor, window_size: list[int]) -> Tensor:
    L = math.prod(window_size)
    return table[index[:L, :L]].permute(2, 0, 1).contiguous().unsqueeze(0)


def _pad_to_patches(x: Tensor, patch_size: tuple[int, int, int]) -> Tensor:
    time, height, width = (-s % p for s, p in zip(x.shape[2:], patch_size, strict=True))
    return F.pad(x, [0, width, 0, height, 0, time])


class PatchEmbed3d(nn.Module):
    """(N, C, T, H, W) cut into patches, each a vector: (N, T', H', W', embed_dim).

    Args:
        patch_size: of a patch along time, height and width; what is missing at the end is zero.
        in_channels: channels of the input.
        embed_dim: features of a patch.
        norm_layer: makes a norm from the number of features; None leaves it out.
    """

    def __init__(
        self,
        patch_size: list[int],
        in_channels: int = 3,
        embed_dim: int = 96,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        time, height, width = patch_size
        self.tuple_patch_size = (time, height, width)
        self.proj = nn.Conv3d(
            in_channels,
            embed_dim,
            kernel_size=self.tuple_patch_size,
            stride=self.tuple_patch_size,
        )
        self.norm = nn.Identity() if norm_layer is None else norm_layer(embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        x = self.proj(_pad_to_patches(x, self.tuple_patch_size))
        return self.norm(x.permute(0, 2, 3, 4, 1))


class SwinTransformer3d(nn.Module):
    """Patches, stages of blocks with halvings between them, a mean and a linear layer.

    Args:
        patch_size: of a patch along time, height and width.
        embed_dim: channels of the first stage; each of the next has twice as many.
        depths: number of blocks in each stage.
        num_heads: number of heads in each stage.
        window_size: of a window along time, height and width.
        mlp_ratio: how many times wider the middle of a block's linear layers is.
        dropout: probability to zero an element after patches, attention and linear layers.
        attention_dropout: probability to zero a weight of the attention.
        stochastic_depth_prob: probability to leave out the last block in training.
        num_classes: size of the result.
        norm_layer: makes a norm from the number of channels, by default LayerNorm.
        block: makes a block, by default SwinTransformerBlock.
        downsample_layer: makes what halves height and width.
        patch_embed: makes the patches, by default PatchEmbed3d.
    """

    def __init__(
        self,
        patch_size: list[int],
        embed_dim: int,
        depths: list[int],
        num_heads: list[int],
        window_size: list[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.1,
        num_classes: int = 400,
        norm_layer: MakeLayer | None = None,
        block: MakeLayer | None = None,
        downsample_layer: MakeLayer = PatchMerging,
        patch_embed: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-5)
        self.num_classes = num_classes
        self.patch_embed = (patch_embed or PatchEmbed3d)(
            patch_size=patch_size, embed_dim=embed_dim, norm_layer=norm_layer
        )
        self.pos_drop = nn.Dropout(p=dropout)
        stages = make_stages(
            embed_dim,
            depths,
            num_heads,
            window_size,
            stochastic_depth_prob,
            norm_layer,
            block or SwinTransformerBlock,
            downsample_layer,
            mlp_ratio=mlp_ratio,
            dropout=dropout,
            attention_dropout=attention_dropout,
            attn_layer=ShiftedWindowAttention3d,
        )
        self.features = nn.Sequential(*stages)
        self.num_features = embed_dim * 2 ** (len(depths) - 1)
        self.norm = norm_layer(self.num_features)
        self.avgpool = nn.AdaptiveAvgPool3d(1)
        self.head = nn.Linear(self.num_features, num_classes)
        init_linear_layers(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(self.pos_drop(self.patch_embed(x)))
        x = self.avgpool(self.norm(x).permute(0, 4, 1, 2, 3))
        return self.head(rl.flatten(x, 1))


def _make(embed_dim: int, middle: int, heads: int, **kwargs: Any) -> SwinTransformer3d:
    """Four stages, of which the third has `middle` blocks and the others two."""
    return SwinTransformer3d(
        patch_size=[2, 4, 4],
        embed_dim=embed_dim,
        depths=[2, 2, middle, 2],
        num_heads=[heads, 2 * heads, 4 * heads, 8 * heads],
        window_size=[8, 7, 7],
        **kwargs,
    )


class Swin3D_T_Weights(WeightsEnum):
    KINETICS400_V1 = published("swin3d_t-7615ae03.pth")
    DEFAULT = KINETICS400_V1


class Swin3D_S_Weights(WeightsEnum):
    KINETICS400_V1 = published("swin3d_s-da41c237.pth")
    DEFAULT = KINETICS400_V1


class Swin3D_B_Weights(WeightsEnum):
    KINETICS400_V1 = published("swin3d_b_1k-24f7c7c6.pth")
    KINETICS400_IMAGENET22K_V1 = published("swin3d_b_22k-7c6ae6fa.pth")
    DEFAULT = KINETICS400_V1


@builder(Swin3D_T_Weights, legacy="KINETICS400_V1")
def swin3d_t(**kwargs: Any) -> SwinTransformer3d:
    """Video Swin transformer, tiny."""
    return _make(96, 6, 3, **kwargs)


@builder(Swin3D_S_Weights, legacy="KINETICS400_V1")
def swin3d_s(**kwargs: Any) -> SwinTransformer3d:
    """Video Swin transformer, small."""
    return _make(96, 18, 3, **kwargs)


@builder(Swin3D_B_Weights, legacy="KINETICS400_V1")
def swin3d_b(**kwargs: Any) -> SwinTransformer3d:
    """Video Swin transformer, base."""
    return _make(128, 18, 4, **kwargs)
