"""State dicts of a model and its optimizers that do not depend on how they are distributed.

Keys are the names of parameters in the model without any wrapper; values are DTensors where
parameters are cut, or whole tensors on demand.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.distributed.tensor import DTensor, distribute_tensor
from rushlight.distributed.tensor._api import local_of
from rushlight.distributed.wrapper import clean, clean_items
from rushlight.nn import Module, Parameter
from rushlight.nn.parallel import DistributedDataParallel
from rushlight.optim import Optimizer
from rushlight.utils._pytree import tree_map

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """How state dicts are made and read.

    Args:
        full_state_dict: whole tensors in place of DTensors.
        cpu_offload: tensors in the memory of the CPU; of whole ones, only rank 0 gets any.
        ignore_frozen_params: leaves out parameters that do not require grad.
        keep_submodule_prefixes: accepted for PyTorch's sake, True only.
        strict: whether missing and unexpected keys are errors.
        broadcast_from_rank0: the whole state dict of rank 0 is read, and those of others ignored.
        flatten_optimizer_state_dict: one flat dict, "state.<name>.<key>" and
            "param_groups.<name>.<key>", in place of nested ones.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
        if not self.keep_submodule_prefixes:
            raise NotImplementedError(
                "StateDictOptions: keep_submodule_prefixes=False is not available."
            )


# Values


def as_asked(tree: Any, is_full: bool, on_cpu: bool) -> Any:
    """Returns a tree of values with whole tensors in place of DTensors, or on the CPU."""

    def convert(value: Any) -> Any:
        if is_full and isinstance(value, DTensor):
            value = DTensor.full_tensor(value.detach())  # pyright: ignore[reportArgumentType]
        return value.cpu() if on_cpu and isinstance(value, Tensor) else value

    return tree_map(convert, tree)


def cut_like(value: Any, param: Tensor, is_part: bool = False) -> Any:
    """Returns a tensor that belongs to a parameter, laid out like it.

    Args:
        value: whole, or this rank's part; what does not fit comes back as it is.
        param: a DTensor, or any other.
        is_part: which of the two it is.
    """
    is_plain = isinstance(value, Tensor) and not isinstance(value, DTensor)
    if not is_plain or not isinstance(param, DTensor):
        return value
    mesh, places, value = param.device_mesh, param.placements, value.detach()
    if is_part and value.shape == param._local_tensor.shape:
        options = {"shape": param.shape, "stride": param.stride()}
        return DTensor.from_local(value, mesh, places, **options)
    if not is_part and value.shape == param.shape:
        return distribute_tensor(value, mesh, places, src_data_rank=None)
    return value


def _of_rank_0(tree: Any) -> Any:
    """Returns what rank 0 has, on all ranks."""
    tensors: list[Any] = []

    def describe(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        tensors.append(value)
        return _Described(value.shape, value.dtype)

    described = [tree_map(describe, tree) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(described, src=0)
    mine = iter(tensors)

    def receive(value: Any) -> Any:
        if not isinstance(value, _Described):
            return value
        tensor = next(mine, None)
        if tensor is None:
            tensor = rl.empty(value.shape, dtype=value.dtype)
        tensor = tensor.detach().contiguous()
        dist.broadcast(tensor, src=0)
        return tensor

    return tree_map(receive, described[0])


@dataclass
class _Described:
    shape: rl.Size
    dtype: rl.dtype


# Models


def _inner(model: Module) -> Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


@contextlib.contextmanager
def _sharded(model: Module) -> Any:
    """Lets FullyShardedDataParallel give DTensors."""
    from rushlight.distributed.fsdp import FullyShardedDataParallel, StateDictType

    if any(isinstance(part, FullyShardedDataParallel) for part in model.modules()):
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            yield
    else:
        yield


def _refuse_submodules(function: str, submodules: Any) -> None:
    if submodules is not None:
        raise NotImplementedError(
            f"{function}: submodules is not available. Call it on the submodule."
        )


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Returns the state dict of a model. All ranks call it.

    Args:
        model: sharded, wrapped or neither.
        submodules: not available.
        options: see StateDictOptions.
    """
    _refuse_submodules("get_model_state_dict", submodules)
    options = options or StateDictOptions()
    model = _inner(model)
    with _sharded(model):
        state = model.state_dict()
    if options.ignore_frozen_params:
        for name, param in clean_items(model.named_parameters()):
            if not param.requires_grad:
                state.pop(name, None)
    return _given(state, options)


def _given(tree: Any, options: StateDictOptions) -> Any:
    given = as_asked(tree, options.full_state_dict, options.cpu_offload)
    is_one_of_others = dist.is_initialized() and dist.get_rank() > 0
    return {} if options.full_state_dict and options.cpu_offload and is_one_of_others else given


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Fills a model from a state dict. All ranks call it.

    Args:
        model: sharded, wrapped or neither; what is on meta gets memory first.
        model_state_dict: of DTensors laid out like the parameters, or of whole tensors.
        options: see StateDictOptions.

    Returns:
        The lists missing_keys and unexpected_keys, as a named tuple.
    """
    options = options or StateDictOptions()
    model = _inner(model)
    if options.broadcast_from_rank0:
        model_state_dict = _of_rank_0(dict(model_state_dict))
    params = dict(clean_items(model.named_parameters(remove_duplicate=False)))
    state = {
        name: cut_like(value, params[name]) if name in params else value
        for name, value in model_state_dict.items()
    }
    for name, tensor in (*params.items(), *clean_items(model.named_buffers())):
        if tensor.is_meta and isinstance(state.get(name), Tensor):
            # In place, so that tied parameters stay tied.
            tensor.data = rl.empty_like(tensor.data, device=local_of(state[name]).device)
    return model.load_state_dict(state, strict=options.strict)


# Optimizers


def _names(model: Module) -> dict[Parameter, str]:
    return {param: clean(name) for name, param in _inner(model).named_parameters()}


def _init_optim_state(optimizer: Optimizer) -> None:
    """Makes the state of an optimizer that has done no step, by one that changes nothing."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    if optimizer.state or any(param.grad is not None for param in params):
        return
    rates = [(group, group["lr"]) for group in optimizer.param_groups if "lr" in group]
    try:
        for group, rate in rates:
            group["lr"] = rl.zeros_like(rate) if isinstance(rate, Tensor) else 0.0
        for param in params:
            if param.requires_grad:
                param.grad = rl.zeros_like(param)
        optimizer.step()
    finally:
        optimizer.zero_grad(set_to_none=True)
        for group, rate in rates:
            group["lr"] = rate


def _listed(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    is_many = isinstance(optimizers, list | tuple | set)
    return list(optimizers) if is_many else [optimizers]  # pyright: ignore[reportReturnType]


def _name_of(names: dict[Parameter, str], param: Any) -> str:
    if param not in names:
        raise RuntimeError(
            f"get_optimizer_state_dict: the optimizer has a parameter of shape "
            f"{tuple(param.shape)} that the model does not have. Make optimizers from the "
            "parameters of the model that is passed, after it was sharded."
        )
    return names[param]


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Returns the state of optimizers by the names of parameters. All ranks call it.

    Optimizers that have done no step get a state first, so that there is something to load into.

    Args:
        model: whose parameters they update.
        optimizers: one or several.
        submodules: not available.
        options: see StateDictOptions.

    Returns:
        {"state": {name: state}, "param_groups": [{"params": names, option: value}]}

    Raises:
        RuntimeError: if an optimizer has parameters that the model has not.
    """
    _refuse_submodules("get_optimizer_state_dict", submodules)
    options = options or StateDictOptions()
    names = _names(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        own = named(optimizer, names, optimizer.state_dict())
        state.update(own["state"])
        groups.extend(own["param_groups"])
    result = _given({"state": state, "param_groups": groups}, options)
    return _flattened(result) if options.flatten_optimizer_state_dict and result else result


def named(
    optimizer: Optimizer, names: dict[Parameter, str], state_dict: dict[str, Any]
) -> dict[str, Any]:
    """Returns what optimizer.state_dict() did, with names of parameters for their numbers."""
    params = (param for group in optimizer.param_groups for param in group["params"])
    numbers = (i for group in state_dict["param_groups"] for i in group["params"])
    found = {i: _name_of(names, param) for i, param in zip(numbers, params, strict=True)}
    state = {found[i]: values for i, values in state_dict["state"].items()}
    groups = [
        {**group, "params": [found[i] for i in group["params"]]}
        for group in state_dict["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


def _flattened(tree: dict[str, Any]) -> dict[str, Any]:
    flat = {
        f"state.{name}.{key}": value
        for name, values in tree["state"].items()
        for key, value in values.items()
    }
    for group in tree["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"})
    return flat


def _unflattened(flat: dict[str, Any], optimizers: list[Optimizer], names: Any) -> dict[str, Any]:
    state: dict[str, Any] = {}
    groups = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            members = [names[param] for param in group["params"]]
            found: dict[str, Any] = {"params": members}
            for name in members:
                for kind, target in (
                    ("state", state.setdefault(name, {})),
                    ("param_groups", found),
                ):
                    start = f"{kind}.{name}."
                    target.update(
                        {k[len(start) :]: v for k, v in flat.items() if k.startswith(start)}
                    )
            groups.append(found)
    return {"state": {k: v for k, v in state.items() if v}, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Fills optimizers from what get_optimizer_state_dict returned. All ranks call it.

    Args:
        model: whose parameters they update.
        optimizers: one or several.
        optim_state_dict: of DTensors laid out like the parameters, or of whole tensors.
        options: see StateDictOptions.

    Raises:
        RuntimeError: if a group of parameters is missing.
    """
    options = options or StateDictOptions()
    names = _names(model)
    listed = _listed(optimizers)
    if options.broadcast_from_rank0:
        optim_state_dict = _of_rank_0(dict(optim_state_dict))
    if "state" not in optim_state_dict and "param_groups" not in optim_state_dict:
        optim_state_dict = _unflattened(optim_state_dict, listed, names)
    for optimizer in listed:
        optimizer.load_state_dict(loadable(optimizer, names, optim_state_dict))


def loadable(
    optimizer: Optimizer,
    names: dict[Parameter, str],
    state_dict: dict[str, Any],
    is_of_parts: bool = False,
) -> dict[str, Any]:
    """Returns the part of a state dict by names that is an optimizer's, as it loads it."""
    by_first = {name: g for g in state_dict["param_groups"] for name in g["params"]}
    state, groups, count = {}, [], 0
    for group in optimizer.param_groups:
        numbers = []
        options: dict[str, Any] = {}
        for param in group["params"]:
            name = _name_of(names, param)
            if name not in by_first and param.requires_grad:
                raise RuntimeError(
                    f"set_optimizer_state_dict: param_groups of the state dict lack {name}. It "
                    "must come from an optimizer over the same parameters."
                )
            options = options or by_first.get(name, {})
            values = state_dict["state"].get(name)
            if values is not None:
                state[count] = {
                    k: copy.copy(v)
                    if not isinstance(v, Tensor)
                    else cut_like(v, param, is_of_parts)
                    for k, v in values.items()
                }
            numbers.append(count)
            count += 1
        kept = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        groups.append({**kept, **options, "params": numbers})
    return {"state": state, "param_groups": groups}


# Both


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the state dicts of a model and of optimizers; see get_model_state_dict."""
    _refuse_submodules("get_state_dict", submodules)
    return (
        get_model_state_dict(model, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Fills a model and optimizers; see set_model_state_dict, whose result it returns."""
    result = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return result
