"""Wrappers that compute a module's activations again in backward, or keep them on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from rushlight.autograd.graph import save_on_cpu
from rushlight.distributed.fsdp.wrap import lambda_auto_wrap_policy, wrap_below
from rushlight.distributed.wrapper import Wrapper, clean_items
from rushlight.nn import Module, Parameter
from rushlight.utils.checkpoint import checkpoint

__all__ = [
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]


class CheckpointImpl(Enum):
    """Which use_reentrant of utils.checkpoint is meant."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Wrapper):
    """What both wrappers have in common: parameters keep their names."""

    _attribute = "_checkpoint_wrapped_module"

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """Returns names, without that of the wrapper, and parameters."""
        return clean_items(super().named_parameters(*args, **kwargs))


class OffloadWrapper(ActivationWrapper):
    """Keeps what a module saves for backward in the memory of the CPU.

    Args:
        mod: the module.
    """

    def __init__(self, mod: Module) -> None:
        super().__init__(mod)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._wrapped(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Computes a module once more in backward, so that its activations need not be kept.

    Args:
        mod: the module.
        checkpoint_impl: how.
        checkpoint_fn: in place of utils.checkpoint.checkpoint.
        **checkpoint_fn_kwargs: its options.
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            is_reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn = functools.partial(checkpoint, use_reentrant=is_reentrant)
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        call = functools.partial(self._wrapped, **kwargs)
        return self.checkpoint_fn(call, *args)


def offload_wrapper(module: Module) -> OffloadWrapper:
    """Returns a module wrapped by OffloadWrapper."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> CheckpointWrapper:
    """Returns a module wrapped by CheckpointWrapper, which see.

    Example:
        >>> from rushlight.distributed.algorithms._checkpoint import checkpoint_wrapper as wrapping
        >>> layer = wrapping.checkpoint_wrapper(torch.nn.Linear(2, 1))
        >>> list(layer.state_dict())
        ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[..., Any] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., Any] | None = None,
) -> None:
    """Wraps modules below a model, in place.

    Args:
        model: the root, which is not wrapped itself.
        checkpoint_wrapper_fn: by what.
        check_fn: returns whether a module is wrapped.
        auto_wrap_policy: decides in place of check_fn, see fsdp.wrap.
    """
    policy = auto_wrap_policy or functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_below(model, policy, checkpoint_wrapper_fn, set(), set())
