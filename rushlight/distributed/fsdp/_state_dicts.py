"""State dicts of wrapped models and of their optimizers.

Owns the methods of FullyShardedDataParallel that say what such dicts hold, and that make and read
them. The name of the wrapper's attribute stays out of them.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Generator
from typing import Any

from rushlight import distributed as dist
from rushlight.distributed.checkpoint import state_dict as states
from rushlight.distributed.fsdp._state import ShardState
from rushlight.distributed.fsdp.api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.tensor import DTensor
from rushlight.distributed.wrapper import Wrapper, clean
from rushlight.nn import Module, Parameter
from rushlight.nn.modules._state_dict import named_in_order
from rushlight.optim import Optimizer
from rushlight.utils._pytree import tree_map

__all__ = ["StateDicts"]

_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class StateDicts(Wrapper):
    """A wrapper whose parameters are DTensors, and what state dicts hold in their place."""

    _attribute = "_fsdp_wrapped_module"
    _state: ShardState
    _state_dict_settings: StateDictSettings

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
        given = {
            "state_dict_config": state_dict_config,
            "optim_state_dict_config": optim_state_dict_config,
        }
        configs: list[Any] = []
        for kind, (name, config) in zip(kinds, given.items(), strict=True):
            configs.append(kind() if config is None else config)
            if type(configs[-1]) is not kind:
                raise RuntimeError(f"Expected {name} of type {kind} but got {type(config)}")
        before = StateDicts.get_state_dict_type(module)
        for wrapper in _wrappers(module):
            wrapper._state_dict_settings = StateDictSettings(state_dict_type, *configs)
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """Returns what state dicts of the wrappers in a tree of modules hold."""
        found = _wrappers(module)
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
        before = StateDicts.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for wrapper in _wrappers(module):
                wrapper._state_dict_settings = before

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Returns the state of the wrapped module, as state_dict_type says. All ranks call it."""
        kind = self._state_dict_settings.state_dict_type
        config = self._state_dict_settings.state_dict_config
        if args:
            destination, prefix, keep_vars = named_in_order(self, args, prefix, keep_vars)
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
            optim_state_dict: what to name, as optim.state_dict() returns it, which is the default.
            group: accepted for PyTorch's sake.

        Returns:
            {"state": {name: state}, "param_groups": [{"params": names, option: value}]}
        """
        settings = StateDicts.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        if optim_state_dict is None:
            result = states.get_optimizer_state_dict(model, optim)
        else:
            result = states.named(optim, _names(model), optim_state_dict)
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
        result = states.loadable(optim, _names(model), optim_state_dict, _has_parts(model))
        if load_directly:
            optim.load_state_dict(result)
        return result

    @staticmethod
    def full_optim_state_dict(
        model: Module,
        optim: Optimizer,
        optim_input: Any = None,
        rank0_only: bool = True,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """Returns optim_state_dict with whole tensors on the CPU.

        Args:
            model: whose parameters it updates.
            optim: the optimizer.
            optim_input: accepted for PyTorch's sake.
            rank0_only: whether ranks other than 0 get an empty one.
            group: accepted for PyTorch's sake.
        """
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with StateDicts.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, config):
            return StateDicts.optim_state_dict(model, optim)

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
            >>> by_name = StateDicts.rekey_optim_state_dict(
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
        names: Any = _names(model)
        ordered = [names[param] for group in given for param in group["params"]]
        pairs = enumerate(ordered)
        other: Any = dict(pairs) if wanted is str else {name: i for i, name in pairs}
        copies = copy.deepcopy(groups)
        for group in copies:
            group["params"] = sorted(other[key] for key in group["params"])
        state = {other[key]: value for key, value in optim_state_dict["state"].items()}
        return {"state": state, "param_groups": copies}


def _names(module: Module) -> dict[Parameter, str]:
    return {param: clean(name) for name, param in module.named_parameters()}


def _wrappers(module: Module) -> list[StateDicts]:
    return [part for part in module.modules() if isinstance(part, StateDicts)]


def _has_parts(module: Module) -> bool:
    """Whether state dicts have this rank's parts as plain tensors."""
    settings = StateDicts.get_state_dict_type(module)
    return settings.state_dict_type is StateDictType.LOCAL_STATE_DICT
