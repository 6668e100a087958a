"""The schema of a function, where some libraries look for it."""

from rushlight.library import infer_schema

__all__ = ["infer_schema"]
