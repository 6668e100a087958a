"""Layers that PyTorch keeps only for old programs; each warns and names what took its place."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.nn.modules.loss import NLLLoss
from rushlight.nn.modules.module import Module

__all__ = ["Container", "NLLLoss2d"]


class NLLLoss2d(NLLLoss):
    """NLLLoss under an old name; takes its arguments.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     torch.nn.NLLLoss2d().reduction
        'mean'
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


class Container(Module):
    """A module with the given children; subclass Module instead.

    Args:
        kwargs: children by name.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     [name for name, _ in torch.nn.Container(out=torch.nn.ReLU()).named_children()]
        ['out']
    """

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, child in kwargs.items():
            self.add_module(name, child)
