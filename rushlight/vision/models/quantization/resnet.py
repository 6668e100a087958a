"""ResNets that are made to be quantized."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.ao.nn.quantized import FloatFunctional
from rushlight.vision.models.quantization.utils import Quantizable, finished, fuse
from rushlight.vision.models.resnet import BasicBlock, Bottleneck, ResNet

__all__ = ["QuantizableResNet", "resnet18", "resnet50", "resnext101_32x8d", "resnext101_64x4d"]


class QuantizableBasicBlock(BasicBlock):
    """BasicBlock whose sum and last relu are one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_relu = FloatFunctional()

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.add_relu.add_relu(out, x if self.downsample is None else self.downsample(x))

    def fuse_model(self, is_qat: bool | None = None) -> None:
        """Fuses layers in place."""
        fuse(self, [["conv1", "bn1", "relu"], ["conv2", "bn2"]], is_qat)
        if self.downsample is not None:
            fuse(self.downsample, ["0", "1"], is_qat)


class QuantizableBottleneck(Bottleneck):
    """Bottleneck whose sum and last relu are one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.skip_add_relu = FloatFunctional()
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu1(self.bn1(self.conv1(x)))
        out = self.relu2(self.bn2(self.conv2(out)))
        skipped = x if self.downsample is None else self.downsample(x)
        return self.skip_add_relu.add_relu(self.bn3(self.conv3(out)), skipped)

    def fuse_model(self, is_qat: bool | None = None) -> None:
        """Fuses layers in place."""
        names = [["conv1", "bn1", "relu1"], ["conv2", "bn2", "relu2"], ["conv3", "bn3"]]
        fuse(self, names, is_qat)
        if self.downsample is not None:
            fuse(self.downsample, ["0", "1"], is_qat)


class QuantizableResNet(Quantizable, ResNet):
    """ResNet with stubs and fuse_model()."""

    def fuse_model(self, is_qat: bool | None = None) -> None:
        """Fuses layers in place."""
        fuse(self, ["conv1", "bn1", "relu"], is_qat)
        super().fuse_model(is_qat)


def _resnet(block: Any, layers: list[int], weights: Any, quantize: bool, **kwargs: Any) -> Any:
    return finished(QuantizableResNet(block, layers, **kwargs), weights, quantize)


def resnet18(
    *, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any
) -> QuantizableResNet:
    """ResNet-18 for quantization; with quantize=True of integers already.

    Args:
        weights: None.
        progress: kept for its name.
        quantize: whether the model has been quantized, to load weights into it.
        kwargs: of ResNet.

    Example:
        >>> model = torch.vision.models.quantization.resnet18(num_classes=10)
        >>> model.eval().fuse_model()
        >>> type(model.conv1).__name__
        'ConvReLU2d'
    """
    return _resnet(QuantizableBasicBlock, [2, 2, 2, 2], weights, quantize, **kwargs)


def resnet50(
    *, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any
) -> QuantizableResNet:
    """ResNet-50 for quantization; see resnet18."""
    return _resnet(QuantizableBottleneck, [3, 4, 6, 3], weights, quantize, **kwargs)


def resnext101_32x8d(
    *, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any
) -> QuantizableResNet:
    """ResNeXt-101 of 32 groups of 8 for quantization; see resnet18."""
    sizes = {"groups": 32, "width_per_group": 8, **kwargs}
    return _resnet(QuantizableBottleneck, [3, 4, 23, 3], weights, quantize, **sizes)


def resnext101_64x4d(
    *, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any
) -> QuantizableResNet:
    """ResNeXt-101 of 64 groups of 4 for quantization; see resnet18."""
    sizes = {"groups": 64, "width_per_group": 4, **kwargs}
    return _resnet(QuantizableBottleneck, [3, 4, 23, 3], weights, quantize, **sizes)
