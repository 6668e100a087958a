"""Gradient scaling on the GPU under its older name; see rushlight.amp.grad_scaler."""

from __future__ import annotations

from rushlight.amp._older import OlderGradScaler
from rushlight.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(OlderGradScaler):
    """torch.amp.GradScaler("cuda", ...), which is its newer name.

    Args:
        init_scale: the first scale.
        growth_factor: greater than 1.
        backoff_factor: less than 1.
        growth_interval: good steps between two growths.
        enabled: False makes scale and step do nothing of their own.
    """

    _device_type = "cuda"
