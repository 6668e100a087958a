"""Tells NVIDIA's profilers which part of a program to watch: `nsys profile -c cudaProfilerApi`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rushlight.cuda._runtime import check_error, cudart

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Begins the part to watch."""
    check_error(cudart().cudaProfilerStart())


def stop() -> None:
    """Ends the part to watch."""
    check_error(cudart().cudaProfilerStop())


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """A context that is watched."""
    start()
    try:
        yield
    finally:
        stop()
