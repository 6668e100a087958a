"""Copies of a module on several GPUs, whose gradients come back to the module itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel import comm

T = TypeVar("T", bound=Module)

__all__ = ["replicate"]


def replicate(network: T, devices: Sequence[Any], detach: bool = False) -> list[T]:
    """Returns a copy of a module for each GPU.

    What a copy has in place of a parameter is computed from it, so that gradients of all copies are
    added up in the parameter; a copy has no parameters of its own. On the GPU where the module is,
    parameters and buffers share its memory; what a forward writes into buffers elsewhere is lost.

    Args:
        network: the module.
        devices: the GPUs, as devices, names or numbers.
        detach: whether gradients stop at the copies.
    """
    targets = comm.gpus(devices)
    modules = list(network.modules())
    return [_copy_to(device, modules, detach) for device in targets]


def _copy_to(device: rl.device, modules: list[Module], detach: bool) -> Any:
    replicas = {module: module._replicate_for_data_parallel() for module in modules}
    # A tensor in several places is one in the copy too.
    copies: dict[Tensor, Tensor] = {}

    def copied(tensor: Tensor, records: bool) -> Tensor:
        if tensor not in copies:
            source = tensor.view_as(tensor) if records else tensor.detach()
            copies[tensor] = source.to(device, non_blocking=True)
        return copies[tensor]

    for module, replica in replicas.items():
        for name, child in module._modules.items():
            if child is not None:
                replica._modules[name] = replicas[child]
        replica._former_parameters = OrderedDict()
        for name, param in module._parameters.items():
            if param is not None:
                replica._former_parameters[name] = copied(param, not detach)
                setattr(replica, name, replica._former_parameters[name])
        for name, buffer in module._buffers.items():
            if buffer is None:
                continue
            if buffer.requires_grad and not detach:
                replica._buffers[name] = copied(buffer, True)
            elif buffer.device != device:
                replica._buffers[name] = copied(buffer, False)
    return replicas[modules[0]]
