"""Swin transformers, v1 and v2.

Liu et al. 2021, Hierarchical Vision Transformer using Shifted Windows: attention within windows of
7x7 places; every second block shifts the windows, so neighbors meet. Liu et al. 2022, Scaling Up
Capacity and Resolution (v2): cosine attention, norms after the branches, and a small network for
the positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._windows import relative_position_index, shifted_window_attention
from rushlight.vision.ops.misc import MLP, Permute
from rushlight.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "SwinTransformer",
    "Swin_B_Weights",
    "Swin_S_Weights",
    "Swin_T_Weights",
    "Swin_V2_B_Weights",
    "Swin_V2_S_Weights",
    "Swin_V2_T_Weights",
    "swin_b",
    "swin_s",
    "swin_t",
    "swin_v2_b",
    "swin_v2_s",
    "swin_v2_t",
]

MakeLayer = Callable[..., nn.Module]

# What torch.fx records as one node.
__fx_wrapped__ = {"shifted_window_attention", "_gather_neighbors"}


class ShiftedWindowAttention(nn.Module):
    """Attention within shifted windows, with a learned bias for each distance.

    Args:
        dim: channels.
        window_size: size of a window along each axis.
        shift_size: how far the windows are shifted along each axis.
        num_heads: number of heads.
        qkv_bias: whether the linear layer to queries, keys and values has a bias.
        proj_bias: whether the linear layer after the attention has a bias.
        attention_dropout: probability to zero a weight of the attention.
        dropout: probability to zero an element of the result.
    """

    relative_position_index: Tensor
    _axes = 2

    def __init__(
        self,
        dim: int,
        window_size: list[int],
        shift_size: list[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if len(window_size) != self._axes or len(shift_size) != self._axes:
            raise ValueError(f"window_size and shift_size must be of length {self._axes}")
        self.window_size = window_size
        self.shift_size = shift_size
        self.num_heads = num_heads
        self.attention_dropout = attention_dropout
        self.dropout = dropout
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.define_relative_position_bias_table()
        self.define_relative_position_index()

    def define_relative_position_bias_table(self) -> None:
        """Makes the parameter with a bias for each distance and head."""
        rows = math.prod(2 * size - 1 for size in self.window_size)
        self.relative_position_bias_table = nn.Parameter(rl.zeros(rows, self.num_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def define_relative_position_index(self) -> None:
        """Makes the buffer with the row of the table for each pair of places."""
        index = relative_position_index(self.window_size).flatten()
        self.register_buffer("relative_position_index", index)

    def get_relative_position_bias(self) -> Tensor:
        """Returns the biases of all pairs of places: (1, heads, L, L)."""
        L = math.prod(self.window_size)
        bias = self.relative_position_bias_table[self.relative_position_index]
        return bias.view(L, L, -1).permute(2, 0, 1).contiguous().unsqueeze(0)

    def forward(self, x: Tensor) -> Tensor:
        return shifted_window_attention(
            x,
            self.qkv.weight,
            self.proj.weight,
            self.get_relative_position_bias(),
            self.window_size,
            self.num_heads,
            self.shift_size,
            self.attention_dropout,
            self.dropout,
            self.qkv.bias,
            self.proj.bias,
            training=self.training,
        )


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """Cosine attention within shifted windows; a small network makes the biases of distances."""

    relative_coords_table: Tensor

    def __init__(
        self, dim: int, window_size: list[int], shift_size: list[int], num_heads: int, **kwargs: Any
    ) -> None:
        super().__init__(dim, window_size, shift_size, num_heads, **kwargs)
        self.logit_scale = nn.Parameter(rl.log(10 * rl.ones(num_heads, 1, 1)))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False)
        )

    def define_relative_position_bias_table(self) -> None:
        """Makes the buffer of distances, on a scale of logarithms (the paper's equation 4)."""
        axes = [rl.arange(1 - size, size) / (size - 1) * 8 for size in self.window_size]
        distances = rl.stack(rl.meshgrid(*axes, indexing="ij"), dim=-1).unsqueeze(0)
        logarithms = rl.sign(distances) * rl.log2(distances.abs() + 1.0) / 3.0  # 3 is log2(8)
        self.register_buffer("relative_coords_table", logarithms)

    def get_relative_position_bias(self) -> Tensor:
        """Returns the biases of all pairs of places: (1, heads, L, L), from 0 to 16."""
        L = math.prod(self.window_size)
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        bias = table[self.relative_position_index].view(L, L, -1)
        return 16 * rl.sigmoid(bias.permute(2, 0, 1).contiguous().unsqueeze(0))

    def forward(self, x: Tensor) -> Tensor:
        return shifted_window_attention(
            x,
            self.qkv.weight,
            self.proj.weight,
            self.get_relative_position_bias(),
            self.window_size,
            self.num_heads,
            self.shift_size,
            self.attention_dropout,
            self.dropout,
            self.qkv.bias,
            self.proj.bias,
            self.logit_scale,
            self.training,
        )


# The network


def _gather_neighbors(x: Tensor) -> Tensor:
    """(..., H, W, C) to (..., H / 2, W / 2, 4 C): four neighbors side by side as channels."""
    height, width = x.shape[-3:-1]
    x = F.pad(x, [0, 0, 0, width % 2, 0, height % 2])
    corners = [x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
    return rl.cat(corners, -1)


class PatchMerging(nn.Module):
    """Halves height and width and doubles the channels: norm, then a linear layer."""

    def __init__(self, dim: int, norm_layer: MakeLayer = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduction(self.norm(_gather_neighbors(x)))


class PatchMergingV2(nn.Module):
    """Halves height and width and doubles the channels: a linear layer, then norm."""

    def __init__(self, dim: int, norm_layer: MakeLayer = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.reduction(_gather_neighbors(x)))


class SwinTransformerBlock(nn.Module):
    """Norm, attention and the input; norm, two linear layers and their input.

    Args:
        dim: channels.
        num_heads: number of heads.
        window_size: size of a window along each axis.
        shift_size: how far the windows are shifted along each axis.
        mlp_ratio: how many times wider the middle of the two linear layers is.
        dropout: probability to zero an element after attention and linear layers.
        attention_dropout: probability to zero a weight of the attention.
        stochastic_depth_prob: probability to leave a branch out in training.
        norm_layer: makes a norm from the number of channels.
        attn_layer: makes the attention.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: list[int],
        shift_size: list[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: MakeLayer = nn.LayerNorm,
        attn_layer: MakeLayer = ShiftedWindowAttention,
    ) -> None:
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim,
            window_size,
            shift_size,
            num_heads,
            attention_dropout=attention_dropout,
            dropout=dropout,
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """Attention, norm and the input; two linear layers, norm and their input."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"attn_layer": ShiftedWindowAttentionV2} | kwargs)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


def make_stages(
    embed_dim: int,
    depths: Sequence[int],
    num_heads: Sequence[int],
    window_size: list[int],
    stochastic_depth_prob: float,
    norm_layer: MakeLayer,
    block: MakeLayer,
    downsample_layer: MakeLayer,
    **kwargs: Any,
) -> list[nn.Module]:
    """Returns stages of blocks, every second one shifted by half a window, with halvings between.

    The probability to leave out a block grows from 0 to stochastic_depth_prob.
    """
    shifts = ([0] * len(window_size), [size // 2 for size in window_size])
    layers: list[nn.Module] = []
    total, count = sum(depths), 0
    for i, (depth, heads) in enumerate(zip(depths, num_heads, strict=True)):
        dim = embed_dim * 2**i
        if i > 0:
            layers.append(downsample_layer(dim // 2, norm_layer))
        stage = []
        for j in range(depth):
            stage.append(
                block(
                    dim,
                    heads,
                    window_size=window_size,
                    shift_size=shifts[j % 2],
                    stochastic_depth_prob=stochastic_depth_prob * count / (total - 1),
                    norm_layer=norm_layer,
                    **kwargs,
                )
            )
            count += 1
        layers.append(nn.Sequential(*stage))
    return layers


def init_linear_layers(model: nn.Module) -> None:
    """Initializes the linear layers of a Swin transformer."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class SwinTransformer(nn.Module):
    """Patches, stages of blocks with halvings between them, a mean and a linear layer.

    Args:
        patch_size: height and width of a patch in pixels.
        embed_dim: channels of the first stage; each of the next has twice as many.
        depths: number of blocks in each stage.
        num_heads: number of heads in each stage.
        window_size: height and width of a window in places.
        mlp_ratio: how many times wider the middle of a block's linear layers is.
        dropout: probability to zero an element after attention and linear layers.
        attention_dropout: probability to zero a weight of the attention.
        stochastic_depth_prob: probability to leave out the last block in training.
        num_classes: size of the result.
        norm_layer: makes a norm from the number of channels, by default LayerNorm.
        block: makes a block, by default SwinTransformerBlock.
        downsample_layer: makes what halves height and width.
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
        num_classes: int = 1000,
        norm_layer: MakeLayer | None = None,
        block: MakeLayer | None = None,
        downsample_layer: MakeLayer = PatchMerging,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-5)
        height, width = patch_size
        patches = nn.Sequential(
            nn.Conv2d(3, embed_dim, kernel_size=(height, width), stride=(height, width)),
            Permute([0, 2, 3, 1]),  # (N, H, W, C)
            norm_layer(embed_dim),
        )
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
        )
        features = embed_dim * 2 ** (len(depths) - 1)
        self.num_classes = num_classes
        self.features = nn.Sequential(patches, *stages)
        self.norm = norm_layer(features)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(features, num_classes)
        init_linear_layers(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


def _make(
    embed_dim: int, middle: int, heads: int, window: int, prob: float, **kwargs: Any
) -> SwinTransformer:
    """Four stages, of which the third has `middle` blocks and the others two."""
    kwargs.setdefault("stochastic_depth_prob", prob)
    return SwinTransformer(
        patch_size=[4, 4],
        embed_dim=embed_dim,
        depths=[2, 2, middle, 2],
        num_heads=[heads, 2 * heads, 4 * heads, 8 * heads],
        window_size=[window, window],
        **kwargs,
    )


_V2 = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}


class Swin_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("swin_t-704ceda3.pth")
    DEFAULT = IMAGENET1K_V1


class Swin_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("swin_s-5e29d889.pth")
    DEFAULT = IMAGENET1K_V1


class Swin_B_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("swin_b-68c6b09e.pth")
    DEFAULT = IMAGENET1K_V1


class Swin_V2_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("swin_v2_t-b137f0e2.pth")
    DEFAULT = IMAGENET1K_V1


class Swin_V2_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("swin_v2_s-637d8ceb.pth")
    DEFAULT = IMAGENET1K_V1


class Swin_V2_B_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("swin_v2_b-781e5279.pth")
    DEFAULT = IMAGENET1K_V1


@builder(Swin_T_Weights)
def swin_t(**kwargs: Any) -> SwinTransformer:
    """Swin transformer, tiny."""
    return _make(96, 6, 3, 7, 0.2, **kwargs)


@builder(Swin_S_Weights)
def swin_s(**kwargs: Any) -> SwinTransformer:
    """Swin transformer, small."""
    return _make(96, 18, 3, 7, 0.3, **kwargs)


@builder(Swin_B_Weights)
def swin_b(**kwargs: Any) -> SwinTransformer:
    """Swin transformer, base."""
    return _make(128, 18, 4, 7, 0.5, **kwargs)


@builder(Swin_V2_T_Weights)
def swin_v2_t(**kwargs: Any) -> SwinTransformer:
    """Swin transformer v2, tiny."""
    return _make(96, 6, 3, 8, 0.2, **_V2 | kwargs)


@builder(Swin_V2_S_Weights)
def swin_v2_s(**kwargs: Any) -> SwinTransformer:
    """Swin transformer v2, small."""
    return _make(96, 18, 3, 8, 0.3, **_V2 | kwargs)


@builder(Swin_V2_B_Weights)
def swin_v2_b(**kwargs: Any) -> SwinTransformer:
    """Swin transformer v2, base."""
    return _make(128, 18, 4, 8, 0.5, **_V2 | kwargs)
