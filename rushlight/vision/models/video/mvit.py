"""Multiscale vision transformers: Fan et al. 2021 (MViT v1) and Li et al. 2021 (v2).

Attention over fewer and fewer places: queries, keys and values are pooled by convolutions, and the
channels double where the queries' places are quartered. v2 tells places by their distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _ovewrite_named_param
from rushlight.vision.models.video._positions import Sizes, relative_positions
from rushlight.vision.ops.misc import MLP
from rushlight.vision.ops.stochastic_depth import StochasticDepth

__all__ = ["MViT", "MViT_V1_B_Weights", "MViT_V2_S_Weights", "mvit_v1_b", "mvit_v2_s"]

MakeLayer = Callable[..., nn.Module]
# What torch.fx records as one node.
__fx_wrapped__ = {"_as_video", "relative_positions", "_to_places", "_to_sequence"}


@dataclass
class MSBlockConfig:
    """A block: its heads and channels, and how it pools queries (q) and keys and values (kv)."""

    num_heads: int
    input_channels: int
    output_channels: int
    kernel_q: list[int]
    kernel_kv: list[int]
    stride_q: list[int]
    stride_kv: list[int]


class Pool(nn.Module):
    """Pools the places of a sequence whose first element, the class token, stays as it is.

    Args:
        pool: what pools (N, C, T, H, W).
        norm: applied to the result; None leaves it out.
        activation: applied to the result; None leaves it out.
        norm_before_pool: whether norm and activation come first.
    """

    def __init__(
        self,
        pool: nn.Module,
        norm: nn.Module | None,
        activation: nn.Module | None = None,
        norm_before_pool: bool = False,
    ) -> None:
        super().__init__()
        self.pool = pool
        layers = [layer for layer in (norm, activation) if layer is not None]
        self.norm_act = nn.Sequential(*layers) if layers else None
        self.norm_before_pool = norm_before_pool

    def forward(self, x: Tensor, thw: Sizes) -> tuple[Tensor, Sizes]:
        places = _to_places(x, thw)
        if self.norm_before_pool and self.norm_act is not None:
            places = self.norm_act(places)
        places = self.pool(places)
        x = _to_sequence(places, x)
        if not self.norm_before_pool and self.norm_act is not None:
            x = self.norm_act(x)
        return x, places.shape[2:]


def _to_places(x: Tensor, thw: Sizes) -> Tensor:
    """(N, 1 + T * H * W, C), or with heads after N, to (N * heads, C, T, H, W)."""
    return x[..., 1:, :].flatten(0, -3).transpose(1, 2).unflatten(2, tuple(thw))


def _to_sequence(places: Tensor, like: Tensor) -> Tensor:
    """The reverse of _to_places, with the class token of another sequence."""
    sequence = places.flatten(2).transpose(1, 2)  # (N * heads, T * H * W, C)
    return rl.cat((like[..., :1, :], sequence.unflatten(0, like.shape[:-2])), dim=-2)


class MultiscaleAttention(nn.Module):
    """Attention with pooled queries, keys and values.

    Args:
        input_size: time, height and width of the input.
        embed_dim: channels of the input.
        output_dim: channels of the result.
        num_heads: number of heads.
        kernel_q: kernel of the convolution that pools queries; empty for none.
        kernel_kv: the same for keys and values.
        stride_q: stride of the convolution that pools queries; empty for none.
        stride_kv: the same for keys and values.
        residual_pool: whether the queries are added to the result.
        residual_with_cls_embed: whether the class token's too.
        rel_pos_embed: whether the products tell the distances between places.
        dropout: probability to zero an element of the result.
        norm_layer: makes a norm from the number of channels.
    """

    def __init__(
        self,
        input_size: list[int],
        embed_dim: int,
        output_dim: int,
        num_heads: int,
        kernel_q: list[int],
        kernel_kv: list[int],
        stride_q: list[int],
        stride_kv: list[int],
        residual_pool: bool,
        residual_with_cls_embed: bool,
        rel_pos_embed: bool,
        dropout: float = 0.0,
        norm_layer: MakeLayer = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.embed_dim = embed_dim
        self.output_dim = output_dim
        self.num_heads = num_heads
        self.head_dim = output_dim // num_heads
        self.residual_pool = residual_pool
        self.residual_with_cls_embed = residual_with_cls_embed
        self.qkv = nn.Linear(embed_dim, 3 * output_dim)
        layers: list[nn.Module] = [nn.Linear(output_dim, output_dim)]
        if dropout > 0.0:
            layers.append(nn.Dropout(dropout, inplace=True))
        self.project = nn.Sequential(*layers)

        def pool(kernel: list[int], stride: list[int]) -> Pool | None:
            if math.prod(kernel) <= 1 and math.prod(stride) <= 1:
                return None
            conv = nn.Conv3d(
                self.head_dim,
                self.head_dim,
                tuple(kernel),
                stride=tuple(stride),
                padding=tuple(size // 2 for size in kernel),
                groups=self.head_dim,
                bias=False,
            )
            return Pool(conv, norm_layer(self.head_dim))

        self.pool_q = pool(kernel_q, stride_q)
        self.pool_k = pool(kernel_kv, stride_kv)
        self.pool_v = pool(kernel_kv, stride_kv)

        self.rel_pos_h: nn.Parameter | None = None
        self.rel_pos_w: nn.Parameter | None = None
        self.rel_pos_t: nn.Parameter | None = None
        if rel_pos_embed:
            size = max(input_size[1:])
            places = max(size // stride[1] if stride else size for stride in (stride_q, stride_kv))
            for name, rows in (("h", places), ("w", places), ("t", input_size[0])):
                table = nn.Parameter(rl.zeros(2 * rows - 1, self.head_dim))
                nn.init.trunc_normal_(table, std=0.02)
                setattr(self, f"rel_pos_{name}", table)

    def forward(self, x: Tensor, thw: Sizes) -> tuple[Tensor, Sizes]:
        qkv = self.qkv(x).unflatten(-1, (3, self.num_heads, self.head_dim))
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()  # each (N, heads, 1 + T * H * W, head_dim)
        q_thw = k_thw = thw
        if self.pool_k is not None and self.pool_v is not None:
            k, k_thw = self.pool_k(k, thw)
            v, _ = self.pool_v(v, thw)
        if self.pool_q is not None:
            q, q_thw = self.pool_q(q, thw)
        mask = None
        if self.rel_pos_t is not None:
            tables: Any = [self.rel_pos_t, self.rel_pos_h, self.rel_pos_w]
            mask = relative_positions(q, q_thw, k_thw, tables)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        if self.residual_pool:
            if self.residual_with_cls_embed:
                x = x + q
            else:
                x = rl.cat((x[:, :, :1], x[:, :, 1:] + q[:, :, 1:]), dim=2)
        return self.project(x.transpose(1, 2).flatten(2)), q_thw


class MultiscaleBlock(nn.Module):
    """Norm, attention and the input; norm, two linear layers and their input.

    Args:
        input_size: time, height and width of the input.
        cnf: heads, channels and pooling.
        residual_pool: whether the queries are added to the attention's result.
        residual_with_cls_embed: whether the class token's too.
        rel_pos_embed: whether the attention tells the distances between places.
        proj_after_attn: whether attention brings the channels to those of the result, as in v2, or
            the two linear layers do.
        dropout: probability to zero an element after attention and linear layers.
        stochastic_depth_prob: probability to leave a branch out in training.
        norm_layer: makes a norm from the number of channels.
    """

    def __init__(
        self,
        input_size: list[int],
        cnf: MSBlockConfig,
        residual_pool: bool,
        residual_with_cls_embed: bool,
        rel_pos_embed: bool,
        proj_after_attn: bool,
        dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: MakeLayer = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.proj_after_attn = proj_after_attn
        self.pool_skip: Pool | None = None
        if math.prod(cnf.stride_q) > 1:
            kernel = [step + 1 if step > 1 else step for step in cnf.stride_q]
            padding = [size // 2 for size in kernel]
            self.pool_skip = Pool(nn.MaxPool3d(kernel, stride=cnf.stride_q, padding=padding), None)  # pyright: ignore[reportArgumentType]
        width = cnf.output_channels if proj_after_attn else cnf.input_channels
        self.norm1 = norm_layer(cnf.input_channels)
        self.norm2 = norm_layer(width)
        self.needs_transposal = isinstance(self.norm1, nn.BatchNorm1d)
        self.attn = MultiscaleAttention(
            input_size,
            cnf.input_channels,
            width,
            cnf.num_heads,
            cnf.kernel_q,
            cnf.kernel_kv,
            cnf.stride_q,
            cnf.stride_kv,
            residual_pool,
            residual_with_cls_embed,
            rel_pos_embed,
            dropout,
            norm_layer,
        )
        self.mlp = MLP(
            width, [4 * width, cnf.output_channels], activation_layer=nn.GELU, dropout=dropout
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.project: nn.Module | None = None
        if cnf.input_channels != cnf.output_channels:
            self.project = nn.Linear(cnf.input_channels, cnf.output_channels)

    def _norm(self, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x.transpose(1, 2)).transpose(1, 2) if self.needs_transposal else norm(x)

    def forward(self, x: Tensor, thw: Sizes) -> tuple[Tensor, Sizes]:
        normed = self._norm(self.norm1, x)
        attended, new_thw = self.attn(normed, thw)
        if self.project is not None and self.proj_after_attn:
            x = self.project(normed)
        if self.pool_skip is not None:
            x, _ = self.pool_skip(x, thw)
        x = x + self.stochastic_depth(attended)
        normed = self._norm(self.norm2, x)
        if self.project is not None and not self.proj_after_attn:
            x = self.project(normed)
        return x + self.stochastic_depth(self.mlp(normed)), new_thw


class PositionalEncoding(nn.Module):
    """Puts the class token first and, without relative positions, adds vectors for the places.

    Args:
        embed_size: channels.
        spatial_size: height and width, in places.
        temporal_size: number of times.
        rel_pos_embed: whether the attention tells the places.
    """

    def __init__(
        self,
        embed_size: int,
        spatial_size: tuple[int, int],
        temporal_size: int,
        rel_pos_embed: bool,
    ) -> None:
        super().__init__()
        self.spatial_size = spatial_size
        self.temporal_size = temporal_size
        self.class_token = nn.Parameter(rl.zeros(embed_size))
        self.spatial_pos: nn.Parameter | None = None
        self.temporal_pos: nn.Parameter | None = None
        self.class_pos: nn.Parameter | None = None
        if not rel_pos_embed:
            self.spatial_pos = nn.Parameter(rl.zeros(math.prod(spatial_size), embed_size))
            self.temporal_pos = nn.Parameter(rl.zeros(temporal_size, embed_size))
            self.class_pos = nn.Parameter(rl.zeros(embed_size))

    def forward(self, x: Tensor) -> Tensor:
        x = rl.cat((self.class_token.expand(x.shape[0], 1, -1), x), dim=1)
        if self.spatial_pos is None or self.temporal_pos is None or self.class_pos is None:
            return x
        places = self.temporal_pos[:, None] + self.spatial_pos[None]  # (T, H * W, C)
        return x + rl.cat((self.class_pos[None], places.flatten(0, 1)), dim=0)


class MViT(nn.Module):
    """Patches, blocks over fewer and fewer places, a linear layer on the class token.

    Args:
        spatial_size: height and width of the videos.
        temporal_size: number of their frames.
        block_setting: the blocks.
        residual_pool: whether the queries are added to each attention's result.
        residual_with_cls_embed: whether the class token's too.
        rel_pos_embed: whether the attention tells the distances between places.
        proj_after_attn: whether attention brings the channels to those of the result, as in v2.
        dropout: probability to zero an element before the last layer.
        attention_dropout: probability to zero an element after attention and linear layers.
        stochastic_depth_prob: probability to leave out the last block in training.
        num_classes: size of the result.
        block: makes a block, by default MultiscaleBlock.
        norm_layer: makes a norm from the number of channels, by default LayerNorm with eps=1e-6.
        patch_embed_kernel: kernel of the convolution that makes patches.
        patch_embed_stride: its stride.
        patch_embed_padding: its padding.
    """

    def __init__(
        self,
        spatial_size: tuple[int, int],
        temporal_size: int,
        block_setting: Sequence[MSBlockConfig],
        residual_pool: bool,
        residual_with_cls_embed: bool,
        rel_pos_embed: bool,
        proj_after_attn: bool,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        num_classes: int = 400,
        block: MakeLayer | None = None,
        norm_layer: MakeLayer | None = None,
        patch_embed_kernel: Sizes = (3, 7, 7),
        patch_embed_stride: Sizes = (2, 4, 4),
        patch_embed_padding: Sizes = (1, 3, 3),
    ) -> None:
        super().__init__()
        if not block_setting:
            raise ValueError("The configuration parameter can't be empty.")
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        first, last = block_setting[0], block_setting[-1]
        self.conv_proj = nn.Conv3d(
            3,
            first.input_channels,
            kernel_size=patch_embed_kernel,
            stride=patch_embed_stride,
            padding=patch_embed_padding,
        )

        def divided(sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
            return [size // stride for size, stride in zip(sizes, strides, strict=True)]

        input_size = divided((temporal_size, *spatial_size), patch_embed_stride)
        self.pos_encoding = PositionalEncoding(
            first.input_channels, (input_size[1], input_size[2]), input_size[0], rel_pos_embed
        )
        self.blocks = nn.ModuleList()
        for i, cnf in enumerate(block_setting):
            self.blocks.append(
                (block or MultiscaleBlock)(
                    input_size=input_size,
                    cnf=cnf,
                    residual_pool=residual_pool,
                    residual_with_cls_embed=residual_with_cls_embed,
                    rel_pos_embed=rel_pos_embed,
                    proj_after_attn=proj_after_attn,
                    dropout=attention_dropout,
                    stochastic_depth_prob=stochastic_depth_prob * i / (len(block_setting) - 1.0),
                    norm_layer=norm_layer,
                )
            )
            if cnf.stride_q:
                input_size = divided(input_size, cnf.stride_q)
        self.norm = norm_layer(last.output_channels)
        self.head = nn.Sequential(
            nn.Dropout(dropout, inplace=True), nn.Linear(last.output_channels, num_classes)
        )
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
            elif isinstance(layer, PositionalEncoding):
                for param in layer.parameters():
                    nn.init.trunc_normal_(param, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_proj(_as_video(x)).flatten(2).transpose(1, 2)  # (N, T * H * W, C)
        x = self.pos_encoding(x)
        thw: Sizes = (self.pos_encoding.temporal_size, *self.pos_encoding.spatial_size)
        for block in self.blocks:
            x, thw = block(x, thw)
        return self.head(self.norm(x)[:, 0])


def _as_video(x: Tensor) -> Tensor:
    """Images are videos of one frame."""
    if x.dim() not in (4, 5):
        raise ValueError(f"Unsupported input dimension {x.shape}")
    return x.unsqueeze(2) if x.dim() == 4 else x


# Blocks that halve height and width and double the heads, among 16.
_HALVING = (1, 3, 14)


def _settings(pools_all: bool) -> list[MSBlockConfig]:
    """The 16 blocks of v1's base model or, where all blocks pool their queries, v2's small one.

    In v1 the linear layers of the block before a halving double the channels, in v2 the halving
    block's attention does.
    """

    def stage(i: int) -> int:
        return sum(i >= start for start in _HALVING)

    rows = []
    for i in range(16):
        halves = i in _HALVING
        step = 8 >> stage(i)  # keys and values always have the same number of places
        plain = [1, 1, 1] if pools_all else []
        rows.append(
            MSBlockConfig(
                num_heads=2 ** stage(i),
                input_channels=96 * 2 ** stage(max(i - 1, 0) if pools_all else i),
                output_channels=96 * 2 ** stage(i if pools_all else i + 1),
                kernel_q=[3, 3, 3] if halves or pools_all else [],
                kernel_kv=[3, 3, 3],
                stride_q=[1, 2, 2] if halves else plain,
                stride_kv=[1, step, step],
            )
        )
    return rows


def _make(is_v2: bool, **kwargs: Any) -> MViT:
    defaults: dict[str, Any] = {
        "spatial_size": (224, 224),
        "temporal_size": 16,
        "residual_pool": is_v2,
        "residual_with_cls_embed": False,
        "rel_pos_embed": is_v2,
        "proj_after_attn": is_v2,
        "stochastic_depth_prob": 0.2,
    }
    return MViT(block_setting=_settings(is_v2), **defaults | kwargs)


def _adapt(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    _ovewrite_named_param(kwargs, "spatial_size", weights.meta["min_size"])
    _ovewrite_named_param(kwargs, "temporal_size", weights.meta["min_temporal_size"])


class MViT_V1_B_Weights(WeightsEnum):
    KINETICS400_V1 = published("mvit_v1_b-dbeb1030.pth")
    DEFAULT = KINETICS400_V1


class MViT_V2_S_Weights(WeightsEnum):
    KINETICS400_V1 = published("mvit_v2_s-ae3be167.pth")
    DEFAULT = KINETICS400_V1


@builder(MViT_V1_B_Weights, adapt=_adapt, legacy="KINETICS400_V1")
def mvit_v1_b(**kwargs: Any) -> MViT:
    """MViT v1, base, for 16 frames of 224 x 224 pixels."""
    return _make(False, **kwargs)


@builder(MViT_V2_S_Weights, adapt=_adapt, legacy="KINETICS400_V1")
def mvit_v2_s(**kwargs: Any) -> MViT:
    """MViT v2, small, for 16 frames of 224 x 224 pixels."""
    return _make(True, **kwargs)
