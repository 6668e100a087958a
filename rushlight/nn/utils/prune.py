"""Pruning: parameters with zeros where a mask says so; see _pruning.py for how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.utils._pruning import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    hook_of,
)
from rushlight.nn.utils._pruning import _compute_norm as _compute_norm
from rushlight.nn.utils._pruning import _compute_nparams_toprune as _compute_nparams_toprune
from rushlight.nn.utils._pruning import _validate_pruning_amount as _validate_pruning_amount
from rushlight.nn.utils._pruning import (
    _validate_pruning_amount_init as _validate_pruning_amount_init,
)
from rushlight.nn.utils._pruning import _validate_pruning_dim as _validate_pruning_dim
from rushlight.nn.utils._pruning import (
    _validate_structured_pruning as _validate_structured_pruning,
)
from rushlight.nn.utils.convert_parameters import parameters_to_vector

M = TypeVar("M", bound=Module)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def identity(module: M, name: str) -> M:
    """Gives a parameter the form of a pruned one without pruning anything.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> list(prune.identity(torch.nn.Linear(2, 3), "bias").state_dict())
        ['weight', 'bias_orig', 'bias_mask']
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prunes elements of a parameter at random.

    Args:
        module: what the parameter belongs to.
        name: its name.
        amount: how many, as an int, or which share of them, as a float from 0 to 1.

    Returns:
        module.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> layer = prune.random_unstructured(torch.nn.Linear(2, 3), "weight", amount=1)
        >>> (layer.weight_mask == 0).sum().item()
        1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Prunes the elements of a parameter that have the smallest magnitudes.

    Args:
        module: what the parameter belongs to.
        name: its name.
        amount: how many, as an int, or which share of them, as a float from 0 to 1.
        importance_scores: what to look at in place of the parameter.

    Returns:
        module.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> layer = prune.l1_unstructured(torch.nn.Linear(2, 3), "weight", amount=0.2)
        >>> (layer.weight == 0).sum().item()
        1
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prunes channels of a parameter at random.

    Args:
        module: what the parameter belongs to.
        name: its name.
        amount: how many, as an int, or which share of them, as a float from 0 to 1.
        dim: the dim that channels lie along.

    Returns:
        module.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range, or the parameter has less than two dims.
        IndexError: if the parameter has no such dim.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> layer = prune.random_structured(torch.nn.Linear(4, 3), "weight", amount=2, dim=1)
        >>> (layer.weight_mask.sum(0) == 0).sum().item()
        2
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prunes the channels of a parameter that have the smallest norms.

    Args:
        module: what the parameter belongs to.
        name: its name.
        amount: how many, as an int, or which share of them, as a float from 0 to 1.
        n: order of the norm, as in torch.norm.
        dim: the dim that channels lie along.
        importance_scores: what to look at in place of the parameter.

    Returns:
        module.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range, or the parameter has less than two dims.
        IndexError: if the parameter has no such dim.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> layer = prune.ln_structured(torch.nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
        >>> (layer.weight_mask.sum(1) == 0).sum().item()
        1
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prunes what a mask says.

    Args:
        module: what the parameter belongs to.
        name: its name.
        mask: 0 for what is pruned, 1 for what stays; in the parameter's shape.

    Returns:
        module.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> layer = torch.nn.Linear(5, 3)
        >>> prune.custom_from_mask(layer, "bias", torch.tensor([0, 1, 0])).bias_mask
        tensor([0., 1., 0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters as if they were one vector.

    Args:
        parameters: pairs of a module and the name of a parameter of it.
        pruning_method: a class that chooses among elements, as L1Unstructured does.
        importance_scores: what to look at in place of parameters, by those pairs.
        kwargs: arguments of the class, such as amount.

    Raises:
        TypeError: if parameters or importance_scores have another type, or the method chooses
            something else than elements.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> net = torch.nn.Sequential(torch.nn.Linear(10, 4), torch.nn.Linear(4, 1))
        >>> pairs = [(net[0], "weight"), (net[1], "weight")]
        >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=10)
        >>> sum((buffer == 0).sum().item() for buffer in net.buffers())
        10
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    tensors: list[Tensor] = [getattr(module, name) for module, name in pairs]
    scores: list[Tensor] = [
        given.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)
    ]
    masks: list[Tensor] = [
        getattr(module, f"{name}_mask", rl.ones_like(tensor))
        for (module, name), tensor in zip(pairs, tensors, strict=True)
    ]
    method = pruning_method(**kwargs)
    method._tensor_name = "all of them"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask = PruningContainer(method).compute_mask(
        parameters_to_vector(scores), parameters_to_vector(masks)
    )
    parts = mask.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, part.view(tensor.shape))


def remove(module: M, name: str) -> M:
    """Makes a pruned parameter an ordinary one; what was pruned stays 0.

    Args:
        module: what the parameter belongs to.
        name: its name.

    Returns:
        module.

    Raises:
        ValueError: if it is not pruned.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> layer = prune.random_unstructured(torch.nn.Linear(2, 3), "weight", amount=0.5)
        >>> list(prune.remove(layer, "weight").state_dict())
        ['bias', 'weight']
    """
    present = hook_of(module, name)
    if present is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    key, hook = present
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Returns whether a parameter of a module, or of one in it, is pruned.

    Example:
        >>> from rushlight.nn.utils import prune
        >>> layer = torch.nn.Linear(5, 7)
        >>> prune.is_pruned(layer)
        False
        >>> prune.is_pruned(prune.random_unstructured(layer, "weight", amount=0.2))
        True
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in part._forward_pre_hooks.values()
    )
