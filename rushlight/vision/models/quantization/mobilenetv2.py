"""MobileNetV2 that is made to be quantized."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.ao.nn.quantized import FloatFunctional
from rushlight.vision.models.mobilenetv2 import InvertedResidual, MobileNetV2
from rushlight.vision.models.quantization.utils import Quantizable, finished, fuse

__all__ = ["QuantizableMobileNetV2", "mobilenet_v2"]


class QuantizableInvertedResidual(InvertedResidual):
    """InvertedResidual whose sum is observed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.skip_add = FloatFunctional()

    def forward(self, x: Tensor) -> Tensor:
        return self.skip_add.add(x, self.conv(x)) if self.use_res_connect else self.conv(x)

    def fuse_model(self, is_qat: bool | None = None) -> None:
        """Fuses the last convolution with its norm."""
        for i, part in enumerate(self.conv):
            if type(part) is nn.Conv2d:
                fuse(self.conv, [str(i), str(i + 1)], is_qat)


class QuantizableMobileNetV2(Quantizable, MobileNetV2):
    """MobileNetV2 with stubs and fuse_model()."""

    def fuse_model(self, is_qat: bool | None = None) -> None:
        """Fuses layers in place."""
        for part in list(self.modules()):
            kinds = [type(child) for child in part.children()]
            if kinds == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]:
                fuse(part, ["0", "1", "2"], is_qat)
        super().fuse_model(is_qat)


def mobilenet_v2(
    *, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any
) -> QuantizableMobileNetV2:
    """MobileNetV2 for quantization, with relu in place of relu6; see resnet18."""
    model = QuantizableMobileNetV2(block=QuantizableInvertedResidual, **kwargs)
    return finished(model, weights, quantize)
