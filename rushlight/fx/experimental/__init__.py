"""What PyTorch keeps here: optimization, which folds batch norms into convolutions."""

from __future__ import annotations

from rushlight.fx.experimental import optimization

__all__ = ["optimization"]
