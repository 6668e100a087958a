"""Quantized layers without products of matrices: the way in and out, activations and norms."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.nn.quantized._base import ByFloats, form_of, quantized_form
from rushlight.nn import functional as F

__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "DeQuantize",
    "Dropout",
    "ELU",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "PReLU",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]


class Quantize(nn.Module):
    """Makes floats quantized numbers of its scale and zero point.

    Args:
        scale: the distance of neighbors.
        zero_point: what stands for 0.
        dtype: torch.quint8 or qint8.

    Example:
        >>> torch.ao.nn.quantized.Quantize(0.5, 1, torch.quint8)(torch.tensor([1.0])).int_repr()
        tensor([3], dtype=torch.uint8)
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale: Any, zero_point: Any, dtype: Any, factory_kwargs: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("scale", rl.tensor([float(scale)], dtype=rl.float32))
        self.register_buffer("zero_point", rl.tensor([int(zero_point)], dtype=rl.int64))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        return rl.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """Returns the quantized form of a QuantStub that was observed."""
        return cls(*form_of(mod), mod.activation_post_process.dtype)


class DeQuantize(nn.Module):
    """Makes quantized tensors floats.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([1.0]), 0.5, 1, torch.quint8)
        >>> torch.ao.nn.quantized.DeQuantize()(q)
        tensor([1.])
    """

    def forward(self, Xq: Tensor) -> Tensor:
        return Xq.dequantize()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """Returns the quantized form of a DeQuantStub."""
        return cls()


class ReLU6(nn.ReLU):
    """nn.ReLU6 of quantized tensors, in the input's form."""

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """Returns the quantized form of a ReLU6."""
        return cls(mod.inplace)


class Dropout(nn.Dropout):
    """nn.Dropout of quantized tensors, which it returns as they are."""

    def _get_name(self) -> str:
        return "QuantizedDropout"

    def forward(self, input: Tensor) -> Tensor:
        return input

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        """Returns the quantized form of a Dropout."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Dropout:
        """Returns the quantized form of a Dropout."""
        return cls.from_float(mod)


class _BatchNorm(ByFloats):
    """A batch norm by its running statistics.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: kept for its name.
    """

    _relu = False
    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight, self.bias = (
            nn.Parameter(rl.ones(num_features)),
            nn.Parameter(rl.zeros(num_features)),
        )
        self.register_buffer("running_mean", rl.zeros(num_features))
        self.register_buffer("running_var", rl.ones(num_features))
        self.register_buffer("num_batches_tracked", rl.tensor(0))

    affine = track_running_stats = True
    extra_repr = nn.BatchNorm2d.extra_repr  # pyright: ignore[reportAssignmentType]

    def _values(self, x: Tensor) -> Tensor:
        y = F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight.detach(),
            self.bias.detach(),
            False,
            0.0,
            self.eps,
        )
        return y.relu() if self._relu else y

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Returns the quantized form of a float layer that was observed."""
        scale, zero_point = form_of(mod)
        return cls.from_reference(
            mod[0] if isinstance(mod, nn.Sequential) else mod, scale, zero_point
        )

    @classmethod
    def from_reference(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """Returns the quantized form of a float layer, with a form for its results."""
        result = cls(bn.num_features, bn.eps)
        form = {"scale": output_scale, "zero_point": output_zero_point}
        result.load_state_dict({**bn.state_dict(), **form}, strict=False)
        return result


class BatchNorm2d(_BatchNorm):
    """nn.BatchNorm2d of quantized images, by its running statistics."""


class BatchNorm3d(_BatchNorm):
    """nn.BatchNorm3d of quantized volumes, by its running statistics."""


_NORM_PARAMS = "num_features weight bias scale zero_point eps momentum affine track_running_stats"
_NORM = (
    "num_features",
    "eps",
    "momentum",
    "affine",
    "track_running_stats",
    "weight",
    "bias",
    "running_mean",
    "running_var",
    "num_batches_tracked",
)
Hardswish = quantized_form(
    nn.Hardswish, "scale zero_point", ("inplace",), lambda m, x: F.hardswish(x)
)
LeakyReLU = quantized_form(
    nn.LeakyReLU,
    "scale zero_point negative_slope inplace",
    ("negative_slope", "inplace"),
    lambda m, x: F.leaky_relu(x, m.negative_slope),
)
ELU = quantized_form(
    nn.ELU, "scale zero_point alpha", ("alpha", "inplace"), lambda m, x: F.elu(x, m.alpha), False
)
Sigmoid = quantized_form(
    nn.Sigmoid, "output_scale output_zero_point", (), lambda m, x: x.sigmoid(), False
)
Softmax = quantized_form(
    nn.Softmax, "dim scale zero_point", ("dim",), lambda m, x: F.softmax(x, m.dim), False
)
PReLU = quantized_form(
    nn.PReLU,
    "output_scale output_zero_point num_parameters",
    ("num_parameters", "weight"),
    nn.PReLU.forward,
    False,
)
LayerNorm = quantized_form(
    nn.LayerNorm,
    "normalized_shape weight bias scale zero_point eps elementwise_affine",
    ("normalized_shape", "eps", "elementwise_affine", "weight", "bias"),
    nn.LayerNorm.forward,
)
GroupNorm = quantized_form(
    nn.GroupNorm,
    "num_groups num_channels weight bias scale zero_point eps affine",
    ("num_groups", "num_channels", "eps", "affine", "weight", "bias"),
    nn.GroupNorm.forward,
)
InstanceNorm1d = quantized_form(nn.InstanceNorm1d, _NORM_PARAMS, _NORM, nn.InstanceNorm1d.forward)
InstanceNorm2d = quantized_form(nn.InstanceNorm2d, _NORM_PARAMS, _NORM, nn.InstanceNorm2d.forward)
InstanceNorm3d = quantized_form(nn.InstanceNorm3d, _NORM_PARAMS, _NORM, nn.InstanceNorm3d.forward)
