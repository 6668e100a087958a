"""Data parallelism of a module that stays what it is, where DistributedDataParallel wraps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.nn import Module
from rushlight.nn.parallel import DistributedDataParallel

__all__ = ["replicate"]


def replicate(
    module: Module,
    ignored_modules: Iterable[Module] | None = None,
    *,
    device_mesh: DeviceMesh | None = None,
    **options: Any,
) -> Module:
    """Returns the module, whose gradients are averaged over all processes from now on.

    It gets the methods set_requires_gradient_sync, which turns that off and on, and
    register_comm_hook.

    Args:
        module: its parameters and buffers become those of rank 0.
        ignored_modules: parts of it that each process keeps to itself.
        device_mesh: of one dim, the processes; all by default.
        **options: those of DistributedDataParallel. A device_id is not needed: inputs must be on
            the device of the module.
    """
    options.pop("device_id", None)
    if device_mesh is not None:
        options["process_group"] = device_mesh.get_group()
    ignored = {id(param) for part in ignored_modules or () for param in part.parameters()}
    if ignored:
        names = [name for name, param in module.named_parameters() if id(param) in ignored]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
    parallel = DistributedDataParallel(module, **options)

    def before(_: Module, inputs: Any) -> None:
        parallel._before_forward()

    def after(_: Module, inputs: Any, outputs: Any) -> None:
        parallel._after_forward(outputs)

    def set_requires_gradient_sync(requires_gradient_sync: bool) -> None:
        parallel.require_backward_grad_sync = requires_gradient_sync

    module.register_forward_pre_hook(before, prepend=True)
    module.register_forward_hook(after)
    module.set_requires_gradient_sync = set_requires_gradient_sync
    module.register_comm_hook = parallel.register_comm_hook
    return module
