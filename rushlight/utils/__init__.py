"""Tools around training: data loading, pictures of the tape, hook handles and DLPack."""

from rushlight.utils import data, dlpack, graph, hooks

__all__ = ["data", "dlpack", "graph", "hooks"]
