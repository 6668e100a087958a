"""The gradient scaler for sharded modules."""

from __future__ import annotations

from typing import Any

from rushlight.amp import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A GradScaler. Any of them leaves a step out on all ranks if a part is not finite on one.

    Args:
        device, init_scale, backoff_factor, growth_factor, growth_interval, enabled: see GradScaler.
        process_group: accepted for PyTorch's sake; the mesh of the gradients tells the ranks.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
