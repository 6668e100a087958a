"""Automatic mixed precision."""

from rushlight.amp.grad_scaler import GradScaler

__all__ = ["GradScaler"]
