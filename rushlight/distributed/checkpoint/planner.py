"""What programs name in annotations of how a checkpoint is divided.

Here the ranks of save and load divide it by themselves; DefaultLoadPlanner has what can be chosen.
"""

from __future__ import annotations

__all__ = ["LoadPlan", "LoadPlanner", "SavePlan", "SavePlanner"]


class SavePlan:
    """What one rank writes, which no object is."""


class LoadPlan:
    """What one rank reads, which no object is."""


class SavePlanner:
    """Base class of DefaultSavePlanner."""


class LoadPlanner:
    """Base class of DefaultLoadPlanner."""


# What PyTorch's save and load call of a planner.
_STEPS = [
    "set_up_planner",
    "create_local_plan",
    "create_global_plan",
    "finish_plan",
    "resolve_data",
    "lookup_object",
    "transform_object",
    "load_bytes",
    "resolve_bytes",
    "resolve_tensor",
    "commit_tensor",
    "lookup_tensor",
    "transform_tensor",
]


def refuse_steps(function: str, planner: object) -> None:
    """Refuses a planner with methods of its own, which would not be called.

    Args:
        function: what the planner was given to.
        planner: the planner, or None.

    Raises:
        NotImplementedError: if it has any.
    """
    own = [name for name in _STEPS if hasattr(planner, name)]
    if own:
        raise NotImplementedError(
            f"{function}: {type(planner).__name__} has {', '.join(own)}, which would not be "
            "called. Change the state dict instead."
        )
