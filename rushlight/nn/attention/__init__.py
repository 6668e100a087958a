"""Which kernels scaled_dot_product_attention may use, and masks that have a name."""

from __future__ import annotations

import enum
from contextlib import AbstractContextManager

from rushlight.nn.attention import bias as bias

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

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
