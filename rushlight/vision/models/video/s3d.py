"""S3D: Xie et al. 2018, Rethinking Spatiotemporal Feature Learning.

GoogLeNet for videos, its convolutions split into one over places and one over time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.vision.models._api import WeightsEnum, builder, published
from rushlight.vision.ops.misc import Conv3dNormActivation

__all__ = ["S3D", "S3D_Weights", "s3d"]

MakeLayer = Callable[..., nn.Module]


class TemporalSeparableConv(nn.Sequential):
    """A convolution over places, then one over time, each with norm and relu."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel_size: int,
        stride: int,
        padding: int,
        norm_layer: MakeLayer,
    ) -> None:
        k, s, p = kernel_size, stride, padding
        super().__init__(
            Conv3dNormActivation(
                in_planes,
                out_planes,
                kernel_size=(1, k, k),
                stride=(1, s, s),
                padding=(0, p, p),
                bias=False,
                norm_layer=norm_layer,
            ),
            Conv3dNormActivation(
                out_planes,
                out_planes,
                kernel_size=(k, 1, 1),
                stride=(s, 1, 1),
                padding=(p, 0, 0),
                bias=False,
                norm_layer=norm_layer,
            ),
        )


class SepInceptionBlock3D(nn.Module):
    """GoogLeNet's four branches with separated convolutions.

    Args:
        in_planes: channels of the input.
        b0_out: result of the 1x1x1 convolution.
        b1_mid: between the convolutions of the second branch.
        b1_out: result of the second branch.
        b2_mid: between the convolutions of the third branch.
        b2_out: result of the third branch.
        b3_out: result of the branch with the pool.
        norm_layer: makes a norm from the number of channels.
    """

    def __init__(
        self,
        in_planes: int,
        b0_out: int,
        b1_mid: int,
        b1_out: int,
        b2_mid: int,
        b2_out: int,
        b3_out: int,
        norm_layer: MakeLayer,
    ) -> None:
        super().__init__()
        conv = partial(Conv3dNormActivation, kernel_size=1, norm_layer=norm_layer)
        separated = partial(
            TemporalSeparableConv, kernel_size=3, stride=1, padding=1, norm_layer=norm_layer
        )
        self.branch0 = conv(in_planes, b0_out)
        self.branch1 = nn.Sequential(conv(in_planes, b1_mid), separated(b1_mid, b1_out))
        self.branch2 = nn.Sequential(conv(in_planes, b2_mid), separated(b2_mid, b2_out))
        self.branch3 = nn.Sequential(
            nn.MaxPool3d(kernel_size=(3, 3, 3), stride=1, padding=1), conv(in_planes, b3_out)
        )

    def forward(self, x: Tensor) -> Tensor:
        return rl.cat((self.branch0(x), self.branch1(x), self.branch2(x), self.branch3(x)), 1)


class S3D(nn.Module):
    """Convolutions, nine blocks of branches, a convolution to the classes and a mean.

    Args:
        num_classes: size of the result.
        dropout: probability to zero an element before the last convolution.
        norm_layer: makes a norm from the number of channels, by default BatchNorm3d with
            eps=0.001, momentum=0.001.
    """

    def __init__(
        self,
        num_classes: int = 400,
        dropout: float = 0.2,
        norm_layer: MakeLayer | None = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or partial(nn.BatchNorm3d, eps=0.001, momentum=0.001)
        halve_places = partial(nn.MaxPool3d, (1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1))
        self.features = nn.Sequential(
            TemporalSeparableConv(3, 64, 7, 2, 3, norm),
            halve_places(),
            Conv3dNormActivation(64, 64, kernel_size=1, norm_layer=norm),
            TemporalSeparableConv(64, 192, 3, 1, 1, norm),
            halve_places(),
            SepInceptionBlock3D(192, 64, 96, 128, 16, 32, 32, norm),
            SepInceptionBlock3D(256, 128, 128, 192, 32, 96, 64, norm),
            nn.MaxPool3d(3, stride=2, padding=1),
            SepInceptionBlock3D(480, 192, 96, 208, 16, 48, 64, norm),
            SepInceptionBlock3D(512, 160, 112, 224, 24, 64, 64, norm),
            SepInceptionBlock3D(512, 128, 128, 256, 24, 64, 64, norm),
            SepInceptionBlock3D(512, 112, 144, 288, 32, 64, 64, norm),
            SepInceptionBlock3D(528, 256, 160, 320, 32, 128, 128, norm),
            nn.MaxPool3d(2, stride=2),
            SepInceptionBlock3D(832, 256, 160, 320, 32, 128, 128, norm),
            SepInceptionBlock3D(832, 384, 192, 384, 48, 128, 128, norm),
        )
        self.avgpool = nn.AvgPool3d(kernel_size=(2, 7, 7), stride=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Conv3d(1024, num_classes, kernel_size=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x))).mean((2, 3, 4))


class S3D_Weights(WeightsEnum):
    KINETICS400_V1 = published("s3d-d76dad2f.pth")
    DEFAULT = KINETICS400_V1


@builder(S3D_Weights, legacy="KINETICS400_V1")
def s3d(**kwargs: Any) -> S3D:
    """S3D, for at least 14 frames of 224 x 224 pixels."""
    return S3D(**kwargs)
