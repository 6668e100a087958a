"""What programs name in annotations of how a checkpoint is divided.

Here the ranks of save and load divide it by themselves; DefaultLoadPlanner has what can be chosen.
"""

__all__ = ["LoadPlan", "LoadPlanner", "SavePlan", "SavePlanner"]


class SavePlan:
    """What one rank writes, which no object is."""


class LoadPlan:
    """What one rank reads, which no object is."""


class SavePlanner:
    """Base class of DefaultSavePlanner."""


class LoadPlanner:
    """Base class of DefaultLoadPlanner."""
