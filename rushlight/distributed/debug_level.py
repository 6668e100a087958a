"""How much is checked and told, as TORCH_DISTRIBUTED_DEBUG of the environment sets it.

What is told in any case does not depend on it; programs read and set it.
"""

from __future__ import annotations

import os
from enum import IntEnum

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]

_VARIABLE = "TORCH_DISTRIBUTED_DEBUG"


class DebugLevel(IntEnum):
    """The levels."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """Returns the level.

    Example:
        >>> torch.distributed.get_debug_level()
        <DebugLevel.OFF: 0>
    """
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Sets the level."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Sets the level to what TORCH_DISTRIBUTED_DEBUG says.

    Raises:
        ValueError: unless it is OFF, INFO or DETAIL.
    """
    name = os.environ.get(_VARIABLE) or "OFF"
    if name.upper() not in DebugLevel.__members__:
        names = ", ".join(DebugLevel.__members__)
        raise ValueError(f"{_VARIABLE} is {name!r}. It must be one of {names}.")
    set_debug_level(DebugLevel[name.upper()])


set_debug_level_from_env()
