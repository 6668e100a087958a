"""Optimizers for several processes."""

from rushlight.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from rushlight.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
