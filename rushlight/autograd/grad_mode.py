"""The modes of autograd, under the name that PyTorch has for them, and its lesser switches."""

from __future__ import annotations

from functools import wraps
from threading import local
from typing import TYPE_CHECKING, Any

from rushlight import _C
from rushlight._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

if TYPE_CHECKING:
    from rushlight._grad_mode import F

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_local = local()


class _Policy:
    """A setting of this thread: set at once, and for the scope when used with `with`.

    As a decorator, it is set for the calls only.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._before = self._set(self.mode)

    @staticmethod
    def _set(mode: bool) -> bool:
        """Sets the mode and returns the one before."""
        raise NotImplementedError

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        self._set(self._before)

    def __call__(self, function: F) -> F:
        self._set(self._before)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.mode):
                return function(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]


class enforce_grad_layout_policy(_Policy):
    """Sets whether a new .grad lies in memory like its leaf, which spares optimizers time.

    Without it, a gradient that nobody else has becomes the .grad as it is, which spares a copy.

    Args:
        enable: whether it does.

    Example:
        >>> leaf = torch.zeros(3, 2).t().requires_grad_()
        >>> with torch.autograd.enforce_grad_layout_policy(False):
        ...     (leaf * torch.ones(2, 3)).sum().backward()
        >>> leaf.stride(), leaf.grad.shape
        ((1, 2), torch.Size([2, 3]))
    """

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)

    @staticmethod
    def _set(mode: bool) -> bool:
        before = _C._is_grad_layout_kept()
        _C._keep_grad_layout(mode)
        return before


class set_multithreading_enabled(_Policy):
    """Notes whether a backward may use threads of its own: it always runs in the caller's thread.

    Args:
        mode: whether it may.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     x.sum().backward()
    """

    @staticmethod
    def _set(mode: bool) -> bool:
        before = getattr(_local, "multithreading", True)
        _local.multithreading = mode
        return before


def is_multithreading_enabled() -> bool:
    """Returns what set_multithreading_enabled was told."""
    return getattr(_local, "multithreading", True)
