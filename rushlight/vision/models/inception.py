"""Inception v3: Szegedy et al. 2015, Rethinking the Inception Architecture for Computer Vision.

Branches of convolutions of several sizes side by side; large kernels are split into small ones.
A second classifier in the middle, used in training alone, gives the first layers gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published

__all__ = [
    "Inception3",
    "InceptionOutputs",
    "Inception_V3_Weights",
    "_InceptionOutputs",
    "inception_v3",
]

MakeLayer = Callable[..., nn.Module]


class InceptionOutputs(NamedTuple):
    """What Inception3 returns in training."""

    logits: Tensor
    aux_logits: Tensor | None


_InceptionOutputs = InceptionOutputs


class BasicConv2d(nn.Module):
    """A convolution without bias, batch norm and relu."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


def scale_as_tensorflow(x: Tensor) -> Tensor:
    """Returns images normalized with ImageNet's mean and std, normalized to [-1, 1] instead.

    The published weights were trained in TensorFlow, where that is the custom.
    """
    scale = rl.tensor([0.229, 0.224, 0.225], dtype=x.dtype, device=x.device) / 0.5
    shift = (rl.tensor([0.485, 0.456, 0.406], dtype=x.dtype, device=x.device) - 0.5) / 0.5
    return x * scale.view(3, 1, 1) + shift.view(3, 1, 1)


class InceptionA(nn.Module):
    """1x1, 5x5, two 3x3, and a pool: the paper's figure 5."""

    def __init__(
        self, in_channels: int, pool_features: int, conv_block: MakeLayer | None = None
    ) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1x1 = conv(in_channels, 64, kernel_size=1)
        self.branch5x5_1 = conv(in_channels, 48, kernel_size=1)
        self.branch5x5_2 = conv(48, 64, kernel_size=5, padding=2)
        self.branch3x3dbl_1 = conv(in_channels, 64, kernel_size=1)
        self.branch3x3dbl_2 = conv(64, 96, kernel_size=3, padding=1)
        self.branch3x3dbl_3 = conv(96, 96, kernel_size=3, padding=1)
        self.branch_pool = conv(in_channels, pool_features, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        branches = [
            self.branch1x1(x),
            self.branch5x5_2(self.branch5x5_1(x)),
            self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x))),
            self.branch_pool(F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)),
        ]
        return rl.cat(branches, 1)


class InceptionB(nn.Module):
    """Halves the size: the paper's figure 10."""

    def __init__(self, in_channels: int, conv_block: MakeLayer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch3x3 = conv(in_channels, 384, kernel_size=3, stride=2)
        self.branch3x3dbl_1 = conv(in_channels, 64, kernel_size=1)
        self.branch3x3dbl_2 = conv(64, 96, kernel_size=3, padding=1)
        self.branch3x3dbl_3 = conv(96, 96, kernel_size=3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        branches = [
            self.branch3x3(x),
            self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x))),
            F.max_pool2d(x, kernel_size=3, stride=2),
        ]
        return rl.cat(branches, 1)


class InceptionC(nn.Module):
    """7x7 kernels as 1x7 and 7x1: the paper's figure 6."""

    def __init__(
        self, in_channels: int, channels_7x7: int, conv_block: MakeLayer | None = None
    ) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        width = channels_7x7
        row: dict[str, Any] = {"kernel_size": (1, 7), "padding": (0, 3)}
        column: dict[str, Any] = {"kernel_size": (7, 1), "padding": (3, 0)}
        self.branch1x1 = conv(in_channels, 192, kernel_size=1)
        self.branch7x7_1 = conv(in_channels, width, kernel_size=1)
        self.branch7x7_2 = conv(width, width, **row)
        self.branch7x7_3 = conv(width, 192, **column)
        self.branch7x7dbl_1 = conv(in_channels, width, kernel_size=1)
        self.branch7x7dbl_2 = conv(width, width, **column)
        self.branch7x7dbl_3 = conv(width, width, **row)
        self.branch7x7dbl_4 = conv(width, width, **column)
        self.branch7x7dbl_5 = conv(width, 192, **row)
        self.branch_pool = conv(in_channels, 192, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        once = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        twice = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        twice = self.branch7x7dbl_5(self.branch7x7dbl_4(twice))
        pooled = self.branch_pool(F.avg_pool2d(x, kernel_size=3, stride=1, padding=1))
        return rl.cat([self.branch1x1(x), once, twice, pooled], 1)


class InceptionD(nn.Module):
    """Halves the size, with 7x7 kernels as 1x7 and 7x1."""

    def __init__(self, in_channels: int, conv_block: MakeLayer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch3x3_1 = conv(in_channels, 192, kernel_size=1)
        self.branch3x3_2 = conv(192, 320, kernel_size=3, stride=2)
        self.branch7x7x3_1 = conv(in_channels, 192, kernel_size=1)
        self.branch7x7x3_2 = conv(192, 192, kernel_size=(1, 7), padding=(0, 3))
        self.branch7x7x3_3 = conv(192, 192, kernel_size=(7, 1), padding=(3, 0))
        self.branch7x7x3_4 = conv(192, 192, kernel_size=3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        small = self.branch3x3_2(self.branch3x3_1(x))
        large = self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x)))
        pooled = F.max_pool2d(x, kernel_size=3, stride=2)
        return rl.cat([small, self.branch7x7x3_4(large), pooled], 1)


class InceptionE(nn.Module):
    """1x3 and 3x1 kernels side by side: the paper's figure 7."""

    def __init__(self, in_channels: int, conv_block: MakeLayer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        row: dict[str, Any] = {"kernel_size": (1, 3), "padding": (0, 1)}
        column: dict[str, Any] = {"kernel_size": (3, 1), "padding": (1, 0)}
        self.branch1x1 = conv(in_channels, 320, kernel_size=1)
        self.branch3x3_1 = conv(in_channels, 384, kernel_size=1)
        self.branch3x3_2a = conv(384, 384, **row)
        self.branch3x3_2b = conv(384, 384, **column)
        self.branch3x3dbl_1 = conv(in_channels, 448, kernel_size=1)
        self.branch3x3dbl_2 = conv(448, 384, kernel_size=3, padding=1)
        self.branch3x3dbl_3a = conv(384, 384, **row)
        self.branch3x3dbl_3b = conv(384, 384, **column)
        self.branch_pool = conv(in_channels, 192, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        once = self.branch3x3_1(x)
        twice = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        branches = [
            self.branch1x1(x),
            self.branch3x3_2a(once),
            self.branch3x3_2b(once),
            self.branch3x3dbl_3a(twice),
            self.branch3x3dbl_3b(twice),
            self.branch_pool(F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)),
        ]
        return rl.cat(branches, 1)


class InceptionAux(nn.Module):
    """The classifier in the middle."""

    def __init__(
        self, in_channels: int, num_classes: int, conv_block: MakeLayer | None = None
    ) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.conv0 = conv(in_channels, 128, kernel_size=1)
        self.conv1 = conv(128, 768, kernel_size=5)
        self.fc = nn.Linear(768, num_classes)
        self.fc.stddev = 0.001  # of its initial weights

    def forward(self, x: Tensor) -> Tensor:
        x = F.avg_pool2d(x, kernel_size=5, stride=3)
        x = self.conv1(self.conv0(x))
        return self.fc(rl.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class Inception3(nn.Module):
    """Convolutions, three groups of branches, a mean and a linear layer.

    Args:
        num_classes: size of the result.
        aux_logits: whether there is a second classifier.
        transform_input: whether to take images normalized with ImageNet's mean and std.
        inception_blocks: replaces BasicConv2d, InceptionA to InceptionE and InceptionAux.
        init_weights: whether to initialize as the paper does; None does.
        dropout: probability to zero an element before the linear layer.

    Returns:
        From forward, in training with aux_logits InceptionOutputs, otherwise a tensor.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        inception_blocks: list[MakeLayer] | None = None,
        init_weights: bool | None = None,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        blocks: list[MakeLayer] = inception_blocks or [
            BasicConv2d,
            InceptionA,
            InceptionB,
            InceptionC,
            InceptionD,
            InceptionE,
            InceptionAux,
        ]
        if len(blocks) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(blocks)}")
        conv, block_a, block_b, block_c, block_d, block_e, block_aux = blocks
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Mixed_5b = block_a(192, pool_features=32)
        self.Mixed_5c = block_a(256, pool_features=64)
        self.Mixed_5d = block_a(288, pool_features=64)
        self.Mixed_6a = block_b(288)
        self.Mixed_6b = block_c(768, channels_7x7=128)
        self.Mixed_6c = block_c(768, channels_7x7=160)
        self.Mixed_6d = block_c(768, channels_7x7=160)
        self.Mixed_6e = block_c(768, channels_7x7=192)
        self.AuxLogits = block_aux(768, num_classes) if aux_logits else None
        self.Mixed_7a = block_d(768)
        self.Mixed_7b = block_e(1280)
        self.Mixed_7c = block_e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        if init_weights is not False:
            for layer in self.modules():
                if isinstance(layer, nn.Conv2d | nn.Linear):
                    std: Any = getattr(layer, "stddev", 0.1)
                    nn.init.trunc_normal_(layer.weight, std=std, a=-2, b=2)

    def forward(self, x: Tensor) -> Tensor | InceptionOutputs:
        if self.transform_input:
            x = scale_as_tensorflow(x)
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))  # (N, 64, 147, 147)
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(self.maxpool1(x)))  # (N, 192, 71, 71)
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(self.maxpool2(x))))  # (N, 288, 35, 35)
        x = self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))
        x = self.Mixed_6e(self.Mixed_6d(x))  # (N, 768, 17, 17)
        aux = self.AuxLogits(x) if self.training and self.AuxLogits is not None else None
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))  # (N, 2048, 8, 8)
        x = self.fc(rl.flatten(self.dropout(self.avgpool(x)), 1))
        return InceptionOutputs(x, aux) if self.training and self.aux_logits else x


class Inception_V3_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("inception_v3_google-0cc3c7bd.pth")
    DEFAULT = IMAGENET1K_V1


def _adapt(kwargs: dict[str, Any], weights: WeightsEnum) -> Callable[[Inception3], None]:
    has_aux = kwargs.get("aux_logits", True)
    kwargs.setdefault("transform_input", True)
    kwargs |= {"aux_logits": True, "init_weights": False}

    def finish(model: Inception3) -> None:
        if not has_aux:
            model.aux_logits = False
            model.AuxLogits = None

    return finish


@builder(Inception_V3_Weights, adapt=_adapt)
def inception_v3(**kwargs: Any) -> Inception3:
    """Inception v3, for images of 299 x 299 pixels."""
    return Inception3(**kwargs)
