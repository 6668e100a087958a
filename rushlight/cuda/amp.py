"""Automatic mixed precision on the GPU under its older names; see rushlight.amp."""

from __future__ import annotations

import functools
import warnings

from rushlight import amp

TYPE_CHECKING = False
if TYPE_CHECKING:
    import rushlight as rl

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")


def _warn_of(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. "
        f"Please use `torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):
    """torch.amp.autocast("cuda", ...), which is its newer name.

    Args:
        enabled: False makes a region without autocast.
        dtype: the short dtype.
        cache_enabled: whether the casts of parameters are kept until the outermost region ends.
    """

    def __init__(
        self, enabled: bool = True, dtype: rl.dtype | None = None, cache_enabled: bool = True
    ) -> None:
        _warn_of("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


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
        _warn_of("GradScaler")
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
