"""RAFT: Teed and Deng 2020, Recurrent All-Pairs Field Transforms for Optical Flow.

All pairs of places of the two images are compared once; a recurrent cell looks the comparisons up
around the present estimate of the flow, again and again, and corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models.optical_flow._places import CorrBlock, make_places, upsample
from rushlight.vision.ops.misc import Conv2dNormActivation

__all__ = ["RAFT", "Raft_Large_Weights", "Raft_Small_Weights", "raft_large", "raft_small"]

MakeLayer = Callable[..., nn.Module]


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with relu, and the input.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        norm_layer: makes a norm from the number of channels; None leaves it out.
        stride: of the first convolution.
        always_project: whether a 1x1 convolution stands on the input's way at stride 1 too.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        norm_layer: MakeLayer | None,
        stride: int = 1,
        always_project: bool = False,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"norm_layer": norm_layer, "bias": True}
        self.convnormrelu1 = Conv2dNormActivation(
            in_channels, out_channels, stride=stride, **options
        )
        self.convnormrelu2 = Conv2dNormActivation(out_channels, out_channels, **options)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or always_project:
            self.downsample = Conv2dNormActivation(
                in_channels, out_channels, 1, stride, activation_layer=None, **options
            )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.convnormrelu2(self.convnormrelu1(x))
        return self.relu(self.downsample(x) + y)


class BottleneckBlock(nn.Module):
    """A 3x3 convolution on a quarter of the channels between two 1x1 ones, and the input."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        norm_layer: MakeLayer | None,
        stride: int = 1,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"norm_layer": norm_layer, "bias": True}
        width = out_channels // 4
        self.convnormrelu1 = Conv2dNormActivation(in_channels, width, 1, **options)
        self.convnormrelu2 = Conv2dNormActivation(width, width, 3, stride, **options)
        self.convnormrelu3 = Conv2dNormActivation(width, out_channels, 1, **options)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1:
            self.downsample = Conv2dNormActivation(
                in_channels, out_channels, 1, stride, activation_layer=None, **options
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.convnormrelu3(self.convnormrelu2(self.convnormrelu1(x)))
        return self.relu(self.downsample(x) + y)


class FeatureEncoder(nn.Module):
    """An image to features at an eighth of its size: a convolution and six blocks.

    Args:
        block: makes a block.
        layers: channels after the first convolution, each pair of blocks and the last convolution.
        strides: of the first convolution and each pair of blocks.
        norm_layer: makes a norm from the number of channels; None leaves it out.
    """

    def __init__(
        self,
        *,
        block: MakeLayer = ResidualBlock,
        layers: Sequence[int] = (64, 64, 96, 128, 256),
        strides: Sequence[int] = (2, 1, 2, 2),
        norm_layer: MakeLayer | None = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        if len(layers) != 5:
            raise ValueError(f"The expected number of layers is 5, instead got {len(layers)}")

        def two_blocks(i: int) -> nn.Sequential:
            return nn.Sequential(
                block(layers[i - 1], layers[i], norm_layer=norm_layer, stride=strides[i]),
                block(layers[i], layers[i], norm_layer=norm_layer, stride=1),
            )

        self.convnormrelu = Conv2dNormActivation(
            3, layers[0], 7, strides[0], norm_layer=norm_layer, bias=True
        )
        self.layer1 = two_blocks(1)
        self.layer2 = two_blocks(2)
        self.layer3 = two_blocks(3)
        self.conv = nn.Conv2d(layers[3], layers[4], kernel_size=1)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        self.output_dim = layers[-1]
        self.downsample_factor = 2 ** sum(stride == 2 for stride in strides)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(self.layer3(self.layer2(self.layer1(self.convnormrelu(x)))))


class MotionEncoder(nn.Module):
    """The flow and the comparisons around it to features, the flow itself last.

    Args:
        in_channels_corr: channels of the comparisons.
        corr_layers: channels of one or two convolutions on the comparisons.
        flow_layers: channels of two convolutions on the flow.
        out_channels: channels of the result.
    """

    def __init__(
        self,
        *,
        in_channels_corr: int,
        corr_layers: Sequence[int] = (256, 192),
        flow_layers: Sequence[int] = (128, 64),
        out_channels: int = 128,
    ) -> None:
        super().__init__()
        if len(flow_layers) != 2:
            raise ValueError(
                f"The expected number of flow_layers is 2, instead got {len(flow_layers)}"
            )
        if len(corr_layers) not in (1, 2):
            raise ValueError(
                f"The number of corr_layers should be 1 or 2, instead got {len(corr_layers)}"
            )

        def conv(inp: int, oup: int, kernel_size: int) -> nn.Module:
            return Conv2dNormActivation(inp, oup, kernel_size, norm_layer=None)

        self.convcorr1 = conv(in_channels_corr, corr_layers[0], 1)
        self.convcorr2 = (
            conv(corr_layers[0], corr_layers[1], 3) if len(corr_layers) == 2 else nn.Identity()
        )
        self.convflow1 = conv(2, flow_layers[0], 7)
        self.convflow2 = conv(flow_layers[0], flow_layers[1], 3)
        self.conv = conv(corr_layers[-1] + flow_layers[-1], out_channels - 2, 3)
        self.out_channels = out_channels

    def forward(self, flow: Tensor, corr_features: Tensor) -> Tensor:
        corr = self.convcorr2(self.convcorr1(corr_features))
        motion = self.convflow2(self.convflow1(flow))
        return rl.cat([self.conv(rl.cat([corr, motion], dim=1)), flow], dim=1)


class ConvGRU(nn.Module):
    """A GRU cell whose products are convolutions."""

    def __init__(
        self, *, input_size: int, hidden_size: int, kernel_size: Any, padding: Any
    ) -> None:
        super().__init__()
        both = hidden_size + input_size
        self.convz = nn.Conv2d(both, hidden_size, kernel_size=kernel_size, padding=padding)
        self.convr = nn.Conv2d(both, hidden_size, kernel_size=kernel_size, padding=padding)
        self.convq = nn.Conv2d(both, hidden_size, kernel_size=kernel_size, padding=padding)

    def forward(self, h: Tensor, x: Tensor) -> Tensor:
        hx = rl.cat([h, x], dim=1)
        z = rl.sigmoid(self.convz(hx))
        r = rl.sigmoid(self.convr(hx))
        q = rl.tanh(self.convq(rl.cat([r * h, x], dim=1)))
        return (1 - z) * h + z * q


class RecurrentBlock(nn.Module):
    """One or two GRU cells, one after the other, on the same hidden state.

    Args:
        input_size: channels of the input.
        hidden_size: channels of the hidden state.
        kernel_size: of each cell.
        padding: of each cell.
    """

    def __init__(
        self,
        *,
        input_size: int,
        hidden_size: int,
        kernel_size: Sequence[Any] = ((1, 5), (5, 1)),
        padding: Sequence[Any] = ((0, 2), (2, 0)),
    ) -> None:
        super().__init__()
        if len(kernel_size) != len(padding):
            raise ValueError(
                "kernel_size should have the same length as padding, instead got "
                f"len(kernel_size) = {len(kernel_size)} and len(padding) = {len(padding)}"
            )
        if len(kernel_size) not in (1, 2):
            raise ValueError(f"kernel_size should either 1 or 2, instead got {len(kernel_size)}")
        cells = [
            ConvGRU(input_size=input_size, hidden_size=hidden_size, kernel_size=k, padding=p)
            for k, p in zip(kernel_size, padding, strict=True)
        ]
        self.convgru1 = cells[0]
        self.convgru2 = cells[1] if len(cells) == 2 else None
        self.hidden_size = hidden_size

    def forward(self, h: Tensor, x: Tensor) -> Tensor:
        h = self.convgru1(h, x)
        return h if self.convgru2 is None else self.convgru2(h, x)


class FlowHead(nn.Module):
    """The hidden state to a correction of the flow."""

    def __init__(self, *, in_channels: int, hidden_size: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, hidden_size, 3, padding=1)
        self.conv2 = nn.Conv2d(hidden_size, 2, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(self.relu(self.conv1(x)))


class UpdateBlock(nn.Module):
    """One step: the new hidden state, and from it the correction of the flow."""

    def __init__(
        self,
        *,
        motion_encoder: MotionEncoder,
        recurrent_block: RecurrentBlock,
        flow_head: FlowHead,
    ) -> None:
        super().__init__()
        self.motion_encoder = motion_encoder
        self.recurrent_block = recurrent_block
        self.flow_head = flow_head
        self.hidden_state_size = recurrent_block.hidden_size

    def forward(
        self, hidden_state: Tensor, context: Tensor, corr_features: Tensor, flow: Tensor
    ) -> tuple[Tensor, Tensor]:
        x = rl.cat([context, self.motion_encoder(flow, corr_features)], dim=1)
        hidden_state = self.recurrent_block(hidden_state, x)
        return hidden_state, self.flow_head(hidden_state)


class MaskPredictor(nn.Module):
    """Weights with which each of 8x8 fine places sums its 3x3 coarse neighbors.

    Args:
        in_channels: channels of the hidden state.
        hidden_size: channels in the middle.
        multiplier: of the result, which scales its gradients.
    """

    def __init__(self, *, in_channels: int, hidden_size: int, multiplier: float = 0.25) -> None:
        super().__init__()
        self.convrelu = Conv2dNormActivation(in_channels, hidden_size, norm_layer=None)
        self.conv = nn.Conv2d(hidden_size, 8 * 8 * 9, 1)
        self.multiplier = multiplier

    def forward(self, x: Tensor) -> Tensor:
        return self.multiplier * self.conv(self.convrelu(x))


class RAFT(nn.Module):
    """Optical flow by repeated corrections.

    Args:
        feature_encoder: an image to features at an eighth of its size.
        context_encoder: the first image to the first hidden state and the context.
        corr_block: compares the features of the two images.
        update_block: corrects the flow; has the attribute hidden_state_size.
        mask_predictor: tells how to bring the flow to the size of the images; None interpolates.

    Returns:
        From forward, a list of flows (N, 2, H, W) in pixels, one after each correction.
    """

    def __init__(
        self,
        *,
        feature_encoder: nn.Module,
        context_encoder: nn.Module,
        corr_block: Any,
        update_block: Any,
        mask_predictor: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.feature_encoder = feature_encoder
        self.context_encoder = context_encoder
        self.corr_block = corr_block
        self.update_block = update_block
        self.mask_predictor = mask_predictor
        if not hasattr(update_block, "hidden_state_size"):
            raise ValueError(
                "The update_block parameter should expose a 'hidden_state_size' attribute."
            )

    def forward(self, image1: Tensor, image2: Tensor, num_flow_updates: int = 12) -> list[Tensor]:
        N, _, H, W = image1.shape
        if image2.shape[-2:] != (H, W):
            raise ValueError(
                f"input images should have the same shape, instead got ({H}, {W}) != "
                f"{tuple(image2.shape[-2:])}"
            )
        if H % 8 != 0 or W % 8 != 0:
            raise ValueError(
                f"input image H and W should be divisible by 8, instead got {H} (h) and {W} (w)"
            )
        small = (H // 8, W // 8)
        fmap1, fmap2 = self.feature_encoder(rl.cat([image1, image2], dim=0)).chunk(2, dim=0)
        context = self.context_encoder(image1)
        for name, features in (("feature", fmap1), ("context", context)):
            if features.shape[-2:] != small:
                raise ValueError(f"The {name} encoder should downsample H and W by 8")
        hidden_size = self.update_block.hidden_state_size
        if context.shape[1] <= hidden_size:
            raise ValueError(
                f"The context encoder outputs {context.shape[1]} channels, but it should have at "
                f"strictly more than hidden_state={hidden_size} channels"
            )
        self.corr_block.build_pyramid(fmap1, fmap2)
        hidden = rl.tanh(context[:, :hidden_size])
        context = F.relu(context[:, hidden_size:])

        start = make_places(N, *small, device=image1.device)
        places = start
        flows = []
        for _ in range(num_flow_updates):
            places = places.detach()  # a correction learns from itself alone
            corr = self.corr_block.index_pyramid(centroids_coords=places)
            hidden, delta = self.update_block(hidden, context, corr, places - start)
            places = places + delta
            mask = None if self.mask_predictor is None else self.mask_predictor(hidden)
            flows.append(upsample(places - start, mask))
        return flows


def _make(
    *,
    layers: tuple[int, ...],
    context_layers: tuple[int, ...],
    block: MakeLayer,
    context_norm: MakeLayer | None,
    radius: int,
    corr_layers: tuple[int, ...],
    flow_layers: tuple[int, ...],
    motion_channels: int,
    hidden_size: int,
    kernel_size: tuple[Any, ...],
    padding: tuple[Any, ...],
    flow_head_size: int,
    has_mask: bool,
    **kwargs: Any,
) -> RAFT:
    """Makes the parts that were not given."""

    def part(name: str, make: Callable[[], Any]) -> Any:
        given = kwargs.pop(name, None)
        return make() if given is None else given

    feature_encoder = part(
        "feature_encoder",
        lambda: FeatureEncoder(block=block, layers=layers, norm_layer=nn.InstanceNorm2d),
    )
    context_encoder = part(
        "context_encoder",
        lambda: FeatureEncoder(block=block, layers=context_layers, norm_layer=context_norm),
    )
    corr_block = part("corr_block", lambda: CorrBlock(num_levels=4, radius=radius))

    def make_update_block() -> UpdateBlock:
        motion_encoder = MotionEncoder(
            in_channels_corr=corr_block.out_channels,
            corr_layers=corr_layers,
            flow_layers=flow_layers,
            out_channels=motion_channels,
        )
        recurrent_block = RecurrentBlock(
            input_size=motion_channels + context_layers[-1] - hidden_size,
            hidden_size=hidden_size,
            kernel_size=kernel_size,
            padding=padding,
        )
        flow_head = FlowHead(in_channels=hidden_size, hidden_size=flow_head_size)
        return UpdateBlock(
            motion_encoder=motion_encoder, recurrent_block=recurrent_block, flow_head=flow_head
        )

    update_block = part("update_block", make_update_block)
    mask_predictor = part(
        "mask_predictor",
        lambda: MaskPredictor(in_channels=hidden_size, hidden_size=256) if has_mask else None,
    )
    return RAFT(
        feature_encoder=feature_encoder,
        context_encoder=context_encoder,
        corr_block=corr_block,
        update_block=update_block,
        mask_predictor=mask_predictor,
        **kwargs,
    )


class Raft_Large_Weights(WeightsEnum):
    C_T_V1 = published("raft_large_C_T_V1-22a6c225.pth")
    C_T_V2 = published("raft_large_C_T_V2-1bb1363a.pth")
    C_T_SKHT_V1 = published("raft_large_C_T_SKHT_V1-0b8c9e55.pth")
    C_T_SKHT_V2 = published("raft_large_C_T_SKHT_V2-ff5fadd5.pth")
    C_T_SKHT_K_V1 = published("raft_large_C_T_SKHT_K_V1-4a6a5039.pth")
    C_T_SKHT_K_V2 = published("raft_large_C_T_SKHT_K_V2-b5c70766.pth")
    DEFAULT = C_T_SKHT_V2


class Raft_Small_Weights(WeightsEnum):
    C_T_V1 = published("raft_small_C_T_V1-ad48884c.pth")
    C_T_V2 = published("raft_small_C_T_V2-01064c6d.pth")
    DEFAULT = C_T_V2


@builder(Raft_Large_Weights, legacy="C_T_SKHT_V2")
def raft_large(**kwargs: Any) -> RAFT:
    """RAFT; feature_encoder and other arguments of RAFT replace its parts."""
    return _make(
        layers=(64, 64, 96, 128, 256),
        context_layers=(64, 64, 96, 128, 256),
        block=ResidualBlock,
        context_norm=nn.BatchNorm2d,
        radius=4,
        corr_layers=(256, 192),
        flow_layers=(128, 64),
        motion_channels=128,
        hidden_size=128,
        kernel_size=((1, 5), (5, 1)),
        padding=((0, 2), (2, 0)),
        flow_head_size=256,
        has_mask=True,
        **kwargs,
    )


@builder(Raft_Small_Weights, legacy="C_T_V2")
def raft_small(**kwargs: Any) -> RAFT:
    """RAFT with fewer channels and bottlenecks, interpolated to the size of the images."""
    return _make(
        layers=(32, 32, 64, 96, 128),
        context_layers=(32, 32, 64, 96, 160),
        block=BottleneckBlock,
        context_norm=None,
        radius=3,
        corr_layers=(96,),
        flow_layers=(64, 32),
        motion_channels=82,
        hidden_size=96,
        kernel_size=(3,),
        padding=(1,),
        flow_head_size=128,
        has_mask=False,
        **kwargs,
    )
