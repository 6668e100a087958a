"""parallelize_module: applies styles to the submodules that a plan names."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._api import mesh_of
from rushlight.distributed.tensor.parallel.style import ParallelStyle
from rushlight.nn import Module

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Spreads a module over a mesh, in place, and returns it.

    Args:
        module: the same on all ranks.
        device_mesh: the ranks, along one dim; mesh["tp"] of a larger mesh.
        parallelize_plan: a style for the module, or styles for submodules by their names, where *
            and ? stand for parts of a name: "layers.*.mlp".
        src_data_rank: whose parameters count; see distribute_tensor.

    Raises:
        TypeError: for another plan.
        ValueError: for a mesh of several dims.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> from rushlight.distributed.tensor import parallel
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
        >>> plan = {"0": parallel.ColwiseParallel(), "1": parallel.RowwiseParallel()}
        >>> model = parallel.parallelize_module(model, mesh, plan)
        >>> model[1].weight.placements
        (Shard(dim=1),)
        >>> model(torch.ones(3, 4)).shape
        torch.Size([3, 2])
        >>> torch.distributed.destroy_process_group()
    """
    mesh = mesh_of("parallelize_module", device_mesh)
    if mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module: the mesh must have one dim, but {mesh} has {mesh.ndim}. Take one "
            'of them by its name, mesh["tp"] for one.'
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided, so this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        found = _named(module, path)
        if not found:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule of {module} "
                "has that name, skipping this plan entry.",
                stacklevel=2,
            )
        for submodule in found:
            parallelize_module(submodule, mesh, style, src_data_rank=src_data_rank)
    return module


def _named(module: Module, path: str) -> list[Module]:
    """The submodules on a path whose steps are patterns; the module itself for an empty one."""
    found = [module]
    for step in path.split(".") if path else ():
        found = [
            child
            for parent in found
            for name, child in parent.named_children()
            if fnmatch(name, step)
        ]
    return found
