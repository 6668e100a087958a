"""Copies of a module on several GPUs, whose gradients come back to the module itself."""

from __future__ import annotations

from collections import OrderedDict

from rushlight.nn.modules._members import BUFFERS, MODULE, PARAMETER
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel import comm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    import rushlight as rl
    from rushlight import Tensor

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
        members: dict[str, Any] = replica.__dict__
        members["_former_parameters"] = OrderedDict()
        for name, kind in module._kinds.items():
            value = module.__dict__[name]
            if value is None:
                continue
            if kind == MODULE:
                members[name] = replicas[value]
            elif kind == PARAMETER:
                members[name] = copied(value, not detach)
                members["_former_parameters"][name] = members[name]
            elif kind in BUFFERS and value.requires_grad and not detach:
                members[name] = copied(value, True)
            elif kind in BUFFERS and value.device != device:
                members[name] = copied(value, False)
    return replicas[modules[0]]
