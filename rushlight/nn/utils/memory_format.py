"""The memory format of the weights of convolutions, and of nothing else."""

from __future__ import annotations

from typing import TypeVar

import rushlight as rl
from rushlight.nn.modules.conv import _ConvNd
from rushlight.nn.modules.module import Module

M = TypeVar("M", bound=Module)

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: M, memory_format: rl.memory_format) -> M:
    """Gives the weights of all Conv2d and ConvTranspose2d in a module a memory format.

    Args:
        module: a layer or a network.
        memory_format: such as torch.channels_last.

    Returns:
        module.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(8, 4, 3))
        >>> net = torch.nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last)
        >>> net[0].weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _converted(module, memory_format, 4)


def convert_conv3d_weight_memory_format(module: M, memory_format: rl.memory_format) -> M:
    """Gives the weights of all Conv3d and ConvTranspose3d in a module a memory format.

    Args:
        module: a layer or a network.
        memory_format: such as torch.channels_last_3d.

    Returns:
        module.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv3d(8, 4, 3))
        >>> net = torch.nn.utils.convert_conv3d_weight_memory_format(net, torch.channels_last_3d)
        >>> net[0].weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _converted(module, memory_format, 5)


def _converted(module: M, memory_format: rl.memory_format, dims: int) -> M:
    for layer in module.modules():
        if isinstance(layer, _ConvNd) and layer.weight.ndim == dims:
            layer.weight.data = layer.weight.detach().clone(memory_format=memory_format)
    return module
