"""Pointwise nonlinearities as layers; each calls the function of its name in nn.functional."""

from __future__ import annotations

import warnings

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.init import constant_ as constant_
from rushlight.nn.init import xavier_normal_ as xavier_normal_
from rushlight.nn.init import xavier_uniform_ as xavier_uniform_
from rushlight.nn.modules.attention import MultiheadAttention as MultiheadAttention
from rushlight.nn.modules.linear import (
    NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear,
)
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.softmax import LogSoftmax as LogSoftmax
from rushlight.nn.modules.softmax import Softmax as Softmax
from rushlight.nn.modules.softmax import Softmax2d as Softmax2d
from rushlight.nn.modules.softmax import Softmin as Softmin
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Inplace(Module):
    """What the nonlinearities without settings but `inplace` share."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """Positive part: max(0, x).

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class SELU(_Inplace):
    """Self-normalizing ELU: scale * (x if x > 0 else alpha * (exp(x) - 1)).

    alpha = 1.6733 and scale = 1.0507 keep mean 0 and variance 1 (Klambauer et al. 2017).

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> round(torch.nn.SELU()(torch.tensor(1.0)).item(), 4)
        1.0507
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """Sigmoid-weighted input: x * sigmoid(x), also called swish (Elfwing et al. 2017).

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.SiLU()(torch.tensor(0.0)).item()
        0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """Smooth, self-gated input: x * tanh(softplus(x)) (Misra 2019).

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Mish()(torch.tensor(0.0)).item()
        0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """Piecewise linear sigmoid: min(max(0, x + 3), 6) / 6.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 4.0])).tolist()
        [0.0, 0.5, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_Inplace):
    """Piecewise quadratic swish: x * min(max(0, x + 3), 6) / 6 (Howard et al. 2019).

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Hardswish()(torch.tensor([0.0, 4.0])).tolist()
        [0.0, 4.0]
    """

    def extra_repr(self) -> str:
        return ""  # PyTorch shows inplace of the other activations only

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class LeakyReLU(Module):
    """x where positive, negative_slope * x elsewhere.

    Args:
        negative_slope: slope for negative inputs.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.LeakyReLU(0.5)(torch.tensor([-1.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + ", inplace=True" * self.inplace


class PReLU(Module):
    """x where positive, a learned slope times x elsewhere (He et al. 2015).

    Args:
        num_parameters: 1 for one slope, or the number of channels for one each.
        init: value the slopes start at.
        device: where to put the slopes.
        dtype: their dtype.

    Shape:
        any, with the channels in dimension 1, unchanged.

    Example:
        >>> torch.nn.PReLU(init=0.5)(torch.tensor([-1.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, num_parameters=num_parameters)
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(rl.empty((num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the slopes to where they start."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Leaky relu whose slope is uniform on [lower, upper] in training (Xu et al. 2015).

    In evaluation the slope is the mean of lower and upper.

    Args:
        lower: smallest slope.
        upper: largest slope.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.RReLU(0.25, 0.75).eval()(torch.tensor([-1.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + ", inplace=True" * self.inplace


class ELU(Module):
    """x where positive, alpha * (exp(x) - 1) elsewhere (Clevert et al. 2015).

    Args:
        alpha: minus the limit for large negative inputs.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.ELU()(torch.tensor([-100.0, 2.0])).tolist()
        [-1.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + ", inplace=True" * self.inplace


class CELU(Module):
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron 2017).

    Args:
        alpha: minus the limit for large negative inputs.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.CELU(2.0)(torch.tensor([-100.0, 2.0])).tolist()
        [-2.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + ", inplace=True" * self.inplace


class GELU(Module):
    """x times the probability that a standard normal number is below x (Hendrycks 2016).

    Args:
        approximate: "none" for x / 2 * (1 + erf(x / sqrt(2))), "tanh" for
            x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))).

    Example:
        >>> round(torch.nn.GELU()(torch.tensor(1.0)).item(), 4)
        0.8413
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


def _renamed(old: str, new: str, value: float) -> float:
    """The value of an argument that came by its former name."""
    warnings.warn(
        f"keyword argument `{old}` is deprecated and renamed to `{new}`",
        FutureWarning,
        stacklevel=3,
    )
    return value


class Hardtanh(Module):
    """The input cut off below min_val and above max_val.

    Args:
        min_val: lower bound.
        max_val: upper bound.
        inplace: whether to overwrite the input.
        min_value, max_value: former names of the bounds; they warn.

    Raises:
        ValueError: if max_val is not above min_val.

    Example:
        >>> torch.nn.Hardtanh()(torch.tensor([-3.0, 0.5, 3.0])).tolist()
        [-1.0, 0.5, 1.0]
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            min_val = _renamed("min_value", "min_val", min_value)
        if max_value is not None:
            max_val = _renamed("max_value", "max_val", max_value)
        if max_val <= min_val:
            raise ValueError(
                f"Hardtanh: max_val ({max_val}) must be larger than min_val ({min_val})."
            )
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + ", inplace=True" * self.inplace


class ReLU6(Hardtanh):
    """Positive part up to six: min(max(0, x), 6).

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.ReLU6()(torch.tensor([-1.0, 2.0, 7.0])).tolist()
        [0.0, 2.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """x where it is above threshold, value elsewhere.

    Args:
        threshold: the bound.
        value: what replaces inputs that are not above it.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Threshold(1.0, 9.0)(torch.tensor([0.0, 2.0])).tolist()
        [9.0, 2.0]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + ", inplace=True" * self.inplace


class Hardshrink(Module):
    """x where its magnitude is above lambd, 0 elsewhere.

    Args:
        lambd: the bound.

    Example:
        >>> torch.nn.Hardshrink()(torch.tensor([-1.0, 0.25])).tolist()
        [-1.0, 0.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Module):
    """x moved towards 0 by lambd: sign(x) * max(|x| - lambd, 0).

    Args:
        lambd: the distance.

    Example:
        >>> torch.nn.Softshrink()(torch.tensor([-1.0, 0.25])).tolist()
        [-0.5, 0.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Tanhshrink(Module):
    """x - tanh(x).

    Example:
        >>> torch.nn.Tanhshrink()(torch.tensor(0.0)).item()
        0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Example:
        >>> torch.nn.Sigmoid()(torch.tensor(0.0)).item()
        0.5
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), without overflow.

    Example:
        >>> torch.nn.LogSigmoid()(torch.tensor(-200.0)).item()
        -200.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent.

    Example:
        >>> torch.nn.Tanh()(torch.tensor(0.0)).item()
        0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class Softplus(Module):
    """Smooth relu: log(1 + exp(beta * x)) / beta, and x itself above the threshold.

    Args:
        beta: sharpness.
        threshold: bound for beta * x, above which exp would overflow.

    Example:
        >>> round(torch.nn.Softplus()(torch.tensor(0.0)).item(), 4)
        0.6931
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """x / (1 + |x|).

    Example:
        >>> torch.nn.Softsign()(torch.tensor([-1.0, 3.0])).tolist()
        [-0.5, 0.75]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class GLU(Module):
    """First half times the sigmoid of the second half (Dauphin et al. 2016).

    Args:
        dim: dimension to halve.

    Example:
        >>> torch.nn.GLU()(torch.tensor([4.0, 0.0])).tolist()
        [2.0]
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


# What copies of MultiheadAttention ask before they call torch._native_multi_head_attention.


def _arg_requires_grad(x: Tensor | None) -> bool:
    return x is not None and x.requires_grad


def _check_arg_device(x: Tensor | None) -> bool:
    return x is None or x.device.type in ("cpu", "cuda")


def _is_make_fx_tracing() -> bool:
    return False  # the ops that it is made of are traced as others are
