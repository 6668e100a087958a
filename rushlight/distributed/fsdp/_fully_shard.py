"""fully_shard and what it makes of a module: FSDPModule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as rl
from rushlight import distributed as dist
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.fsdp._options import check_kind, kind_of
from rushlight.distributed.fsdp._param_group import ParamGroup, Place, ShardMesh
from rushlight.distributed.fsdp._policies import MixedPrecisionPolicy, OffloadPolicy
from rushlight.distributed.fsdp._state import ShardState, state_of, states_in
from rushlight.distributed.tensor.placement_types import Shard
from rushlight.nn import Module, ModuleDict, ModuleList, Parameter

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "shard"]


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008
    ignored_params: set[Parameter] | None = None,
) -> Any:
    """Cuts the parameters of a module over ranks, in place, and returns the module.

    Each rank keeps a part of every parameter, a DTensor. Forward and backward gather the whole ones
    of this call, all together, and let them go; backward leaves the mean of the ranks' gradients,
    cut in the same way (Rajbhandari et al. 2020, ZeRO, stage 3). Parameters of modules below that
    were sharded before come and go with those. docs/fsdp.md says more.

    Args:
        module: the module, the same on all ranks; or a list of modules that are called in a row. It
            becomes an instance of FSDPModule, too.
        mesh: the ranks, of one dim; or of two: the parameters are cut along the second and are
            copies along the first. All ranks by default.
        reshard_after_forward: whether to let the whole parameters go after forward, which costs
            another gathering in backward. True but for the root by default. PyTorch's number of
            ranks counts as True, but for 1.
        shard_placement_fn: returns the dim of a parameter to cut; dim 0 for None.
        mp_policy: dtypes.
        offload_policy: where the parts are kept.
        ignored_params: parameters that stay as they are.

    Raises:
        ValueError: for a container without forward, a module that was sharded already, or a mesh
            that does not fit.
        TypeError: for arguments of other classes.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> model = torch.distributed.fsdp.fully_shard(torch.nn.Linear(4, 2))
        >>> model.weight.placements
        (Shard(dim=0),)
        >>> model(torch.ones(3, 4)).sum().backward()
        >>> model.bias.grad.full_tensor()
        tensor([3., 3.])
        >>> torch.distributed.destroy_process_group()
    """
    modules = list(module) if isinstance(module, list | tuple) else [module]
    check_kind("fully_shard", "mp_policy", mp_policy, MixedPrecisionPolicy)
    check_kind("fully_shard", "offload_policy", offload_policy, OffloadPolicy)
    if mesh is not None:
        check_kind("fully_shard", "mesh", mesh, DeviceMesh)
    for each in modules:
        check_kind("fully_shard", "module", each, Module)
        if type(each) in (ModuleList, ModuleDict):
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {each}"
            )
        if isinstance(each, FSDPModule):
            raise ValueError(
                f"fully_shard: this {type(each).__name__} was sharded already. Shard each module "
                "once, those below before those above."
            )
    shard(
        modules,
        ShardMesh(mesh or _all_ranks(modules)),
        _reshards(reshard_after_forward),
        mp_policy,
        offload_policy,
        set(ignored_params or ()),
        shard_placement_fn,
    )
    for each in modules:
        kind = type(each)
        made = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})
        each.__class__ = made
    return module


def _reshards(wanted: bool | int | None) -> bool | None:
    return wanted if wanted is None or isinstance(wanted, bool) else wanted != 1


def _all_ranks(modules: list[Module]) -> DeviceMesh:
    kind = kind_of(param for each in modules for param in each.parameters())
    if not dist.is_initialized():
        dist.init_process_group()
    return init_device_mesh(kind, (dist.get_world_size(),))


def shard(
    modules: list[Module],
    ranks: ShardMesh,
    reshards: bool | None,
    precision: MixedPrecisionPolicy,
    offload: OffloadPolicy,
    ignored: set[Parameter],
    placement: Callable[[Parameter], Shard | None] | None = None,
) -> ShardState:
    """Cuts the parameters of modules that are not cut yet, and gives the modules a state."""
    kind = ranks.mesh.device_type
    device = rl.device("cuda", rl.cuda.current_device()) if kind == "cuda" else rl.device(kind)
    found = _own_params(modules, ignored)
    kinds: dict[rl.dtype, list[tuple[str, list[Place], Parameter]]] = {}
    for item in found:
        kinds.setdefault(item[2].dtype, []).append(item)
    groups = [
        ParamGroup(
            params,
            [_shard_of(name, param, placement) for name, _, param in params],
            ranks,
            device,
            precision,
            offload,
        )
        for params in kinds.values()
    ]
    for each in modules:
        for part in each.modules():
            for name, buffer in part._buffers.items():
                if buffer is not None and buffer.device != device and not buffer.is_meta:
                    part._buffers[name] = buffer.to(device)
    return ShardState(modules, groups, precision, reshards)


def _shard_of(
    name: str, param: Parameter, placement: Callable[[Parameter], Shard | None] | None
) -> Shard:
    if not param.dim():
        raise ValueError(
            f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with "
            "numel equal to 1."
        )
    shard = placement(param) if placement is not None else None
    if shard is None:
        return Shard(0)
    if not isinstance(shard, Shard):
        raise ValueError(
            f"fully_shard: shard_placement_fn must return a Shard or None, not {shard}."
        )
    return Shard(shard.dim % param.dim())


def _own_params(
    modules: list[Module], ignored: set[Parameter]
) -> list[tuple[str, list[Place], Parameter]]:
    """The parameters below modules that no module below has cut: name, places and parameter."""
    taken = {id(p) for m in modules for s in states_in(m) for p in s.params()}
    skipped = {id(param) for param in ignored}
    found: dict[int, tuple[str, list[Place], Parameter]] = {}
    for each in modules:
        for prefix, part in each.named_modules():
            for name, param in part._parameters.items():
                if param is None or id(param) in taken or id(param) in skipped:
                    continue
                full = f"{prefix}.{name}" if prefix else name
                found.setdefault(id(param), (full, [], param))[1].append((part, name))
    return list(found.values())


class FSDPModule:
    """What fully_shard adds to a module."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes one that is not sharded, of the class that fully_shard found."""
        plain: Any = cls.__mro__[2]
        return plain(*args, **kwargs)

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError(
            "FSDP does not support deepcopy. Please use state dict for serialization."
        )

    @property
    def _state(self) -> ShardState:
        state = state_of(self)  # pyright: ignore[reportArgumentType]
        assert state is not None
        return state

    def _states(self, recurse: bool) -> Iterator[ShardState]:
        yield from states_in(self) if recurse else [self._state]  # pyright: ignore[reportArgumentType]

    def _groups(self, recurse: bool) -> Iterator[ParamGroup]:
        for state in self._states(recurse):
            yield from state.groups

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """What to, float, to_empty and the like do, to the parts."""
        self.reshard()
        return super()._apply(*args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Returns parameters and buffers by name, parameters as DTensors."""
        for state in self._states(True):
            state.reshard()
        return super().state_dict(*args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Puts the whole parameters of this module, not of those below, into it until reshard.

        Args:
            async_op: whether to return at once, a handle to wait for.
        """
        if async_op:
            self._state.begin_gather()
            return UnshardHandle(self._state)
        self._state.unshard()
        return None

    def reshard(self) -> None:
        """Lets the whole parameters of this module go."""
        self._state.reshard()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted for PyTorch's sake: each backward ends what it began."""

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Sets whether backward averages gradients, or adds them up whole until one that does.

        Args:
            requires_gradient_sync: False while micro-batches are added up.
            recurse: whether for modules below, too.
        """
        for group in self._groups(recurse):
            group.syncs = group.reduces_copies = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Sets whether backward averages over copies, on a mesh of two dims.

        Args:
            requires_all_reduce: False adds up what the parts' ranks have averaged.
            recurse: whether for modules below, too.
        """
        for group in self._groups(recurse):
            group.reduces_copies = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Sets whether whole parameters go after forward.

        Args:
            reshard_after_forward: see fully_shard.
            recurse: whether for modules below, too.
        """
        for state in self._states(recurse):
            state.reshards_after_forward = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Sets whether whole parameters go after backward.

        Args:
            reshard_after_backward: False saves gatherings while micro-batches are added up.
            recurse: whether for modules below, too.
        """
        for state in self._states(recurse):
            state.reshards_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Sets whose gatherings begin when forward of this module does."""
        self._state.forward_prefetch = [module._state for module in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Sets whose gatherings begin when backward of this module does.

        By default that of the module that was called before.
        """
        self._state.backward_prefetch = [module._state for module in modules]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Sets by what sums of gradients are divided; by the number of ranks by default."""
        for group in self._groups(False):
            group.divisor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Sets whether backward brings whole parameters before anybody asks for them."""
        self._state.comes_in_backward = unshard_in_backward


class UnshardHandle:
    """A gathering that FSDPModule.unshard began."""

    def __init__(self, state: ShardState) -> None:
        self._state: ShardState | None = state

    def wait(self) -> None:
        """Waits for it; then the whole parameters are in the module."""
        if self._state is not None:
            self._state.unshard()
            self._state = None


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Lets another method of a sharded module use its parameters as forward does.

    Args:
        module: others than sharded ones stay as they are.
        method_name: its name.

    Raises:
        ValueError: if there is no such method.
    """
    state = state_of(module)
    if state is None:
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        output = None
        try:
            args, kwargs = state.before_forward(module, args, kwargs)
            output = method(*args, **kwargs)
        finally:
            output = state.after_forward(module, args, output)
        return output

    module.__dict__[method_name] = call
