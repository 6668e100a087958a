"""ResNets for videos: Tran et al. 2017, A Closer Look at Spatiotemporal Convolutions.

R3D convolves over time everywhere, MC3 in the first layer alone, R(2+1)D over places, then time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.models._utils import init_by_fan_out, init_narrow

__all__ = [
    "MC3_18_Weights",
    "R2Plus1D_18_Weights",
    "R3D_18_Weights",
    "VideoResNet",
    "mc3_18",
    "r2plus1d_18",
    "r3d_18",
]


class Conv3DSimple(nn.Conv3d):
    """A 3x3x3 convolution."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        midplanes: int | None = None,
        stride: int = 1,
        padding: int = 1,
    ) -> None:
        super().__init__(in_planes, out_planes, 3, stride=stride, padding=padding, bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        """Returns the stride of what brings the input to the size of the result."""
        return stride, stride, stride


class Conv2Plus1D(nn.Sequential):
    """A 3x3 convolution over places, norm, relu, and one of 3 over time."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int, stride: int = 1, padding: int = 1
    ) -> None:
        super().__init__(
            Conv3DNoTemporal(in_planes, midplanes, None, stride, padding),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(
                midplanes,
                out_planes,
                kernel_size=(3, 1, 1),
                stride=(stride, 1, 1),
                padding=(padding, 0, 0),
                bias=False,
            ),
        )

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        """Returns the stride of what brings the input to the size of the result."""
        return stride, stride, stride


class Conv3DNoTemporal(nn.Conv3d):
    """A 3x3 convolution over places, the same at all times."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        midplanes: int | None = None,
        stride: int = 1,
        padding: int = 1,
    ) -> None:
        super().__init__(
            in_planes,
            out_planes,
            kernel_size=(1, 3, 3),
            stride=(1, stride, stride),
            padding=(0, padding, padding),
            bias=False,
        )

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        """Returns the stride of what brings the input to the size of the result."""
        return 1, stride, stride


def _midplanes(inplanes: int, planes: int) -> int:
    """Channels between the parts of a (2+1)D convolution that has as many weights as a 3D one."""
    return (inplanes * planes * 3 * 3 * 3) // (inplanes * 3 * 3 + 3 * planes)


class BasicBlock(nn.Module):
    """Two convolutions and the input."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        midplanes = _midplanes(inplanes, planes)
        self.conv1 = nn.Sequential(
            conv_builder(inplanes, planes, midplanes, stride),
            nn.BatchNorm3d(planes),
            nn.ReLU(inplace=True),
        )
        self.conv2 = nn.Sequential(conv_builder(planes, planes, midplanes), nn.BatchNorm3d(planes))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv2(self.conv1(x))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """A convolution on fewer channels between two 1x1x1 ones, and the input."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        out_planes = planes * self.expansion
        self.conv1 = nn.Sequential(
            nn.Conv3d(inplanes, planes, kernel_size=1, bias=False),
            nn.BatchNorm3d(planes),
            nn.ReLU(inplace=True),
        )
        self.conv2 = nn.Sequential(
            conv_builder(planes, planes, _midplanes(inplanes, planes), stride),
            nn.BatchNorm3d(planes),
            nn.ReLU(inplace=True),
        )
        self.conv3 = nn.Sequential(
            nn.Conv3d(planes, out_planes, kernel_size=1, bias=False), nn.BatchNorm3d(out_planes)
        )
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv3(self.conv2(self.conv1(x)))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class BasicStem(nn.Sequential):
    """The first convolution, 3x7x7."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 64, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class R2Plus1dStem(nn.Sequential):
    """The first convolution as 7x7 over places and 3 over time."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 45, (1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3), bias=False),
            nn.BatchNorm3d(45),
            nn.ReLU(inplace=True),
            nn.Conv3d(45, 64, (3, 1, 1), stride=1, padding=(1, 0, 0), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class VideoResNet(nn.Module):
    """A stem, four layers of residual blocks, a mean and a linear layer.

    Args:
        block: BasicBlock or Bottleneck.
        conv_makers: makes the convolutions of each of the four layers.
        layers: number of blocks in each layer.
        stem: makes the first convolution.
        num_classes: size of the result.
        zero_init_residual: whether each Bottleneck begins as the identity.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        conv_makers: Sequence[type[Conv3DSimple | Conv3DNoTemporal | Conv2Plus1D]],
        layers: list[int],
        stem: Callable[..., nn.Module],
        num_classes: int = 400,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        self.layer1 = self._make_layer(block, conv_makers[0], 64, layers[0], stride=1)
        self.layer2 = self._make_layer(block, conv_makers[1], 128, layers[1], stride=2)
        self.layer3 = self._make_layer(block, conv_makers[2], 256, layers[2], stride=2)
        self.layer4 = self._make_layer(block, conv_makers[3], 512, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)

        init_by_fan_out(self, init_narrow)
        if zero_init_residual:
            for layer in self.modules():
                if isinstance(layer, Bottleneck):
                    nn.init.zeros_(layer.conv3[1].weight)

    def _make_layer(
        self,
        block: type[BasicBlock | Bottleneck],
        conv_builder: type[Conv3DSimple | Conv3DNoTemporal | Conv2Plus1D],
        planes: int,
        blocks: int,
        stride: int = 1,
    ) -> nn.Sequential:
        downsample = None
        out_planes = planes * block.expansion
        if stride != 1 or self.inplanes != out_planes:
            step = conv_builder.get_downsample_stride(stride)
            downsample = nn.Sequential(
                nn.Conv3d(self.inplanes, out_planes, kernel_size=1, stride=step, bias=False),
                nn.BatchNorm3d(out_planes),
            )
        first = block(self.inplanes, planes, conv_builder, stride, downsample)
        self.inplanes = out_planes
        rest = [block(out_planes, planes, conv_builder) for _ in range(1, blocks)]
        return nn.Sequential(first, *rest)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(self.avgpool(x).flatten(1))


class R3D_18_Weights(WeightsEnum):
    KINETICS400_V1 = published("r3d_18-b3b3357e.pth")
    DEFAULT = KINETICS400_V1


class MC3_18_Weights(WeightsEnum):
    KINETICS400_V1 = published("mc3_18-a90a0ba3.pth")
    DEFAULT = KINETICS400_V1


class R2Plus1D_18_Weights(WeightsEnum):
    KINETICS400_V1 = published("r2plus1d_18-91a641e6.pth")
    DEFAULT = KINETICS400_V1


@builder(R3D_18_Weights, legacy="KINETICS400_V1")
def r3d_18(**kwargs: Any) -> VideoResNet:
    """R3D with 18 layers."""
    return VideoResNet(BasicBlock, [Conv3DSimple] * 4, [2, 2, 2, 2], BasicStem, **kwargs)


@builder(MC3_18_Weights, legacy="KINETICS400_V1")
def mc3_18(**kwargs: Any) -> VideoResNet:
    """MC3 with 18 layers."""
    convs = [Conv3DSimple, *[Conv3DNoTemporal] * 3]
    return VideoResNet(BasicBlock, convs, [2, 2, 2, 2], BasicStem, **kwargs)


@builder(R2Plus1D_18_Weights, legacy="KINETICS400_V1")
def r2plus1d_18(**kwargs: Any) -> VideoResNet:
    """R(2+1)D with 18 layers."""
    return VideoResNet(BasicBlock, [Conv2Plus1D] * 4, [2, 2, 2, 2], R2Plus1dStem, **kwargs)
