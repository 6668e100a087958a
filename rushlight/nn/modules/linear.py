"""Layers that multiply by a learned matrix, and the identity."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import Tensor, _later
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input; takes and ignores any arguments, to stand in for another layer.

    Example:
        >>> torch.nn.Identity(54, unused=True)(torch.ones(2)).tolist()
        [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Affine map of the last dimension: input @ weight.T + bias.

    Weight and bias start uniform within 1 / sqrt(in_features) of zero.

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's last dimension.
        bias: whether to add a learned bias.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (*, in_features) to (*, out_features).

    Example:
        >>> layer = torch.nn.Linear(3, 4)
        >>> tuple(layer(torch.zeros(2, 3)).shape)
        (2, 4)
    """

    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        factory: Any = {"device": device, "dtype": dtype}
        self.weight = Parameter(rl.empty((out_features, in_features), **factory))
        self.register_parameter(
            "bias", Parameter(rl.empty((out_features,), **factory)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        # a = sqrt(5) makes the bound of kaiming_uniform_ 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """Linear under the name that the last map of MultiheadAttention has in PyTorch.

    Example:
        >>> torch.nn.modules.linear.NonDynamicallyQuantizableLinear(1, 2)
        NonDynamicallyQuantizableLinear(in_features=1, out_features=2, bias=True)
    """


class Bilinear(Module):
    """Bilinear form of two inputs: output[k] = input1 @ weight[k] @ input2 + bias[k].

    Weight and bias start uniform within 1 / sqrt(in1_features) of zero.

    Args:
        in1_features: size of input1's last dimension.
        in2_features: size of input2's last dimension.
        out_features: size of the output's last dimension.
        bias: whether to add a learned bias.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (*, in1_features) and (*, in2_features) to (*, out_features).

    Example:
        >>> layer = torch.nn.Bilinear(2, 3, 4)
        >>> tuple(layer(torch.zeros(5, 2), torch.zeros(5, 3)).shape)
        (5, 4)
    """

    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"in1_features": in1_features, "in2_features": in2_features}
        check_sizes(self, **sizes, out_features=out_features)
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be > 0, but got {in1_features}.")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        factory: Any = {"device": device, "dtype": dtype}
        self.weight = Parameter(rl.empty((out_features, in1_features, in2_features), **factory))
        self.register_parameter(
            "bias", Parameter(rl.empty((out_features,), **factory)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


# PyTorch has these here.
__getattr__ = _later.imports(
    __name__,
    names_in={
        "_lazy_layers": "LazyLinear",
    },
    package="rushlight.nn.modules",
)
