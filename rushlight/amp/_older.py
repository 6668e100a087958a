"""Autocast and gradient scaling under their older names, which say the device by their module.

torch.cuda.amp and torch.cpu.amp derive theirs from these; each use warns of the newer name.
"""

from __future__ import annotations

import warnings

import rushlight as rl
from rushlight.amp.autocast_mode import autocast
from rushlight.amp.grad_scaler import GradScaler


def warn_of(name: str, device: str, newer: str, stacklevel: int = 4) -> None:
    """Warns that a name of torch.DEVICE.amp has a newer one in torch.amp."""
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. "
        f"Please use `torch.amp.{newer}` instead.",
        FutureWarning,
        stacklevel=stacklevel,
    )


class OlderAutocast(autocast):
    """A region of autocast on the device of the subclass."""

    _device_type: str

    def __init__(self, enabled: bool, dtype: rl.dtype, cache_enabled: bool) -> None:
        device = self._device_type
        warn_of("autocast", device, f"autocast('{device}', args...)")
        super().__init__(device, dtype, enabled, cache_enabled)


class OlderGradScaler(GradScaler):
    """Scales a loss on the device of the subclass."""

    _device_type: str

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        device = self._device_type
        warn_of("GradScaler", device, f"GradScaler('{device}', args...)", stacklevel=3)
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
