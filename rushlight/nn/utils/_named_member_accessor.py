"""Puts one tensor in the place of another in a module, for a while.

Owns the swap of one tensor; swaps by dotted paths are func.functional_call's.
"""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn

__all__ = ["swap_tensor"]

_MISSING: Any = object()  # what swap_tensor returns, and takes, where there is nothing


def swap_tensor(
    module: nn.Module, name: str, tensor: Tensor | None, allow_missing: bool = False
) -> Any:
    """Puts a tensor in the place of a parameter, a buffer or an attribute, and returns that.

    The place stays what it is: a parameter's may hold a tensor that is no nn.Parameter.

    Args:
        module: what the tensor belongs to.
        name: its name there, without dots.
        tensor: the new one.
        allow_missing: whether there may be none so far; what then comes back can be passed as
            tensor later, to remove the new one.

    Raises:
        AttributeError: if there is none.
        TypeError: if either is not a tensor, or module not a Module.
        KeyError: if name is empty or has a dot.

    Example:
        >>> from rushlight.nn.utils._named_member_accessor import swap_tensor
        >>> layer = torch.nn.Linear(1, 1)
        >>> weight = swap_tensor(layer, "weight", torch.ones(1, 1))
        >>> list(dict(layer.named_parameters())), layer.weight
        (['weight', 'bias'], tensor([[1.]]))
        >>> swap_tensor(layer, "weight", weight)
        tensor([[1.]])
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"swap_tensor: {module!r} is not an instance of torch.nn.Module")
    if not name or "." in name:
        raise KeyError(f"swap_tensor: tensor name must not be empty or contain a dot, got {name!r}")
    members = next((m for m in (module._parameters, module._buffers) if name in m), None)
    before = getattr(module, name, _MISSING) if members is None else members[name]
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    for value in (before, tensor):
        if value is not None and value is not _MISSING and not isinstance(value, Tensor):
            raise TypeError(f"swap_tensor: {name}: {value!r} is not an instance of torch.Tensor")
    if members is not None and tensor is not _MISSING:
        members[name] = tensor
    elif members is not None:
        del members[name]
    elif tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before
