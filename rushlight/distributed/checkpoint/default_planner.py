"""The planners of save and load, where programs look for them."""

from rushlight.distributed.checkpoint._saving import DefaultLoadPlanner as DefaultLoadPlanner
from rushlight.distributed.checkpoint._saving import DefaultSavePlanner as DefaultSavePlanner

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]
