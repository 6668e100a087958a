"""Signal processing."""

from rushlight.signal import windows

__all__ = ["windows"]
