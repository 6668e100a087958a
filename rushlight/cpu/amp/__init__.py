"""Mixed precision on the CPU under its older names; see rushlight.amp."""

from rushlight.cpu.amp.autocast_mode import autocast
from rushlight.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
