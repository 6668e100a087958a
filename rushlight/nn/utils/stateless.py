"""functional_call under its old name, and the block behind it; they are in func now."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from rushlight import Tensor

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in place of its own; old, see func.functional_call.

    Example:
        >>> import warnings
        >>> from rushlight.nn.utils.stateless import functional_call
        >>> warnings.simplefilter("ignore")
        >>> new = {"weight": torch.full((1, 1), 2.0), "bias": torch.ones(1)}
        >>> functional_call(torch.nn.Linear(1, 1), new, torch.tensor([3.0]))
        tensor([7.])
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    from rushlight import func

    return func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> AbstractContextManager[None]:
    """Puts tensors in the place of a module's own for a block; libraries use it by this name."""
    from rushlight.func.modules import reparametrized

    return reparametrized(module, parameters_and_buffers, tie_weights, strict)
