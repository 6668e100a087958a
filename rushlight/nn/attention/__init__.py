"""Which kernels scaled_dot_product_attention may use, and masks that have a name.

Kernels that other packages register take the place of none here: they are called for, and kept.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rushlight.nn.attention import bias as bias

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

# Accepted: there are no other kernels to warn of.
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """The kernels of scaled_dot_product_attention that PyTorch chooses from."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> AbstractContextManager[None]:
    """Lets scaled_dot_product_attention use these kernels only, for a block.

    This is accepted and changes nothing: each device has one way to compute attention.

    Args:
        backends: one kernel or a list.
        set_priority: whether the order of the list counts.

    Raises:
        AssertionError: if backends is neither.

    Example:
        >>> from rushlight.nn.attention import SDPBackend, sdpa_kernel
        >>> x = torch.ones(1, 1, 2, 1)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     torch.nn.functional.scaled_dot_product_attention(x, x, x).flatten().tolist()
        [1.0, 1.0]
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "sdpa_kernel: backends must be an SDPBackend or a list of them, got "
            f"{type(backends).__name__}."
        )
    from rushlight.backends import cuda

    allowed = [backends] if isinstance(backends, SDPBackend) else backends
    return cuda._attention(
        flash=SDPBackend.FLASH_ATTENTION in allowed,
        math=SDPBackend.MATH in allowed,
        mem_efficient=SDPBackend.EFFICIENT_ATTENTION in allowed,
        cudnn=SDPBackend.CUDNN_ATTENTION in allowed,
    )


_implementations: dict[str, Callable[..., Any]] = {}
_active: tuple[str, Any] | None = None  # the name, and what its function returned


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Gives a name to a function that puts kernels of attention in place.

    Args:
        impl: the name.
        register_fn: is called when it is activated. What it returns has, as PyTorch's handles do,
            a method remove that takes the kernels away.
    """
    _implementations[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """Returns the names that were registered; at first there are none."""
    return sorted(_implementations)


def activate_flash_attention_impl(impl: str) -> None:
    """Calls the function that was registered under a name, in place of the one before.

    Raises:
        ValueError: if there is none of this name.
    """
    global _active
    restore_flash_attention_impl()
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    handle = _implementations[impl]()
    if handle is not None:
        _active = impl, handle


def current_flash_attention_impl() -> str | None:
    """Returns the name that is active, None for Rushlight's own kernels."""
    return _active and _active[0]


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Goes back to Rushlight's own kernels."""
    global _active
    if _active is not None:
        _active[1].remove()
        _active = None
