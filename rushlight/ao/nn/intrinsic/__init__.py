"""torch.ao.nn.intrinsic: layers fused with what follows them, as sequences of float layers.

fuse_modules makes them. qat has the forms for training, quantized those with 8-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import Tensor, _later, nn

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvAdd2d",
    "ConvAddReLU2d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearLeakyReLU",
    "LinearReLU",
    "LinearTanh",
]


class _FusedModule(nn.Sequential):
    """Layers that become one when they are quantized."""

    _wanted: tuple[Any, ...]

    def __init__(self, *layers: Any) -> None:
        name, kinds = type(self).__name__, type(self)._wanted
        fits = len(layers) == len(kinds) and all(map(isinstance, layers, kinds))
        if not fits:
            wanted = ", ".join(kind.__name__ for kind in kinds)
            given = ", ".join(type(layer).__name__ for layer in layers)
            raise AssertionError(
                f"Incorrect types for input modules of {name}: {given}, not {wanted}"
            )
        super().__init__(*layers)


def _fused(name: str, *kinds: Any) -> Any:
    names = ", ".join(kind.__name__ for kind in kinds)
    doc = f"Calls {names}, one after the other."
    body = {"_wanted": kinds, "__doc__": doc, "__module__": __name__}
    return type(name, (_FusedModule,), body)


ConvReLU1d = _fused("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _fused("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _fused("ConvReLU3d", nn.Conv3d, nn.ReLU)
LinearReLU = _fused("LinearReLU", nn.Linear, nn.ReLU)
ConvBn1d = _fused("ConvBn1d", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _fused("ConvBn2d", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _fused("ConvBn3d", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _fused("ConvBnReLU1d", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _fused("ConvBnReLU2d", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _fused("ConvBnReLU3d", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _fused("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _fused("BNReLU3d", nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _fused("LinearBn1d", nn.Linear, nn.BatchNorm1d)
LinearLeakyReLU = _fused("LinearLeakyReLU", nn.Linear, nn.LeakyReLU)
LinearTanh = _fused("LinearTanh", nn.Linear, nn.Tanh)


class ConvAdd2d(_FusedModule):
    """A Conv2d and a sum with another tensor.

    Args:
        conv: the convolution.
        add: the function of two tensors.
    """

    _wanted = (nn.Conv2d,)

    def __init__(self, conv: nn.Conv2d, add: Callable[..., Any]) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Returns add(conv(x1), x2)."""
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A Conv2d, a sum with another tensor, and a relu.

    Args:
        conv: the convolution.
        add: the function of two tensors.
        relu: the nn.ReLU.
    """

    _wanted = (nn.Conv2d, nn.ReLU)

    def __init__(self, conv: nn.Conv2d, add: Callable[..., Any], relu: nn.ReLU) -> None:
        super().__init__(conv, relu)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Returns relu(add(conv(x1), x2))."""
        return self[1](self.add(self[0](x1), x2))


__getattr__ = _later.imports(__name__, ("qat", "quantized"))
