"""The vision transformer: Dosovitskiy et al. 2020, An Image is Worth 16x16 Words.

An image is cut into patches, each becomes a vector, and a transformer's encoder reads them as it
would read words. What it makes of one more, learned vector is classified.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import _ovewrite_named_param
from rushlight.vision.ops._older_names import OlderNames
from rushlight.vision.ops.misc import MLP, Conv2dNormActivation

__all__ = [
    "ViT_B_16_Weights",
    "ViT_B_32_Weights",
    "ViT_H_14_Weights",
    "ViT_L_16_Weights",
    "ViT_L_32_Weights",
    "VisionTransformer",
    "vit_b_16",
    "vit_b_32",
    "vit_h_14",
    "vit_l_16",
    "vit_l_32",
]

MakeLayer = Callable[..., nn.Module]

__fx_wrapped__ = {"_check_size"}  # torch.fx records it as one node

_norm: MakeLayer = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """A convolution of a stem that replaces the cut into patches (Xiao et al. 2021)."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: MakeLayer = nn.BatchNorm2d
    activation_layer: MakeLayer = nn.ReLU


class MLPBlock(OlderNames, MLP):
    """Two linear layers with gelu between them."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, dropout=dropout)
        for layer in self.modules():
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.xavier_uniform_(layer.weight)
                nn.init.normal_(layer.bias, std=1e-6)

    def _older_names(self) -> Iterable[tuple[str, str]]:
        return (("linear_1", "0"), ("linear_2", "3"))


class EncoderBlock(nn.Module):
    """Norm, attention and the input; norm, two linear layers and their input."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: MakeLayer = _norm,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Learned vectors that tell the places, then blocks, then a norm."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: MakeLayer = _norm,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(rl.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for i in range(num_layers):
            layers[f"encoder_layer_{i}"] = EncoderBlock(
                num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
            )
        self.layers = nn.Sequential(layers)
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """Patches, an encoder over them and a class token, a linear layer.

    Args:
        image_size: height and width of the images, in pixels.
        patch_size: height and width of a patch, which divides image_size.
        num_layers: number of blocks.
        num_heads: number of heads of the attention.
        hidden_dim: features of a patch.
        mlp_dim: features between a block's two linear layers.
        dropout: probability to zero an element after attention, linear layers and the places.
        attention_dropout: probability to zero a weight of the attention.
        num_classes: size of the result.
        representation_size: features of one more layer before the last; None leaves it out.
        norm_layer: makes a norm from the number of features.
        conv_stem_configs: convolutions that replace the cut into patches.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: MakeLayer = _norm,
        conv_stem_configs: list[ConvStemConfig] | None = None,
    ) -> None:
        super().__init__()
        if image_size % patch_size != 0:
            raise AssertionError("Input shape indivisible by patch size!")
        self.image_size = image_size
        self.patch_size = patch_size
        self.hidden_dim = hidden_dim
        self.mlp_dim = mlp_dim
        self.attention_dropout = attention_dropout
        self.dropout = dropout
        self.num_classes = num_classes
        self.representation_size = representation_size
        self.norm_layer = norm_layer
        self.conv_proj = (
            nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
            if conv_stem_configs is None
            else _make_stem(conv_stem_configs, hidden_dim)
        )
        self.class_token = nn.Parameter(rl.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            self.seq_length,
            num_layers,
            num_heads,
            hidden_dim,
            mlp_dim,
            dropout,
            attention_dropout,
            norm_layer,
        )
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        width = hidden_dim
        if representation_size is not None:
            heads["pre_logits"] = nn.Linear(width, representation_size)
            heads["act"] = nn.Tanh()
            width = representation_size
        heads["head"] = nn.Linear(width, num_classes)
        self.heads = nn.Sequential(heads)
        self._init_weights()

    def _init_weights(self) -> None:
        if isinstance(self.conv_proj, nn.Conv2d):
            _init_by_fan_in(self.conv_proj)
        else:
            last: Any = self.conv_proj.conv_last
            nn.init.normal_(last.weight, std=math.sqrt(2 / last.out_channels))
            nn.init.zeros_(last.bias)
        if self.representation_size is not None:
            _init_by_fan_in(self.heads.pre_logits)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def _process_input(self, x: Tensor) -> Tensor:
        """(N, 3, H, W) to a sequence of patches (N, H * W / patch_size ** 2, hidden_dim)."""
        _check_size(x, self.image_size)
        return self.conv_proj(x).flatten(2).permute(0, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        patches = self._process_input(x)
        token = self.class_token.expand(patches.shape[0], -1, -1)
        x = self.encoder(rl.cat([token, patches], dim=1))
        return self.heads(x[:, 0])


def _check_size(x: Tensor, image_size: int) -> None:
    height, width = x.shape[-2:]
    if (height, width) != (image_size, image_size):
        raise AssertionError(
            f"VisionTransformer: the images are {height} x {width}, but the model was made for "
            f"image_size={image_size}. Resize them, or see interpolate_embeddings."
        )


def _make_stem(configs: list[ConvStemConfig], hidden_dim: int) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    channels = 3
    for i, config in enumerate(configs):
        layers[f"conv_bn_relu_{i}"] = Conv2dNormActivation(
            channels,
            config.out_channels,
            config.kernel_size,
            config.stride,
            norm_layer=config.norm_layer,
            activation_layer=config.activation_layer,
        )
        channels = config.out_channels
    layers["conv_last"] = nn.Conv2d(channels, hidden_dim, kernel_size=1)
    return nn.Sequential(layers)


def _init_by_fan_in(layer: Any) -> None:
    fan_in = layer.weight[0].numel()
    nn.init.trunc_normal_(layer.weight, std=math.sqrt(1 / fan_in))
    nn.init.zeros_(layer.bias)


def _make(
    patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, **kwargs: Any
) -> VisionTransformer:
    image_size = kwargs.pop("image_size", 224)
    return VisionTransformer(
        image_size, patch_size, num_layers, num_heads, hidden_dim, 4 * hidden_dim, **kwargs
    )


def _adapt(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    _ovewrite_named_param(kwargs, "image_size", weights.meta["min_size"][0])


class ViT_B_16_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vit_b_16-c867db91.pth")
    IMAGENET1K_SWAG_E2E_V1 = published("vit_b_16_swag-9ac1b537.pth")
    IMAGENET1K_SWAG_LINEAR_V1 = published("vit_b_16_lc_swag-4e70ced5.pth")
    DEFAULT = IMAGENET1K_V1


class ViT_B_32_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vit_b_32-d86f8d99.pth")
    DEFAULT = IMAGENET1K_V1


class ViT_L_16_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vit_l_16-852ce7e3.pth")
    IMAGENET1K_SWAG_E2E_V1 = published("vit_l_16_swag-4f3808c9.pth")
    IMAGENET1K_SWAG_LINEAR_V1 = published("vit_l_16_lc_swag-4d563306.pth")
    DEFAULT = IMAGENET1K_V1


class ViT_L_32_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("vit_l_32-c7638314.pth")
    DEFAULT = IMAGENET1K_V1


class ViT_H_14_Weights(WeightsEnum):
    IMAGENET1K_SWAG_E2E_V1 = published("vit_h_14_swag-80465313.pth")
    IMAGENET1K_SWAG_LINEAR_V1 = published("vit_h_14_lc_swag-c1eb923e.pth")
    DEFAULT = IMAGENET1K_SWAG_E2E_V1


@builder(ViT_B_16_Weights, adapt=_adapt)
def vit_b_16(**kwargs: Any) -> VisionTransformer:
    """The base vision transformer, with patches of 16x16 pixels."""
    return _make(16, 12, 12, 768, **kwargs)


@builder(ViT_B_32_Weights, adapt=_adapt)
def vit_b_32(**kwargs: Any) -> VisionTransformer:
    """The base vision transformer, with patches of 32x32 pixels."""
    return _make(32, 12, 12, 768, **kwargs)


@builder(ViT_L_16_Weights, adapt=_adapt)
def vit_l_16(**kwargs: Any) -> VisionTransformer:
    """The large vision transformer, with patches of 16x16 pixels."""
    return _make(16, 24, 16, 1024, **kwargs)


@builder(ViT_L_32_Weights, adapt=_adapt)
def vit_l_32(**kwargs: Any) -> VisionTransformer:
    """The large vision transformer, with patches of 32x32 pixels."""
    return _make(32, 24, 16, 1024, **kwargs)


@builder(ViT_H_14_Weights, adapt=_adapt)
def vit_h_14(**kwargs: Any) -> VisionTransformer:
    """The huge vision transformer, with patches of 14x14 pixels."""
    return _make(14, 32, 16, 1280, **kwargs)


def interpolate_embeddings(
    image_size: int,
    patch_size: int,
    model_state: OrderedDict[str, Tensor],
    interpolation_mode: str = "bicubic",
    reset_heads: bool = False,
) -> OrderedDict[str, Tensor]:
    """Returns a model's weights for images of another size: the places are interpolated.

    Args:
        image_size: height and width of the new images.
        patch_size: height and width of a patch.
        model_state: state_dict of a VisionTransformer; its places are replaced.
        interpolation_mode: as in nn.functional.interpolate.
        reset_heads: whether to leave out the last layers' weights, if there are other places.

    Raises:
        ValueError: if the places are not those of a square.
    """
    places = model_state["encoder.pos_embedding"]
    if places.shape[0] != 1:
        raise ValueError(f"Unexpected position embedding shape: {places.shape}")
    old_length, side = places.shape[1] - 1, image_size // patch_size
    if side**2 == old_length:
        return model_state
    old_side = math.isqrt(old_length)
    if old_side**2 != old_length:
        raise ValueError(
            "seq_length is not a perfect square! Instead got seq_length_1d * seq_length_1d = "
            f"{old_side**2} and seq_length = {old_length}"
        )
    grid = places[:, 1:].permute(0, 2, 1).unflatten(2, (old_side, old_side))
    grid = F.interpolate(grid, size=side, mode=interpolation_mode, align_corners=True)
    grid = grid.flatten(2).permute(0, 2, 1)  # (1, side * side, hidden_dim)
    model_state["encoder.pos_embedding"] = rl.cat([places[:, :1], grid], dim=1)
    if not reset_heads:
        return model_state
    return OrderedDict(
        (name, value) for name, value in model_state.items() if not name.startswith("heads")
    )
