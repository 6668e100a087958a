"""Automatic mixed precision on the GPU under its older names; see rushlight.amp."""

from __future__ import annotations

import warnings

from rushlight import amp

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """torch.amp.GradScaler("cuda", ...), which is its newer name.

    Args:
        init_scale: the first scale.
        growth_factor: greater than 1.
        backoff_factor: less than 1.
        growth_interval: good steps between two growths.
        enabled: False makes scale and step do nothing of their own.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. "
            "Please use `torch.amp.GradScaler('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
