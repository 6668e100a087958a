"""Tools around training: data loading, hook handles and DLPack."""

from rushlight.utils import data, dlpack, hooks

__all__ = ["data", "dlpack", "hooks"]
