"""Models for images that are made to be quantized module by module, with torchvision's names.

Their sums are FloatFunctionals, stubs mark where integers begin and end, and fuse_model() fuses
layers. There are no published weights; load those of the float model.
"""

from rushlight.vision.models.quantization.mobilenetv2 import QuantizableMobileNetV2, mobilenet_v2
from rushlight.vision.models.quantization.resnet import (
    QuantizableResNet,
    resnet18,
    resnet50,
    resnext101_32x8d,
    resnext101_64x4d,
)

__all__ = [
    "QuantizableMobileNetV2",
    "QuantizableResNet",
    "mobilenet_v2",
    "resnet18",
    "resnet50",
    "resnext101_32x8d",
    "resnext101_64x4d",
]
