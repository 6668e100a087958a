"""Memory over time by what it is for, which the profiler here does not tell."""

from __future__ import annotations

from typing import Any

__all__ = ["MemoryProfileTimeline"]

_CATEGORY_TO_COLORS: dict[Any, str] = {}
_CATEGORY_TO_INDEX: dict[Any, int] = {}


class MemoryProfileTimeline:
    """Refuses to be made.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, memory_profile: Any) -> None:
        raise NotImplementedError(
            "profiler: memory is not told by what it is for. See profile(profile_memory=True)."
        )
