"""Exchanging two tensors under the names and references that programs hold."""

from __future__ import annotations

import copyreg
from typing import Any

from rushlight import _C, Tensor

__all__ = ["swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges two tensors: every reference to one shows the other, with class and attributes.

    Args:
        t1: a tensor that no graph uses.
        t2: another one, of a class with the same slots.

    Raises:
        RuntimeError: if a weak reference to one exists, a graph uses one, or the slots differ.

    Example:
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> held = layer.weight
        >>> torch.utils.swap_tensors(layer.weight, torch.nn.Parameter(torch.zeros(1, 2)))
        >>> held is layer.weight, held.tolist()
        (True, [[0.0, 0.0]])
    """
    import weakref

    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = _slots(t1)
    if slots != _slots(t2):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    _C._swap_tensors(t1, t2)
    for name in ("__class__", *slots):
        _swap_attribute(t1, t2, name)
    own = dict(t1.__dict__)
    for tensor, attributes in ((t1, dict(t2.__dict__)), (t2, own)):
        tensor.__dict__.clear()
        tensor.__dict__.update(attributes)


def _slots(tensor: Tensor) -> set[str]:
    names: Any = copyreg._slotnames(type(tensor))  # pyright: ignore[reportAttributeAccessIssue]
    return set(names)


def _swap_attribute(t1: Tensor, t2: Tensor, name: str) -> None:
    missing = object()
    values = [getattr(tensor, name, missing) for tensor in (t2, t1)]
    for tensor, value in zip((t1, t2), values, strict=True):
        if value is not missing:
            setattr(tensor, name, value)
        elif hasattr(tensor, name):
            delattr(tensor, name)
