"""Autocast on the CPU under its older names; see rushlight.amp.autocast_mode."""

from __future__ import annotations

import rushlight as rl
from rushlight.amp._older import OlderAutocast

__all__ = ["autocast"]


class autocast(OlderAutocast):
    """torch.amp.autocast("cpu", ...), which is its newer name.

    Args:
        enabled: False makes a region without autocast.
        dtype: the short dtype.
        cache_enabled: whether the casts of parameters are kept until the outermost region ends.
    """

    _device_type = "cpu"

    def __init__(
        self, enabled: bool = True, dtype: rl.dtype = rl.bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__(enabled, dtype, cache_enabled)
