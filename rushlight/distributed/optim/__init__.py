"""Optimizers for several processes."""

from rushlight.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward as _apply_optimizer_in_backward,
)
from rushlight.distributed.optim.apply_optimizer_in_backward import (
    _get_in_backward_optimizers as _get_in_backward_optimizers,
)
from rushlight.distributed.optim.optimizer import DistributedOptimizer
from rushlight.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from rushlight.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
