"""The places where a network changes between floats and quantized numbers."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(nn.Module):
    """Returns its input; convert() makes it quantize.

    Args:
        qconfig: says what observes the input; that of the network if None.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(nn.Module):
    """Returns its input; convert() makes it return floats."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantWrapper(nn.Module):
    """A module between a QuantStub and a DeQuantStub.

    Example:
        >>> torch.ao.quantization.QuantWrapper(torch.nn.Linear(2, 3))(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        parts: Any = self
        return parts.dequant(parts.module(parts.quant(X)))
