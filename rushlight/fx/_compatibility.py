"""Marks of what PyTorch promises to keep, which programs that extend fx put on their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

__all__ = ["compatibility"]


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Returns a decorator that leaves what it is given as it is."""
    return lambda marked: marked
