"""Tools around training: data loading and hook handles."""

from rushlight.utils import data, hooks

__all__ = ["data", "hooks"]
