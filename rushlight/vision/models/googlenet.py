"""GoogLeNet: Szegedy et al. 2014, Going Deeper with Convolutions.

Branches of convolutions of several sizes side by side, with 1x1 convolutions that keep them cheap.
Two more classifiers in the middle, used in training alone, give the first layers gradients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models.inception import BasicConv2d, scale_as_tensorflow

__all__ = [
    "GoogLeNet",
    "GoogLeNetOutputs",
    "GoogLeNet_Weights",
    "_GoogLeNetOutputs",
    "googlenet",
]

MakeLayer = Callable[..., nn.Module]


class GoogLeNetOutputs(NamedTuple):
    """What GoogLeNet returns in training."""

    logits: Tensor
    aux_logits2: Tensor | None
    aux_logits1: Tensor | None


_GoogLeNetOutputs = GoogLeNetOutputs


class Inception(nn.Module):
    """A 1x1, a 3x3 and a (so called) 5x5 convolution and a pool side by side.

    The third branch has 3x3 kernels, as the published weights do; the paper has 5x5.

    Args:
        in_channels: channels of the input.
        ch1x1: result of the first branch.
        ch3x3red: between the two convolutions of the second branch.
        ch3x3: result of the second branch.
        ch5x5red: between the two convolutions of the third branch.
        ch5x5: result of the third branch.
        pool_proj: result of the branch with the pool.
        conv_block: makes the convolutions, by default BasicConv2d.
    """

    def __init__(
        self,
        in_channels: int,
        ch1x1: int,
        ch3x3red: int,
        ch3x3: int,
        ch5x5red: int,
        ch5x5: int,
        pool_proj: int,
        conv_block: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(
            conv(in_channels, ch3x3red, kernel_size=1),
            conv(ch3x3red, ch3x3, kernel_size=3, padding=1),
        )
        self.branch3 = nn.Sequential(
            conv(in_channels, ch5x5red, kernel_size=1),
            conv(ch5x5red, ch5x5, kernel_size=3, padding=1),
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
            conv(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return rl.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """A classifier in the middle."""

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        conv_block: MakeLayer | None = None,
        dropout: float = 0.7,
    ) -> None:
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(F.adaptive_avg_pool2d(x, (4, 4)))  # (N, 128, 4, 4)
        x = F.relu(self.fc1(rl.flatten(x, 1)), inplace=True)
        return self.fc2(self.dropout(x))


class GoogLeNet(nn.Module):
    """Convolutions, nine Inception modules, a mean and a linear layer.

    Args:
        num_classes: size of the result.
        aux_logits: whether there are two more classifiers.
        transform_input: whether to take images normalized with ImageNet's mean and std.
        init_weights: whether to initialize as the published models were; None does.
        blocks: replaces BasicConv2d, Inception and InceptionAux.
        dropout: probability to zero an element before the linear layer.
        dropout_aux: the same in the other classifiers.

    Returns:
        From forward, in training with aux_logits GoogLeNetOutputs, otherwise a tensor.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        init_weights: bool | None = None,
        blocks: list[MakeLayer] | None = None,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        made: list[MakeLayer] = blocks or [BasicConv2d, Inception, InceptionAux]
        if len(made) != 3:
            raise ValueError(f"blocks length should be 3 instead of {len(made)}")
        conv, inception, aux = made
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception3a = inception(192, 64, 96, 128, 16, 32, 32)
        self.inception3b = inception(256, 128, 128, 192, 32, 96, 64)
        self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception4a = inception(480, 192, 96, 208, 16, 48, 64)
        self.inception4b = inception(512, 160, 112, 224, 24, 64, 64)
        self.inception4c = inception(512, 128, 128, 256, 24, 64, 64)
        self.inception4d = inception(512, 112, 144, 288, 32, 64, 64)
        self.inception4e = inception(528, 256, 160, 320, 32, 128, 128)
        self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.inception5a = inception(832, 256, 160, 320, 32, 128, 128)
        self.inception5b = inception(832, 384, 192, 384, 48, 128, 128)
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        if init_weights is not False:
            for layer in self.modules():
                if isinstance(layer, nn.Conv2d | nn.Linear):
                    nn.init.trunc_normal_(layer.weight, mean=0.0, std=0.01, a=-2, b=2)

    def forward(self, x: Tensor) -> Tensor | GoogLeNetOutputs:
        if self.transform_input:
            x = scale_as_tensorflow(x)
        x = self.conv3(self.conv2(self.maxpool1(self.conv1(x))))  # (N, 192, 56, 56)
        x = self.inception3b(self.inception3a(self.maxpool2(x)))  # (N, 480, 28, 28)
        x = self.inception4a(self.maxpool3(x))
        aux1 = self.aux1(x) if self.training and self.aux1 is not None else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        aux2 = self.aux2(x) if self.training and self.aux2 is not None else None
        x = self.maxpool4(self.inception4e(x))  # (N, 832, 7, 7)
        x = self.avgpool(self.inception5b(self.inception5a(x)))
        x = self.fc(self.dropout(rl.flatten(x, 1)))
        return GoogLeNetOutputs(x, aux2, aux1) if self.training and self.aux_logits else x


class GoogLeNet_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("googlenet-1378be20.pth")
    DEFAULT = IMAGENET1K_V1


def _adapt(kwargs: dict[str, Any], weights: WeightsEnum) -> Callable[[GoogLeNet], None]:
    has_aux = kwargs.get("aux_logits", False)
    kwargs.setdefault("transform_input", True)
    kwargs |= {"aux_logits": True, "init_weights": False}

    def finish(model: GoogLeNet) -> None:
        if has_aux:
            warnings.warn(
                "auxiliary heads in the pretrained googlenet model are NOT pretrained, so make "
                "sure to train them",
                stacklevel=4,
            )
        else:
            model.aux_logits = False
            model.aux1 = model.aux2 = None

    return finish


@builder(GoogLeNet_Weights, adapt=_adapt)
def googlenet(**kwargs: Any) -> GoogLeNet:
    """GoogLeNet, also known as Inception v1."""
    return GoogLeNet(**kwargs)
