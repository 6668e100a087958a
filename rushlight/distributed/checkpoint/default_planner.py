"""The planners of save and load, where programs look for them."""

from rushlight.distributed.checkpoint._saving import DefaultLoadPlanner as DefaultLoadPlanner
from rushlight.distributed.checkpoint._saving import DefaultSavePlanner as DefaultSavePlanner
from rushlight.distributed.checkpoint._saving import (
    _EmptyStateDictLoadPlanner as _EmptyStateDictLoadPlanner,
)

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]
