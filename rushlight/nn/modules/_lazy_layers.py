"""The layers whose number of inputs is that of the first input they see."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase
from rushlight.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
    _ConvTransposeNd,
)
from rushlight.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.linear import Linear
from rushlight.nn.parameter import (
    UninitializedBuffer,
    UninitializedParameter,
)

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


def _materialize(tensor: Tensor | None, *shape: int) -> None:
    """Gives a tensor of unknown shape this one."""
    if isinstance(tensor, (UninitializedParameter, UninitializedBuffer)):
        tensor.materialize(shape)


class LazyLinear(LazyModuleMixin, Linear):
    """Linear that learns in_features from its first input.

    Args:
        out_features: size of the output's last dimension; the other arguments are those of Linear.

    Example:
        >>> layer = torch.nn.LazyLinear(4)
        >>> layer
        LazyLinear(in_features=0, out_features=4, bias=True)
        >>> y = layer(torch.zeros(2, 3))
        >>> layer
        Linear(in_features=3, out_features=4, bias=True)
    """

    cls_to_become = Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(0, 0, False)
        factory: Any = {"device": device, "dtype": dtype}
        self.out_features = out_features
        self.weight = UninitializedParameter(**factory)
        if bias:
            self.bias = UninitializedParameter(**factory)

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, once there are some."""
        if self.in_features != 0 and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Gives weight and bias their shapes."""
        if self.has_uninitialized_params():
            with rl.no_grad():
                self.in_features = input.shape[-1]
                _materialize(self.weight, self.out_features, self.in_features)
                _materialize(self.bias, self.out_features)
                self.reset_parameters()
        if self.in_features == 0:  # the parameters were loaded
            self.in_features = self.weight.shape[-1]


class _LazyConvNd(LazyModuleMixin, _ConvNd):
    """What lazy convolutions share."""

    _dims: int

    def _forget_shapes(self, out_channels: int, bias: bool, factory: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(**factory)
        if bias:
            self.bias = UninitializedParameter(**factory)

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, once there are some."""
        if self.in_channels != 0 and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Gives weight and bias their shapes."""
        if not self.has_uninitialized_params():
            if self.in_channels == 0:  # the parameters were loaded
                self.in_channels = self._channels(input)
            return
        self.in_channels = self._channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError(
                f"{type(self).__name__}: in_channels must be divisible by groups, but got "
                f"{self.in_channels} and {self.groups}."
            )
        _materialize(self.weight, *self._weight_shape())
        _materialize(self.bias, self.out_channels)
        self.reset_parameters()

    def _channels(self, input: Tensor) -> int:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise RuntimeError(
                f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {tuple(input.shape)}"
            )
        return input.shape[-self._dims - 1]


class _LazyConv(_LazyConvNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._forget_shapes(out_channels, bias, {"device": device, "dtype": dtype})


class _LazyTransposedConv(_LazyConvNd, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
        )
        self._forget_shapes(out_channels, bias, {"device": device, "dtype": dtype})


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d that learns in_channels from its first input.

    Args:
        out_channels: channels of the output; the other arguments are those of Conv1d.

    Example:
        >>> layer = torch.nn.LazyConv1d(4, kernel_size=3)
        >>> tuple(layer(torch.zeros(2, 5, 7)).shape)[:2]
        (2, 4)
        >>> layer.in_channels
        5
    """

    cls_to_become = Conv1d
    _dims = 1


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d that learns in_channels from its first input.

    Args:
        out_channels: channels of the output; the other arguments are those of Conv2d.

    Example:
        >>> layer = torch.nn.LazyConv2d(4, kernel_size=3)
        >>> tuple(layer(torch.zeros(2, 5, 7, 7)).shape)[:2]
        (2, 4)
        >>> layer.in_channels
        5
    """

    cls_to_become = Conv2d
    _dims = 2


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d that learns in_channels from its first input.

    Args:
        out_channels: channels of the output; the other arguments are those of Conv3d.

    Example:
        >>> layer = torch.nn.LazyConv3d(4, kernel_size=3)
        >>> tuple(layer(torch.zeros(2, 5, 7, 7, 7)).shape)[:2]
        (2, 4)
        >>> layer.in_channels
        5
    """

    cls_to_become = Conv3d
    _dims = 3


class LazyConvTranspose1d(_LazyTransposedConv, ConvTranspose1d):
    """ConvTranspose1d that learns in_channels from its first input.

    Args:
        out_channels: channels of the output; the other arguments are those of ConvTranspose1d.

    Example:
        >>> layer = torch.nn.LazyConvTranspose1d(4, kernel_size=3)
        >>> tuple(layer(torch.zeros(2, 5, 7)).shape)[:2]
        (2, 4)
        >>> layer.in_channels
        5
    """

    cls_to_become = ConvTranspose1d
    _dims = 1


class LazyConvTranspose2d(_LazyTransposedConv, ConvTranspose2d):
    """ConvTranspose2d that learns in_channels from its first input.

    Args:
        out_channels: channels of the output; the other arguments are those of ConvTranspose2d.

    Example:
        >>> layer = torch.nn.LazyConvTranspose2d(4, kernel_size=3)
        >>> tuple(layer(torch.zeros(2, 5, 7, 7)).shape)[:2]
        (2, 4)
        >>> layer.in_channels
        5
    """

    cls_to_become = ConvTranspose2d
    _dims = 2


class LazyConvTranspose3d(_LazyTransposedConv, ConvTranspose3d):
    """ConvTranspose3d that learns in_channels from its first input.

    Args:
        out_channels: channels of the output; the other arguments are those of ConvTranspose3d.

    Example:
        >>> layer = torch.nn.LazyConvTranspose3d(4, kernel_size=3)
        >>> tuple(layer(torch.zeros(2, 5, 7, 7, 7)).shape)[:2]
        (2, 4)
        >>> layer.in_channels
        5
    """

    cls_to_become = ConvTranspose3d
    _dims = 3


class _LazyNorm(LazyModuleMixin, _NormBase):
    """What lazy norms share."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, bias=False)
        factory: Any = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**factory)
            if bias:
                self.bias = UninitializedParameter(**factory)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = rl.tensor(0, dtype=rl.int64, device=device)

    def reset_parameters(self) -> None:
        """Resets weight, bias and running statistics, once there are some."""
        if self.num_features != 0 and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Gives weight, bias and running statistics their shapes."""
        if not self.has_uninitialized_params():
            if self.num_features == 0:  # they were loaded
                self.num_features = self._channels(input)
            return
        self.num_features = self._channels(input)
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            _materialize(tensor, self.num_features)
        self.reset_parameters()

    def _channels(self, input: Tensor) -> int:
        return input.shape[1]


class _LazyInstanceNorm(_LazyNorm):
    _dims: int  # of an input without samples

    def _channels(self, input: Tensor) -> int:
        return input.shape[-self._dims]


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d that learns num_features from its first input.

    The arguments are those of BatchNorm1d but for num_features.

    Example:
        >>> layer = torch.nn.LazyBatchNorm1d()
        >>> y = layer(torch.rand(2, 5, 7))
        >>> layer.num_features, tuple(layer.weight.shape)
        (5, (5,))
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d that learns num_features from its first input.

    The arguments are those of BatchNorm2d but for num_features.

    Example:
        >>> layer = torch.nn.LazyBatchNorm2d()
        >>> y = layer(torch.rand(2, 5, 7, 7))
        >>> layer.num_features, tuple(layer.weight.shape)
        (5, (5,))
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d that learns num_features from its first input.

    The arguments are those of BatchNorm3d but for num_features.

    Example:
        >>> layer = torch.nn.LazyBatchNorm3d()
        >>> y = layer(torch.rand(2, 5, 7, 7, 7))
        >>> layer.num_features, tuple(layer.weight.shape)
        (5, (5,))
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """InstanceNorm1d that learns num_features from its first input.

    The arguments are those of InstanceNorm1d but for num_features; affine and
    track_running_stats are True unless given, as in PyTorch.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm1d()
        >>> y = layer(torch.rand(2, 5, 7))
        >>> layer.num_features, tuple(layer.weight.shape)
        (5, (5,))
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """InstanceNorm2d that learns num_features from its first input.

    The arguments are those of InstanceNorm2d but for num_features; affine and
    track_running_stats are True unless given, as in PyTorch.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm2d()
        >>> y = layer(torch.rand(2, 5, 7, 7))
        >>> layer.num_features, tuple(layer.weight.shape)
        (5, (5,))
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """InstanceNorm3d that learns num_features from its first input.

    The arguments are those of InstanceNorm3d but for num_features; affine and
    track_running_stats are True unless given, as in PyTorch.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm3d()
        >>> y = layer(torch.rand(2, 5, 7, 7, 7))
        >>> layer.num_features, tuple(layer.weight.shape)
        (5, (5,))
    """

    cls_to_become = InstanceNorm3d
