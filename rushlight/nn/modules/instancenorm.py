"""Normalization of each channel of each sample."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor, _later
from rushlight.nn import functional as F
from rushlight.nn.modules.batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """What instance norms share: input with or without the dim of samples."""

    _dims: int  # of an input without samples

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        return self._dims

    def _check_input_dim(self, input: Tensor) -> None:
        dims = self._get_no_batch_dim()
        if input.dim() not in (dims, dims + 1):
            raise ValueError(
                f"{type(self).__name__}: expected {dims}D or {dims + 1}D input (got {input.dim()}D "
                "input). The channels come first, or after the samples."
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dims = self._get_no_batch_dim()
        channels = input.size(-dims)
        if channels != self.num_features:
            message = (
                f"{type(self).__name__}: expected input's size at dim={input.dim() - dims} to "
                f"match num_features ({self.num_features}), but got: {channels}."
            )
            if self.affine:
                raise ValueError(message)
            warnings.warn(message + " It has no effect, as affine is False.", stacklevel=2)
        samples = input if input.dim() > dims else input.unsqueeze(0)
        output = F.instance_norm(
            samples,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return output if input.dim() > dims else output.squeeze(0)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # Version 1 always kept running statistics, which a layer without them now leaves out.
        if local_metadata.get("version", 1) < 2 and not self.track_running_stats:
            for name in ("running_mean", "running_var"):
                state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each of some sequences by itself (Ulyanov et al. 2016).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with the mean and (biased) variance of the
    channel.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics.
        affine: whether weight and bias are learned.
        track_running_stats: whether to keep running statistics, which evaluation then uses.
        device: where to put the parameters.
        dtype: their dtype.
        bias: whether affine includes a bias.

    Shape:
        (N, C, L) or (C, L), unchanged.

    Raises:
        ValueError: if the input has another number of dimensions, or, with affine, of channels.

    Example:
        >>> y = torch.nn.InstanceNorm1d(1)(torch.tensor([[[1.0, 3.0]]]))
        >>> y.round(decimals=3).tolist()
        [[[-1.0, 1.0]]]
    """

    _dims = 2


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each of some images by itself (Ulyanov et al. 2016).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with the mean and (biased) variance of the
    channel.

    Args:
        num_features: number of channels C; the other arguments are those of InstanceNorm1d.

    Shape:
        (N, C, H, W) or (C, H, W), unchanged.

    Raises:
        ValueError: if the input has another number of dimensions, or, with affine, of channels.

    Example:
        >>> y = torch.nn.InstanceNorm2d(1)(torch.tensor([[[[1.0, 3.0]]]]))
        >>> y.round(decimals=3).tolist()
        [[[[-1.0, 1.0]]]]
    """

    _dims = 3


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each of some volumes by itself (Ulyanov et al. 2016).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with the mean and (biased) variance of the
    channel.

    Args:
        num_features: number of channels C; the other arguments are those of InstanceNorm1d.

    Shape:
        (N, C, D, H, W) or (C, D, H, W), unchanged.

    Raises:
        ValueError: if the input has another number of dimensions, or, with affine, of channels.

    Example:
        >>> y = torch.nn.InstanceNorm3d(1)(torch.tensor([[[[[1.0, 3.0]]]]]))
        >>> y.round(decimals=3).tolist()
        [[[[[-1.0, 1.0]]]]]
    """

    _dims = 4


# PyTorch has these here.
__getattr__ = _later.imports(
    __name__,
    names_in={
        "_lazy_layers": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
    },
    package="rushlight.nn.modules",
)
