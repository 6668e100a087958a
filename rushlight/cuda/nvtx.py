"""Marks for NVIDIA's profilers (Nsight), which name the parts of a program on its time line.

Without NVTX (`pip install nvidia-nvtx`) they do nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight import _C

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg: str) -> int:
    """Begins a range inside the last one of this thread.

    Args:
        msg: its name.

    Returns:
        How many ranges it lies in, or a negative number without NVTX.

    Example:
        >>> _ = torch.cuda.nvtx.range_push("forward")
        >>> _ = torch.cuda.nvtx.range_pop()
    """
    return _C._nvtx_push(msg)


def range_pop() -> int:
    """Ends the last range of this thread, and returns how many ranges it lay in."""
    return _C._nvtx_pop()


def range_start(msg: str) -> int:
    """Begins a range that may overlap others and end on another thread; returns what ends it.

    Args:
        msg: its name.
    """
    return _C._nvtx_start(msg)


def range_end(range_id: int) -> None:
    """Ends a range.

    Args:
        range_id: what range_start returned.
    """
    _C._nvtx_end(range_id)


def mark(msg: str) -> None:
    """Marks a point in time.

    Args:
        msg: its name.
    """
    _C._nvtx_mark(msg)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A context, or a decorator of a function, that lies in a range.

    Args:
        msg: its name, or a format to which the other arguments are given.

    Example:
        >>> with torch.cuda.nvtx.range("batch {}", 3):
        ...     x = torch.ones(2) + 1
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
