"""Autocast on the GPU under its older names; see rushlight.amp.autocast_mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import amp
from rushlight.amp._older import OlderAutocast, warn_of

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(OlderAutocast):
    """torch.amp.autocast("cuda", ...), which is its newer name.

    Args:
        enabled: False makes a region without autocast.
        dtype: the short dtype.
        cache_enabled: whether the casts of parameters are kept until the outermost region ends.
    """

    _device_type = "cuda"

    def __init__(
        self, enabled: bool = True, dtype: rl.dtype = rl.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__(enabled, dtype, cache_enabled)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: rl.dtype | None = None
) -> Callable[..., Any]:
    """torch.amp.custom_fwd(device_type="cuda", ...), which is its newer name.

    Args:
        fwd: the static method forward; without it a decorator is returned.
        cast_inputs: the dtype that floating-point arguments are cast to under autocast.
    """
    warn_of("custom_fwd", "cuda", "custom_fwd(args..., device_type='cuda')", stacklevel=3)
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """torch.amp.custom_bwd(device_type="cuda", ...), which is its newer name.

    Args:
        bwd: the static method backward.
    """
    warn_of("custom_bwd", "cuda", "custom_bwd(args..., device_type='cuda')", stacklevel=3)
    return amp.custom_bwd(bwd, device_type="cuda")
