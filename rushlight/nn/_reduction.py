"""How losses are reduced, as numbers and by the older size_average and reduce."""

from __future__ import annotations

from rushlight import _C

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

NAMES = ("none", "mean", "sum")  # by number


def get_enum(reduction: str) -> int:
    """Returns the number of a reduction.

    Raises:
        ValueError: if there is no such reduction.
    """
    if reduction not in NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction. Use none, mean or sum.")
    return NAMES.index(reduction)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Returns the number of the reduction that the older arguments mean, with their warning."""
    if emit_warning:
        return _C._legacy_reduction(size_average, reduce)
    if reduce is False:
        return get_enum("none")
    return get_enum("sum" if size_average is False else "mean")


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Returns the same as text."""
    return NAMES[legacy_get_enum(size_average, reduce, emit_warning)]
