"""What PyTorch keeps here: batch norms folded into convolutions, constants computed once."""

from __future__ import annotations

from rushlight.fx.experimental import const_fold, optimization

__all__ = ["const_fold", "optimization"]
