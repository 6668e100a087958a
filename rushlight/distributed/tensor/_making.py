"""Tensors and modules that are spread over a mesh: from what one process has, and from sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight._signatures import signature
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._api import DTensor, mesh_of, wrap
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, normalized
from rushlight.distributed.tensor._redistribute import move
from rushlight.distributed.tensor.placement_types import Placement, Replicate
from rushlight.nn import Module, Parameter

__all__ = [
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "linspace",
    "logspace",
    "ones",
    "rand",
    "randn",
    "zeros",
]


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Returns a tensor spread over a mesh. It is a leaf; use DTensor.from_local for others.

    Args:
        tensor: the whole, of the same shape and dtype on all ranks.
        device_mesh: the ranks.
        placements: one for each dim of the mesh; copies on all ranks by default.
        src_data_rank: whose values count, as the place along each dim of the mesh; None takes each
            rank's own and exchanges nothing.

    Raises:
        RuntimeError: for a tensor with a history.
        ValueError: if there is not one placement for each dim of the mesh, or the tensor is
            distributed otherwise already.
    """
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor!"
        )
    mesh = mesh_of("distribute_tensor", device_mesh)
    places = normalized("distribute_tensor", placements, mesh, tensor.dim())
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != places:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} on "
                f"{tensor.device_mesh} to different placements {places} on {mesh}. Do you want to "
                "call `redistribute` instead?"
            )
        return tensor
    local = tensor.detach()
    if local.device.type != mesh.device_type and not local.is_meta:
        local = local.to(mesh.device_type)
    copies = DTensorSpec(mesh, (Replicate(),) * mesh.ndim, tensor.shape)
    if src_data_rank is not None and not local.is_meta:
        local = local.clone(memory_format=rl.contiguous_format)
        for m in range(mesh.ndim):
            dist.broadcast(local, group=mesh.get_group(m), group_src=src_data_rank)
    local = move(local, copies, places)
    return _leaf(local, DTensorSpec(mesh, places, tensor.shape), tensor.requires_grad)


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Makes the parameters and buffers of a module DTensors, in place, and returns the module.

    Args:
        module: whose ranks have the same.
        device_mesh: the ranks.
        partition_fn: called with the name of each submodule, the submodule and the mesh; it may
            replace parameters by DTensors. Those that are left become copies on all ranks.
        input_fn: (module, inputs, device_mesh), called before forward; what it returns are the
            inputs.
        output_fn: (module, outputs, device_mesh), called after forward; what it returns is the
            output.

    Raises:
        RuntimeError: if it was called on the module before.
        ValueError: if input_fn or output_fn takes another number of arguments.
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been "
            "called on this module!"
        )
    mesh = mesh_of("distribute_module", device_mesh)
    given = input_fn and _with_module("input_fn", input_fn)
    changed = output_fn and _with_module("output_fn", output_fn)
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
        _replicate(submodule, mesh)
    if given is not None:
        module.register_forward_pre_hook(lambda mod, inputs: given(mod, inputs, mesh))
    if changed is not None:
        module.register_forward_hook(lambda mod, _, outputs: changed(mod, outputs, mesh))
    module._distribute_module_applied = True
    return module


def _with_module(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the module, too, where it has the older form that is not told."""
    count = len(signature(function).parameters)
    if count == 3:
        return function
    if count != 2:
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    warnings.warn(
        f"Deprecating {name} of (values, device_mesh). Take the module as first argument.",
        FutureWarning,
        stacklevel=3,
    )
    return lambda _, values, mesh: function(values, mesh)


def _replicate(module: Module, mesh: DeviceMesh) -> None:
    """Makes copies of the module's own parameters and buffers that are not distributed yet."""
    for name, param in list(module._parameters.items()):
        if param is not None and not isinstance(param, DTensor):
            made = Parameter(distribute_tensor(param.detach(), mesh), param.requires_grad)
            module.register_parameter(name, made)
    for name, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh)


def _made(
    name: str,
    size: tuple[Any, ...],
    fill: tuple[Any, ...],
    dtype: rl.dtype | None,
    layout: Any,
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
) -> DTensor:
    """What the factory of that name makes of the part of each rank."""
    _check_layout(name, layout)
    mesh = mesh_of(name, device_mesh)
    shape = rl.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    spec = DTensorSpec(mesh, normalized(name, placements, mesh, len(shape)), shape)
    factory = getattr(rl, name)
    if name.startswith("rand"):
        # The numbers that the first rank draws, as random ops have them too.
        whole = factory(shape, dtype=dtype, device=mesh.device_type)
        return distribute_tensor(whole.requires_grad_(requires_grad), mesh, spec.placements)
    local = factory(spec.local_shape(), *fill, dtype=dtype, device=mesh.device_type)
    return _leaf(local, spec, requires_grad)


def _check_layout(name: str, layout: Any) -> None:
    if layout is not None and layout != rl.strided:
        raise RuntimeError(f"{name}: layout must be torch.strided, not {layout}.")


def _leaf(local: Tensor, spec: DTensorSpec, requires_grad: bool) -> DTensor:
    made = wrap(local, spec)
    made.requires_grad_(requires_grad)
    return made


def ones(
    *size: Any,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns a tensor of ones on a mesh.

    Args:
        size: of the whole, as numbers or a sequence.
        dtype: the default dtype by default.
        layout: torch.strided.
        requires_grad: whether backward computes its gradient.
        device_mesh: the ranks.
        placements: how it lies; copies on all ranks by default.
    """
    return _made("ones", size, (), dtype, layout, requires_grad, device_mesh, placements)


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns a tensor of zeros on a mesh; see ones."""
    return _made("zeros", size, (), dtype, layout, requires_grad, device_mesh, placements)


def empty(
    *size: Any,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns a tensor on a mesh whose memory is not initialized; see ones."""
    return _made("empty", size, (), dtype, layout, requires_grad, device_mesh, placements)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns a tensor on a mesh, all of whose elements are fill_value; see ones."""
    return _made(
        "full", (size,), (fill_value,), dtype, layout, requires_grad, device_mesh, placements
    )


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns a tensor on a mesh, uniform in [0, 1); see ones.

    The numbers are those of torch.rand on the first rank, which draws them all.
    """
    return _made("rand", size, (), dtype, layout, requires_grad, device_mesh, placements)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns a tensor on a mesh, of the standard normal distribution; see rand."""
    return _made("randn", size, (), dtype, layout, requires_grad, device_mesh, placements)


def _spaced(
    name: str,
    ends: tuple[Any, Any],
    rest: tuple[Any, ...],
    dtype: rl.dtype | None,
    layout: Any,
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
) -> DTensor:
    """The part of each rank of what linspace or logspace gives."""
    _check_layout(name, layout)
    for end in ends:
        if isinstance(end, Tensor) and end.dim():
            raise RuntimeError(f"{name}: start and end must have no dims, but one has {end.dim()}.")
    mesh = mesh_of(name, device_mesh)
    start, end = (end.item() if isinstance(end, Tensor) else end for end in ends)
    whole = getattr(rl, name)(start, end, *rest, dtype=dtype, device=mesh.device_type)
    whole.requires_grad_(requires_grad)
    return distribute_tensor(whole, mesh, placements, src_data_rank=None)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns numbers at even distances on a mesh; see ones.

    Args:
        start, end: the first and the last; numbers, or tensors without dims.
        steps: how many numbers the whole has.
        dtype, layout, requires_grad, device_mesh, placements: as in ones.
    """
    return _spaced(
        *("linspace", (start, end), (steps,)),
        *(dtype, layout, requires_grad, device_mesh, placements),
    )


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: rl.dtype | None = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Returns base**start to base**end on a mesh, at even distances of the exponents; see linspace.

    Args:
        start, end: the exponents.
        steps: how many numbers the whole has.
        base: what is raised to them.
        dtype, layout, requires_grad, device_mesh, placements: as in ones.
    """
    return _spaced(
        *("logspace", (start, end), (steps, base)),
        *(dtype, layout, requires_grad, device_mesh, placements),
    )
