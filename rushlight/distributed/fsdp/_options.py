"""Options of sharding: their checks, and the ranks, devices and exceptions that they mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.fsdp.api import ShardingStrategy
from rushlight.distributed.groups import default_group
from rushlight.nn import Module

__all__ = ["check_kind", "device_of", "ignored_by", "kind_of", "materialize", "mesh_of"]

_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


def check_kind(function: str, name: str, value: Any, kind: type) -> None:
    """Raises TypeError if an argument is of another class."""
    if not isinstance(value, kind):
        raise TypeError(f"{function}: {name} is {value!r}. It must be a {kind.__name__}.")


def device_of(device: Any) -> rl.device:
    return rl.device("cuda", device) if isinstance(device, int) else rl.device(device)


def kind_of(params: Iterable[Tensor]) -> str:
    """The kind of device of parameters: where they are, or else a GPU if there is one."""
    kinds = {param.device.type for param in params} - {"meta"}
    return kinds.pop() if len(kinds) == 1 else "cuda" if rl.cuda.is_available() else "cpu"


def ignored_by(
    modules: Iterable[Module] | None, listed: Iterable[Any] | None
) -> tuple[set[Any], set[Module]]:
    """The parameters that stay as they are, and the modules that are not looked into."""
    states: list[Any] = list(listed or ())
    inside = {*(modules or ()), *(item for item in states if isinstance(item, Module))}
    params = [item for item in states if isinstance(item, Tensor)]
    below: list[Any] = [param for module in inside for param in module.parameters()]
    return set(params + below), inside


def materialize(
    module: Module,
    init: Callable[[Module], Any] | None,
    device: rl.device | None,
    ignored: set[Any],
) -> None:
    """Makes parameters that are on meta."""
    for part in module.modules():
        own = [*part.parameters(recurse=False), *part.buffers(recurse=False)]
        if not any(tensor.is_meta and tensor not in ignored for tensor in own):
            continue
        if init is not None:
            init(part)
            continue
        reset = getattr(part, "reset_parameters", None)
        if reset is None:
            raise RuntimeError(
                f"FullyShardedDataParallel: {type(part).__name__} has parameters on meta and no "
                "reset_parameters to fill them. Pass param_init_fn."
            )
        part.to_empty(device=device or rl.device(kind_of(module.parameters())), recurse=False)
        with rl.no_grad():
            reset()


def mesh_of(kind: str, process_group: Any, strategy: ShardingStrategy) -> DeviceMesh:
    """The ranks; of two dims, copies along the first."""
    if strategy in _HYBRID:
        if isinstance(process_group, tuple):
            cut, copies = process_group
            rows: list[Any] = [None] * copies.size()
            dist.all_gather_object(rows, dist.get_process_group_ranks(cut), copies)
            names = ("replicate", "shard")
            return DeviceMesh.from_group([copies, cut], kind, rows, mesh_dim_names=names)
        count = dist.get_world_size()
        local = int(os.environ.get("LOCAL_WORLD_SIZE", count))
        return DeviceMesh(kind, rl.arange(count, device="cpu").view(-1, local))
    group = process_group or default_group()
    if strategy is ShardingStrategy.NO_SHARD:
        return DeviceMesh(kind, [[rank] for rank in dist.get_process_group_ranks(group)])
    return DeviceMesh.from_group(group, kind)
