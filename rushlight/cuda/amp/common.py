"""Whether mixed precision can be used on the GPU."""

from __future__ import annotations

from rushlight import cuda

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Returns whether there is no GPU."""
    return not cuda.is_available()
