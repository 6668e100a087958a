"""torch._C._profiler: what programs name of the native profiler of PyTorch."""

from __future__ import annotations

from types import SimpleNamespace

from rushlight.profiler import ProfilerActivity

__all__ = ["ProfilerActivity", "_ExperimentalConfig"]


class _ExperimentalConfig(SimpleNamespace):
    """Settings for the profiler, which takes all by name and reads none."""
