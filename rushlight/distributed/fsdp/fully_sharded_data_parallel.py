"""FullyShardedDataParallel: a wrapper that shards a module as fully_shard does.

Owns the older interface and its options; _state_dicts.py has its state dicts, and the sharding
itself is that of fully_shard.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed import utils
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.fsdp._fully_shard import shard
from rushlight.distributed.fsdp._options import (
    check_kind,
    device_of,
    ignored_by,
    kind_of,
    materialize,
    mesh_of,
)
from rushlight.distributed.fsdp._param_group import ShardMesh
from rushlight.distributed.fsdp._policies import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from rushlight.distributed.fsdp._state import states_in
from rushlight.distributed.fsdp._state_dicts import StateDicts
from rushlight.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)
from rushlight.distributed.fsdp.api import LocalStateDictConfig as LocalStateDictConfig
from rushlight.distributed.fsdp.api import (
    ShardedOptimStateDictConfig as ShardedOptimStateDictConfig,
)
from rushlight.distributed.fsdp.api import ShardedStateDictConfig as ShardedStateDictConfig
from rushlight.distributed.fsdp.wrap import ModuleWrapPolicy, wrap_below
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.tensor import DTensor
from rushlight.distributed.wrapper import clean_items
from rushlight.nn import Module, Parameter
from rushlight.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_KEPT = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)


def _policy_of(precision: MixedPrecision) -> MixedPrecisionPolicy:
    """The same in the words of fully_shard."""
    dtype = precision.param_dtype
    reduced = precision.reduce_dtype or dtype
    return MixedPrecisionPolicy(dtype, reduced, None, precision.cast_forward_inputs)


class FullyShardedDataParallel(StateDicts):
    """Wraps a module and cuts its parameters over ranks, as fully_shard does.

    Each rank keeps a part of every parameter, a DTensor. The parameters below a wrapper that are
    under no other one are gathered and freed together, so wrap the layers of a deep model, then the
    model; auto_wrap_policy does it. Make optimizers from the parameters of the wrapper.

    Args:
        module: the same on all ranks.
        process_group: the ranks, all by default; two for HYBRID_SHARD: those that parameters are
            cut over, and those that have copies.
        sharding_strategy: what is cut; FULL_SHARD by default.
        cpu_offload: whether parts are in the memory of the CPU.
        auto_wrap_policy: which modules below are wrapped by themselves, see fsdp.wrap; a set of
            classes means ModuleWrapPolicy.
        backward_prefetch: None gathers only what backward has come to.
        mixed_precision: dtypes.
        ignored_modules: modules whose parameters stay as they are.
        param_init_fn: makes the parameters of a module on meta; without it they are made on the
            device, and reset_parameters fills them.
        device_id: where to put the module.
        sync_module_states: whether all ranks begin with what the first one has.
        forward_prefetch: accepted for PyTorch's sake.
        limit_all_gathers: accepted for PyTorch's sake; at most one gathering is ahead.
        use_orig_params: accepted for PyTorch's sake; parameters keep their shapes and names.
        ignored_states: parameters, or modules, that stay as they are.
        device_mesh: in place of process_group.

    Raises:
        ValueError: for options that do not go together.
        TypeError: for options of other classes.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> model = torch.distributed.fsdp.FullyShardedDataParallel(torch.nn.Linear(4, 2))
        >>> model(torch.ones(3, 4)).sum().backward()
        >>> {name: tuple(x.shape) for name, x in model.state_dict().items()}
        {'weight': (2, 4), 'bias': (2,)}
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        process_group: ProcessGroup | tuple[ProcessGroup, ProcessGroup] | None = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], Any] | None = None,
        device_id: int | rl.device | None = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__(module)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        for name, value, kind in (
            ("sharding_strategy", strategy, ShardingStrategy),
            ("cpu_offload", cpu_offload or CPUOffload(), CPUOffload),
            ("mixed_precision", mixed_precision or MixedPrecision(), MixedPrecision),
        ):
            check_kind("FullyShardedDataParallel", name, value, kind)
        if device_mesh is not None and process_group is not None:
            raise ValueError(
                "FullyShardedDataParallel: Cannot pass both process_group and device_mesh at the "
                "same time. Please just pass only one of them."
            )
        ignored, ignored_inside = ignored_by(ignored_modules, ignored_states)
        device = None if device_id is None else device_of(device_id)
        materialize(module, param_init_fn, device, ignored)
        if device is not None:
            module.to(device)
        mesh = device_mesh or mesh_of(kind_of(module.parameters()), process_group, strategy)
        if sync_module_states:
            for dim in range(mesh.ndim):
                utils._sync_module_states(module, mesh.get_group(dim))
        if auto_wrap_policy is not None:
            _wrap_below(
                module,
                auto_wrap_policy,
                ignored_inside,
                ignored,
                {
                    "sharding_strategy": strategy,
                    "cpu_offload": cpu_offload,
                    "backward_prefetch": backward_prefetch,
                    "mixed_precision": mixed_precision,
                    "ignored_states": ignored,
                    "device_mesh": mesh,
                },
            )
        precision = mixed_precision or MixedPrecision()
        utils.cast_buffers(module, precision.buffer_dtype)
        self.sharding_strategy = strategy
        self.mixed_precision = precision
        self.device_mesh = mesh
        self._state_dict_settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT,
            FullStateDictConfig(),
            FullOptimStateDictConfig(offload_to_cpu=False),
        )
        offloads = cpu_offload is not None and cpu_offload.offload_params
        self._state = shard(
            [self],
            ShardMesh(mesh),
            False if strategy in _KEPT else None,
            _policy_of(precision),
            CPUOffloadPolicy() if offloads else OffloadPolicy(),
            ignored,
        )
        self._state.casts_root_inputs = precision.cast_root_forward_inputs
        if backward_prefetch is None:
            self._state.backward_prefetch = []

    @property
    def module(self) -> Module:
        """The wrapped module."""
        return self._wrapped

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped(*args, **kwargs)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Returns the wrappers in a tree of modules, only those under no other with root_only."""
        found = [part for part in module.modules() if isinstance(part, FullyShardedDataParallel)]
        if not root_only:
            return found
        below = {id(p) for wrapper in found for p in wrapper._wrapped.modules()}
        return [wrapper for wrapper in found if id(wrapper) not in below]

    def check_is_root(self) -> bool:
        """Returns whether this wrapper is under no other one."""
        self._state.join()
        return self._state.is_root

    @contextlib.contextmanager
    def no_sync(self) -> Generator[None, None, None]:
        """Adds gradients up whole on each rank, in the scope of a `with`.

        The first backward outside of it averages the sums.
        """
        groups = [group for state in states_in(self) for group in state.groups]
        before = [group.syncs for group in groups]
        for group in groups:
            group.syncs = False
        try:
            yield
        finally:
            for group, syncs in zip(groups, before, strict=True):
                group.syncs = syncs

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scales gradients so that their norm over all ranks is at most max_norm.

        Args:
            max_norm: the limit.
            norm_type: order of the norm.

        Returns:
            The norm before, as a plain tensor.
        """
        params = list(self.parameters())
        grads = [param.grad for param in params if param.grad is not None]
        norms = []
        for kind in (True, False):
            same = [grad for grad in grads if isinstance(grad, DTensor) == kind]
            if same:
                norm = get_total_norm(same, norm_type)
                norms.append(norm.full_tensor() if isinstance(norm, DTensor) else norm)
        total = get_total_norm(norms, norm_type)
        clip_grads_with_norm_(params, max_norm, total)
        return total

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Calls fn on all modules below and on this one, with whole parameters.

        Args:
            fn: may change the parameters, alike on all ranks.
        """
        with self.summon_full_params(self):
            return super().apply(fn)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """Returns names and parameters; in summon_full_params without the wrappers' names."""
        found = super().named_parameters(*args, **kwargs)
        return clean_items(found) if self._state.is_unsharded else found

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Returns names and buffers; in summon_full_params without the wrappers' names."""
        found = super().named_buffers(*args, **kwargs)
        return clean_items(found) if self._state.is_unsharded else found

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._state.reshard()
        return super()._apply(*args, **kwargs)

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Generator[None, None, None]:
        """Puts whole parameters into modules, in the scope of a `with`.

        Args:
            module: whose wrappers, and those below with recurse, are meant.
            recurse: see module.
            writeback: whether changes count, which must be alike on all ranks.
            rank0_only: whether only rank 0 gets them; without writeback.
            offload_to_cpu: whether they are in the memory of the CPU.
            with_grads: whether they have whole gradients.

        Raises:
            NotImplementedError: for rank0_only with writeback.
        """
        if rank0_only and writeback:
            raise NotImplementedError(
                "summon_full_params: writeback=True and rank0_only=True is not supported, since "
                "other ranks would keep what they have. Pass writeback=False."
            )
        wanted = states_in(module)
        if not recurse:
            own = module.__dict__.get("_state")
            wanted = [own] if own is not None else []
        gets = not rank0_only or dist.get_rank() == 0
        for state in wanted:
            for group in state.groups:
                group.summon(gets, offload_to_cpu, with_grads)
            state.is_unsharded = gets
        try:
            yield
        finally:
            for state in wanted:
                state.is_unsharded = False
                for group in state.groups:
                    group.dismiss(writeback)


def _wrap_below(
    module: Module,
    policy: Any,
    ignored_inside: set[Module],
    ignored: set[Any],
    options: dict[str, Any],
) -> None:
    if isinstance(policy, set | frozenset):
        policy = ModuleWrapPolicy(policy)
    if not callable(policy):
        raise TypeError(
            f"FullyShardedDataParallel: auto_wrap_policy is {policy!r}. It must be a function, or "
            "a set of classes of modules."
        )
    precision = options["mixed_precision"] or MixedPrecision()
    low = precision.param_dtype
    full = () if low is None else tuple(precision._module_classes_to_ignore)

    def decide(module: Module, recurse: bool, nonwrapped_numel: int) -> Any:
        if not recurse and full and isinstance(module, full):
            return {"mixed_precision": None, "_output_dtype": low}
        return policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)

    def wrapper(module: Module, _output_dtype: rl.dtype | None = None, **changes: Any) -> Module:
        made = FullyShardedDataParallel(module, **{**options, **changes})
        if _output_dtype is not None:
            made._state.precision = MixedPrecisionPolicy(rl.float32, None, _output_dtype)
        return made

    wrap_below(module, decide, wrapper, ignored_inside, ignored)
