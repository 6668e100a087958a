"""Layers that many vision models share: convolution with norm and activation, squeeze-excitation.

The order of the layers inside each block is torchvision's, so that the keys of a state_dict are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.nn import functional as F

MakeLayer = Callable[..., nn.Module]

__all__ = [
    "MLP",
    "Conv2dNormActivation",
    "Conv3dNormActivation",
    "ConvNormActivation",
    "FrozenBatchNorm2d",
    "Permute",
    "SqueezeExcitation",
]


class FrozenBatchNorm2d(nn.Module):
    """BatchNorm2d whose statistics and affine parameters are buffers, so nothing of it learns.

    Args:
        num_features: channels C of an input (N, C, H, W).
        eps: added to the variance.

    Example:
        >>> FrozenBatchNorm2d(8)(torch.zeros(2, 8, 4, 4)).shape
        torch.Size([2, 8, 4, 4])
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", rl.ones(num_features))
        self.register_buffer("bias", rl.zeros(num_features))
        self.register_buffer("running_mean", rl.zeros(num_features))
        self.register_buffer("running_var", rl.ones(num_features))

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        state_dict.pop(prefix + "num_batches_tracked", None)  # what a BatchNorm2d has besides
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


class ConvNormActivation(nn.Sequential):
    """A convolution, then a norm and an activation: what the 2d and 3d blocks share."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...] = 3,
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str | None = None,
        groups: int = 1,
        norm_layer: MakeLayer | None = nn.BatchNorm2d,
        activation_layer: MakeLayer | None = nn.ReLU,
        dilation: int | tuple[int, ...] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
        conv_layer: MakeLayer = nn.Conv2d,
    ) -> None:
        layers = [
            conv_layer(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                _same_padding(kernel_size, dilation) if padding is None else padding,
                dilation=dilation,
                groups=groups,
                bias=norm_layer is None if bias is None else bias,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels
        if type(self) is ConvNormActivation:
            warnings.warn(
                "Don't use ConvNormActivation directly, please use Conv2dNormActivation and "
                "Conv3dNormActivation instead.",
                stacklevel=2,
            )


def _same_padding(
    kernel_size: int | tuple[int, ...], dilation: int | tuple[int, ...]
) -> int | tuple[int, ...]:
    """The padding that keeps the size of the input at stride 1: (kernel - 1) // 2 * dilation."""
    if isinstance(kernel_size, int) and isinstance(dilation, int):
        return (kernel_size - 1) // 2 * dilation
    dims = len(kernel_size) if isinstance(kernel_size, Sequence) else len(dilation)  # pyright: ignore[reportArgumentType]
    kernels = (kernel_size,) * dims if isinstance(kernel_size, int) else kernel_size
    dilations = (dilation,) * dims if isinstance(dilation, int) else dilation
    return tuple((k - 1) // 2 * d for k, d in zip(kernels, dilations, strict=True))


class Conv2dNormActivation(ConvNormActivation):
    """Conv2d, norm, activation.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: size of the kernel.
        stride: step of the kernel.
        padding: on each side; None keeps the size at stride 1.
        groups: groups of channels that do not see each other.
        norm_layer: makes the norm from the number of channels; None leaves it out.
        activation_layer: makes the activation; None leaves it out.
        dilation: distance of the kernel's elements.
        inplace: passed to activation_layer; None passes nothing.
        bias: whether the convolution has one; None gives it one if there is no norm.

    Example:
        >>> Conv2dNormActivation(3, 8, stride=2)(torch.zeros(1, 3, 16, 16)).shape
        torch.Size([1, 8, 8, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str | None = None,
        groups: int = 1,
        norm_layer: MakeLayer | None = nn.BatchNorm2d,
        activation_layer: MakeLayer | None = nn.ReLU,
        dilation: int | tuple[int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            groups,
            norm_layer,
            activation_layer,
            dilation,
            inplace,
            bias,
            nn.Conv2d,
        )


class Conv3dNormActivation(ConvNormActivation):
    """Conv3d, norm, activation; the arguments are those of Conv2dNormActivation.

    Example:
        >>> Conv3dNormActivation(3, 8)(torch.zeros(1, 3, 4, 8, 8)).shape
        torch.Size([1, 8, 4, 8, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int] = 3,
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] | str | None = None,
        groups: int = 1,
        norm_layer: MakeLayer | None = nn.BatchNorm3d,
        activation_layer: MakeLayer | None = nn.ReLU,
        dilation: int | tuple[int, int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            groups,
            norm_layer,
            activation_layer,
            dilation,
            inplace,
            bias,
            nn.Conv3d,
        )


class SqueezeExcitation(nn.Module):
    """Weighs each channel by what a small network makes of the channels' means.

    Hu et al. 2018, Squeeze-and-Excitation Networks, section 3.

    Args:
        input_channels: channels of the input (N, C, H, W).
        squeeze_channels: channels in the middle of the small network.
        activation: makes the activation in the middle.
        scale_activation: makes the activation at the end.

    Example:
        >>> SqueezeExcitation(16, 4)(torch.zeros(1, 16, 8, 8)).shape
        torch.Size([1, 16, 8, 8])
    """

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: MakeLayer = nn.ReLU,
        scale_activation: MakeLayer = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        squeezed = self.activation(self.fc1(self.avgpool(input)))  # (N, squeeze_channels, 1, 1)
        return self.scale_activation(self.fc2(squeezed)) * input


class MLP(nn.Sequential):
    """Linear layers, each but the last followed by norm, activation and dropout.

    Args:
        in_channels: features of the input.
        hidden_channels: features after each layer; the last is the result's.
        norm_layer: makes the norm from the number of features; None leaves it out.
        activation_layer: makes the activation; None leaves it out.
        inplace: passed to activation and dropout; None passes nothing.
        bias: whether the linear layers have one.
        dropout: probability to zero an element, after the last layer too.

    Example:
        >>> MLP(4, [8, 2])(torch.zeros(3, 4)).shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: list[int],
        norm_layer: MakeLayer | None = None,
        activation_layer: MakeLayer | None = nn.ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        options: dict[str, Any] = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        *hidden, last = hidden_channels
        for features in hidden:
            layers.append(nn.Linear(in_channels, features, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(features))
            if activation_layer is not None:
                layers.append(activation_layer(**options))
            layers.append(nn.Dropout(dropout, **options))
            in_channels = features
        layers += [nn.Linear(in_channels, last, bias=bias), nn.Dropout(dropout, **options)]
        super().__init__(*layers)


class Permute(nn.Module):
    """The input as a view with its dimensions in another order.

    Args:
        dims: for each dimension of the result, the one of the input.

    Example:
        >>> Permute([0, 2, 3, 1])(torch.zeros(1, 3, 4, 5)).shape
        torch.Size([1, 4, 5, 3])
    """

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return rl.permute(x, self.dims)
