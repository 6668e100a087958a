"""FullyShardedDataParallel: a wrapper that shards a module as fully_shard does.

Owns the older interface, its options and state dicts; the sharding itself is that of fully_shard.
The names of the wrapper's attribute stay out of state dicts.
"""

from __future__ import annotations

import contextlib
import copy

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed import utils
from rushlight.distributed.checkpoint import state_dict as states
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
from rushlight.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from rushlight.distributed.fsdp.wrap import ModuleWrapPolicy, wrap_below
from rushlight.distributed.tensor import DTensor
from rushlight.distributed.wrapper import Wrapper, clean, clean_items
from rushlight.nn import Module
from rushlight.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from rushlight.utils._pytree import tree_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import Any

    from rushlight.distributed.device_mesh import DeviceMesh
    from rushlight.distributed.process_group import ProcessGroup
    from rushlight.nn import Parameter
    from rushlight.optim import Optimizer

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_KEPT = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FullyShardedDataParallel(Wrapper):
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

    _attribute = "_fsdp_wrapped_module"

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
        if precision.buffer_dtype is not None:
            for buffer in module.buffers():
                if buffer.is_floating_point():
                    buffer.data = buffer.to(precision.buffer_dtype)
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
            MixedPrecisionPolicy(
                precision.param_dtype,
                precision.reduce_dtype or precision.param_dtype,
                None,
                precision.cast_forward_inputs,
            ),
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

    # State dicts

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Sets what state dicts of the wrappers in a tree of modules hold.

        Args:
            module: the tree.
            state_dict_type: what.
            state_dict_config: options of state_dict, of the class that belongs to the type.
            optim_state_dict_config: options of optim_state_dict, likewise.

        Returns:
            The settings before.

        Raises:
            RuntimeError: if a configuration is of another class.
        """
        kinds = _CONFIGS[state_dict_type]
        configs: list[Any] = [state_dict_config, optim_state_dict_config]
        for i, kind in enumerate(kinds):
            if configs[i] is None:
                configs[i] = kind()
            elif type(configs[i]) is not kind:
                raise RuntimeError(
                    f"Expected state_dict_config of type {kind} but got {type(configs[i])}"
                )
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for wrapper in FullyShardedDataParallel.fsdp_modules(module):
            wrapper._state_dict_settings = StateDictSettings(state_dict_type, *configs)
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """Returns what state dicts of the wrappers in a tree of modules hold."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        if not found:
            return StateDictSettings(
                StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
            )
        return copy.copy(found[0]._state_dict_settings)

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Generator[None, None, None]:
        """Does what set_state_dict_type does, in the scope of a `with`."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for wrapper in FullyShardedDataParallel.fsdp_modules(module):
                wrapper._state_dict_settings = before

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Returns the state of the wrapped module, as state_dict_type says. All ranks call it."""
        kind = self._state_dict_settings.state_dict_type
        config = self._state_dict_settings.state_dict_config
        result = super().state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
        if self._state.is_unsharded:
            return result
        leaves_out = getattr(config, "rank0_only", False) and dist.get_rank() > 0
        for name in [name for name in result if name.startswith(prefix)]:
            value = result[name]
            if kind is StateDictType.LOCAL_STATE_DICT and isinstance(value, DTensor):
                value = value.to_local()
            value = states.as_asked(
                value, kind is StateDictType.FULL_STATE_DICT, config.offload_to_cpu
            )
            result[name] = value
            if leaves_out:
                del result[name]
        return result

    def _load_tree(self, state: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """Takes whole tensors or parts as state_dict_type says, and DTensors in any case."""
        if not self._state.is_unsharded:
            for name, param in self._wrapped.named_parameters(remove_duplicate=False):
                key = prefix + clean(name)
                if key in state:
                    state[key] = states.cut_like(state[key], param, _has_parts(self))
        super()._load_tree(state, prefix, *args, **kwargs)

    @staticmethod
    def optim_state_dict(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any] | None = None,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """Returns the state of an optimizer by the names of parameters, as state_dict_type says.

        Args:
            model: whose parameters it updates.
            optim: the optimizer.
            optim_state_dict: accepted for PyTorch's sake; what optim.state_dict() returns.
            group: accepted for PyTorch's sake.

        Returns:
            {"state": {name: state}, "param_groups": [{"params": names, option: value}]}
        """
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        result = states.get_optimizer_state_dict(model, optim)
        if _has_parts(model):
            result = tree_map(lambda x: x.to_local() if isinstance(x, DTensor) else x, result)
        is_full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        result = states.as_asked(result, is_full, config.offload_to_cpu)
        return {} if getattr(config, "rank0_only", False) and dist.get_rank() > 0 else result

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """Returns what optim.load_state_dict takes, from what optim_state_dict returned.

        Args:
            model: whose parameters it updates.
            optim: the optimizer.
            optim_state_dict: with whole tensors, this rank's parts, or DTensors; on all ranks.
            is_named_optimizer: accepted for PyTorch's sake, False only.
            load_directly: whether to load it, too.
            group: accepted for PyTorch's sake.
        """
        names = {param: clean(name) for name, param in model.named_parameters()}
        result = states.loadable(optim, names, optim_state_dict, _has_parts(model))
        if load_directly:
            optim.load_state_dict(result)
        return result

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, *args: Any, rank0_only: bool = True, **kwargs: Any
    ) -> dict[str, Any]:
        """Returns optim_state_dict with whole tensors on the CPU; elsewhere than on rank 0 an empty
        one, with rank0_only."""
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with FullyShardedDataParallel.state_dict_type(
            model, StateDictType.FULL_STATE_DICT, None, config
        ):
            return FullyShardedDataParallel.optim_state_dict(model, optim)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model: Module,
        optim_input: Any = None,
        optim: Optimizer | None = None,
    ) -> dict[str, Any]:
        """Returns the state of an optimizer with other keys of parameters.

        Args:
            optim_state_dict: the state, by the names of parameters or by their numbers.
            optim_state_key_type: what is wanted; a state that has it is returned as it is.
            model: whose parameters they are.
            optim_input: what the optimizer was given; its parameters, or groups of them.
            optim: the optimizer, in place of optim_input. Without either, the parameters are
                the model's, in order.

        Raises:
            ValueError: if keys are of both kinds, or both optim_input and optim are given.
            KeyError: for a parameter that the model or the optimizer has not.

        Example:
            >>> from rushlight.distributed.fsdp import FullyShardedDataParallel, OptimStateKeyType
            >>> model = torch.nn.Linear(2, 1)
            >>> state = torch.optim.SGD(model.parameters(), lr=0.1).state_dict()
            >>> by_name = FullyShardedDataParallel.rekey_optim_state_dict(
            ...     state, OptimStateKeyType.PARAM_NAME, model
            ... )
            >>> by_name["param_groups"][0]["params"]
            ['bias', 'weight']
        """
        if optim is not None and optim_input is not None:
            raise ValueError("rekey_optim_state_dict: give optim or optim_input, not both.")
        wanted = str if optim_state_key_type is OptimStateKeyType.PARAM_NAME else int
        groups = optim_state_dict["param_groups"]
        keys = {*optim_state_dict["state"], *(key for group in groups for key in group["params"])}
        kinds = {type(key) for key in keys}
        if len(kinds) > 1:
            raise ValueError(
                f"rekey_optim_state_dict: Invalid parameter keys: {list(keys)}. They are all names "
                "or all numbers."
            )
        if kinds <= {wanted}:
            return optim_state_dict
        given = list(model.parameters() if optim_input is None else optim_input)
        if optim is not None:
            given = optim.param_groups
        elif not (given and isinstance(given[0], dict)):
            given = [{"params": given}]
        names: dict[Tensor, str] = {p: clean(name) for name, p in model.named_parameters()}
        ordered = [names[param] for group in given for param in group["params"]]
        pairs = enumerate(ordered)
        other: Any = dict(pairs) if wanted is str else {name: i for i, name in pairs}
        copies = copy.deepcopy(groups)
        for group in copies:
            group["params"] = sorted(other[key] for key in group["params"])
        state = {other[key]: value for key, value in optim_state_dict["state"].items()}
        return {"state": state, "param_groups": copies}


def _has_parts(module: Module) -> bool:
    """Whether state dicts have this rank's parts as plain tensors."""
    settings = FullyShardedDataParallel.get_state_dict_type(module)
    return settings.state_dict_type is StateDictType.LOCAL_STATE_DICT


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
