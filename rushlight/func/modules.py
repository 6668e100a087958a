"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from rushlight import Tensor, nn, stack
from rushlight.nn.modules.batchnorm import _BatchNorm

_ABSENT = object()

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: nn.Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in place of its parameters and buffers.

    Args:
        module: what is called; it has its own tensors again afterwards, also after an error.
        parameter_and_buffer_dicts: tensors by their names in the module, in one dict or several;
            other names are attributes while it runs. A tensor that the call sets anew is in the
            dict afterwards, if there is one dict.
        args: its arguments: a tuple, or one argument.
        kwargs: its keyword arguments.
        tie_weights: whether a tensor that is in the module under several names is replaced under
            all of them.
        strict: raises when a name is unknown, or one is missing.

    Returns:
        What the module returns.

    Raises:
        TypeError: if something else than a tensor is given or would be replaced.
        ValueError: if two dicts have the same name, or one name of a tied tensor has another value.

    Example:
        >>> layer = torch.nn.Linear(1, 1)
        >>> new = {"weight": torch.full((1, 1), 2.0), "bias": torch.ones(1)}
        >>> torch.func.functional_call(layer, new, torch.tensor([3.0]))
        tensor([7.])
    """
    given = parameter_and_buffer_dicts
    dicts = [given] if isinstance(given, dict) else given
    if not isinstance(dicts, list | tuple) or not all(isinstance(some, dict) for some in dicts):
        raise ValueError(
            "functional_call: expected parameter_and_buffer_dicts to be a dict, or a list or tuple "
            f"of dicts, got {type(given).__name__}"
        )
    replacements: dict[str, Tensor] = given if isinstance(given, dict) else {}
    for some in () if isinstance(given, dict) else dicts:
        for name, tensor in some.items():
            if name in replacements:
                raise ValueError(f"{name} appeared in multiple dictionaries; behavior is ambiguous")
            replacements[name] = tensor
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with reparametrized(module, replacements, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def reparametrized(
    module: nn.Module, tensors: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Puts tensors in the place of parameters and buffers for a block, see functional_call."""
    replacements = tensors
    if tie_weights or strict:
        owned = {
            **dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False)),
        }
        replacements = _tied(tensors, owned) if tie_weights else tensors
        missing = [name for name in owned if name not in replacements]
        unexpected = [name for name in tensors if name not in owned]
        if strict and (unexpected or missing):
            raise RuntimeError(
                "functional_call: the names do not fit the module."
                + (f" Unexpected key(s): {', '.join(unexpected)}." if unexpected else "")
                + (f" Missing key(s): {', '.join(missing)}." if missing else "")
            )
    holders = [(path, *_holder(module, path), tensor) for path, tensor in replacements.items()]
    previous: list[tuple[str, MutableMapping[str, Any], str, Any]] = []
    try:
        for path, holder, name, tensor in holders:
            members = _members(holder, name, tensor)
            for value in (tensor, members.get(name)):
                if value is not None and not isinstance(value, Tensor):
                    raise TypeError(f"functional_call: {name}: {value!r} is not a Tensor")
            previous.append((path, members, name, members.get(name, _ABSENT)))
            members[name] = tensor
        yield
    finally:
        for path, members, name, tensor in reversed(previous):
            if path in tensors and name in members:
                tensors[path] = members[name]
            if tensor is _ABSENT:
                members.pop(name, None)
            else:
                members[name] = tensor


def _tied(tensors: dict[str, Tensor], owned: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, under all names of those that they replace."""
    replacements = dict(tensors)
    names: dict[int, list[str]] = {}
    for name, tensor in owned.items():
        names.setdefault(id(tensor), []).append(name)
    for name, tensor in tensors.items():
        for other in names.get(id(owned.get(name)), ()):
            if replacements.setdefault(other, tensor) is not tensor:
                raise ValueError(
                    f"functional_call: {name} and {other} are one tensor in the module, but got "
                    "different values. Pass one of them, or tie_weights=False."
                )
    return replacements


def _holder(module: nn.Module, path: str) -> tuple[nn.Module, str]:
    """The module that holds a parameter or buffer, and its name there."""
    prefix, _, name = path.rpartition(".")
    return module.get_submodule(prefix), name


def _members(holder: nn.Module, name: str, tensor: Tensor) -> MutableMapping[str, Any]:
    """Where a module keeps a name; a new one is a parameter if the tensor is, or an attribute."""
    for members in (holder._buffers, holder._parameters):
        if name in members:
            return members
    is_new = isinstance(tensor, nn.Parameter) and name not in holder.__dict__
    return holder._parameters if is_new else holder.__dict__


def stack_module_state(
    models: Sequence[nn.Module] | nn.ModuleList,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stacks the parameters and buffers of models of one class, for vmap over an ensemble.

    Args:
        models: of the same class, shapes and training mode.

    Returns:
        (parameters, buffers) by name, (models, *shape) each; parameters are leaves.

    Raises:
        RuntimeError: if there are none, or they differ in class, training mode or requires_grad.

    Example:
        >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
        >>> params, buffers = torch.func.stack_module_state(models)
        >>> params["weight"].shape
        torch.Size([4, 3, 2])
    """
    every = list(models)
    if not every:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in every}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in every}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in every]),
        _stacked([dict(model.named_buffers()) for model in every]),
    )


def _stacked(members: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    for name in members[0]:
        if len({one[name].requires_grad for one in members}) > 1:
            raise RuntimeError(
                f"stack_module_state: Expected {name} of all models to have the same requires_grad."
            )
    return {
        name: stack([one[name].detach() for one in members]).requires_grad_(first.requires_grad)
        for name, first in members[0].items()
    }


def replace_all_batch_norm_modules_(root: nn.Module) -> nn.Module:
    """Makes every batch norm use the statistics of its batch only, as vmap needs; in place.

    Args:
        root: the module whose batch norms lose their running statistics.

    Returns:
        root.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
        >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
        True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
