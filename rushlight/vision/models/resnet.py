"""ResNet, ResNeXt and wide ResNet.

He et al. 2015, Deep Residual Learning for Image Recognition: each block adds what it computes to
its input, so gradients reach the first layers through the sums. ResNeXt, Xie et al. 2016, has its
3x3 convolutions in groups; the wide ResNet, Zagoruyko and Komodakis 2016, has wider ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published

__all__ = [
    "ResNeXt50_32X4D_Weights",
    "ResNeXt101_32X8D_Weights",
    "ResNeXt101_64X4D_Weights",
    "ResNet",
    "ResNet18_Weights",
    "ResNet34_Weights",
    "ResNet50_Weights",
    "ResNet101_Weights",
    "ResNet152_Weights",
    "Wide_ResNet50_2_Weights",
    "Wide_ResNet101_2_Weights",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "wide_resnet50_2",
    "wide_resnet101_2",
]

MakeLayer = Callable[..., nn.Module]


def conv3x3(
    in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """Returns a 3x3 convolution that keeps the size at stride 1."""
    return nn.Conv2d(
        in_planes,
        out_planes,
        kernel_size=3,
        stride=stride,
        padding=dilation,
        groups=groups,
        bias=False,
        dilation=dilation,
    )


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """Returns a 1x1 convolution."""
    return nn.Conv2d(in_planes, out_planes, kernel_size=1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and the input: the block of ResNet-18 and 34.

    Args:
        inplanes: channels of the input.
        planes: channels of the result.
        stride: of the first convolution.
        downsample: brings the input to the shape of the result.
        groups: 1, for Bottleneck's sake.
        base_width: 64, for Bottleneck's sake.
        dilation: 1, for Bottleneck's sake.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d.
    """

    expansion: int = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        norm_layer = norm_layer or nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """A 3x3 convolution on fewer channels between two 1x1 ones: the block of ResNet-50 and up.

    The stride stands in the 3x3 convolution, not in the first as in the paper; this form is known
    as ResNet v1.5 and a little more accurate.

    Args:
        inplanes: channels of the input.
        planes: the result has 4 planes channels.
        stride: of the 3x3 convolution.
        downsample: brings the input to the shape of the result.
        groups: groups of the 3x3 convolution, more than 1 in ResNeXt.
        base_width: channels of a group when planes is 64.
        dilation: of the 3x3 convolution.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d.
    """

    expansion: int = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """A convolution and a pool, four layers of residual blocks, a mean and a linear layer.

    Args:
        block: BasicBlock or Bottleneck.
        layers: number of blocks in each of the four layers.
        num_classes: size of the result.
        zero_init_residual: whether each block begins as the identity.
        groups: groups of the 3x3 convolutions.
        width_per_group: channels of a group in the first layer.
        replace_stride_with_dilation: for the last three layers, whether they dilate, which keeps
            the size of the image, instead of halving it.
        norm_layer: makes a norm from the number of channels, by default BatchNorm2d.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        layers: list[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: list[bool] | None = None,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(
                "replace_stride_with_dilation should be None or a 3-element tuple, got "
                f"{replace_stride_with_dilation}"
            )
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)

        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            elif zero_init_residual and isinstance(layer, BasicBlock | Bottleneck):
                last: Any = layer.bn3 if isinstance(layer, Bottleneck) else layer.bn2
                if last.weight is not None:
                    nn.init.zeros_(last.weight)  # Goyal et al. 2017, section 5.1

    def _make_layer(
        self,
        block: type[BasicBlock | Bottleneck],
        planes: int,
        blocks: int,
        stride: int = 1,
        dilate: bool = False,
    ) -> nn.Sequential:
        first_dilation = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        out_planes = planes * block.expansion
        if stride != 1 or self.inplanes != out_planes:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, out_planes, stride), self._norm_layer(out_planes)
            )
        shared = (self.groups, self.base_width)
        made = [
            block(
                self.inplanes, planes, stride, downsample, *shared, first_dilation, self._norm_layer
            )
        ]
        self.inplanes = out_planes
        for _ in range(1, blocks):
            made.append(
                block(out_planes, planes, 1, None, *shared, self.dilation, self._norm_layer)
            )
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))  # (N, 64, H / 4, W / 4)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))  # (N, C, H / 32, W / 32)
        return self.fc(rl.flatten(self.avgpool(x), 1))


class ResNet18_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnet18-f37072fd.pth")
    DEFAULT = IMAGENET1K_V1


class ResNet34_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnet34-b627a593.pth")
    DEFAULT = IMAGENET1K_V1


class ResNet50_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnet50-0676ba61.pth")
    IMAGENET1K_V2 = published("resnet50-11ad3fa6.pth")
    DEFAULT = IMAGENET1K_V2


class ResNet101_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnet101-63fe2227.pth")
    IMAGENET1K_V2 = published("resnet101-cd907fc2.pth")
    DEFAULT = IMAGENET1K_V2


class ResNet152_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnet152-394f9c45.pth")
    IMAGENET1K_V2 = published("resnet152-f82ba261.pth")
    DEFAULT = IMAGENET1K_V2


class ResNeXt50_32X4D_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnext50_32x4d-7cdf4587.pth")
    IMAGENET1K_V2 = published("resnext50_32x4d-1a0047aa.pth")
    DEFAULT = IMAGENET1K_V2


class ResNeXt101_32X8D_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnext101_32x8d-8ba56ff5.pth")
    IMAGENET1K_V2 = published("resnext101_32x8d-110c445d.pth")
    DEFAULT = IMAGENET1K_V2


class ResNeXt101_64X4D_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("resnext101_64x4d-173b62eb.pth")
    DEFAULT = IMAGENET1K_V1


class Wide_ResNet50_2_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("wide_resnet50_2-95faca4d.pth")
    IMAGENET1K_V2 = published("wide_resnet50_2-9ba9bcbe.pth")
    DEFAULT = IMAGENET1K_V2


class Wide_ResNet101_2_Weights(WeightsEnum):
    IMAGENET1K_V1 = published("wide_resnet101_2-32ee1156.pth")
    IMAGENET1K_V2 = published("wide_resnet101_2-d733dc28.pth")
    DEFAULT = IMAGENET1K_V2


@builder(ResNet18_Weights)
def resnet18(**kwargs: Any) -> ResNet:
    """ResNet-18."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


@builder(ResNet34_Weights)
def resnet34(**kwargs: Any) -> ResNet:
    """ResNet-34."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


@builder(ResNet50_Weights)
def resnet50(**kwargs: Any) -> ResNet:
    """ResNet-50."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)


@builder(ResNet101_Weights)
def resnet101(**kwargs: Any) -> ResNet:
    """ResNet-101."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **kwargs)


@builder(ResNet152_Weights)
def resnet152(**kwargs: Any) -> ResNet:
    """ResNet-152."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **kwargs)


@builder(ResNeXt50_32X4D_Weights)
def resnext50_32x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-50 with 32 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4, **kwargs)


@builder(ResNeXt101_32X8D_Weights)
def resnext101_32x8d(**kwargs: Any) -> ResNet:
    """ResNeXt-101 with 32 groups of 8 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8, **kwargs)


@builder(ResNeXt101_64X4D_Weights)
def resnext101_64x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-101 with 64 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], groups=64, width_per_group=4, **kwargs)


@builder(Wide_ResNet50_2_Weights)
def wide_resnet50_2(**kwargs: Any) -> ResNet:
    """ResNet-50 whose 3x3 convolutions have twice the channels."""
    return ResNet(Bottleneck, [3, 4, 6, 3], width_per_group=128, **kwargs)


@builder(Wide_ResNet101_2_Weights)
def wide_resnet101_2(**kwargs: Any) -> ResNet:
    """ResNet-101 whose 3x3 convolutions have twice the channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], width_per_group=128, **kwargs)
