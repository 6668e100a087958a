"""Tools around training: data loading, recomputation, pictures of the tape, hooks and DLPack."""

from __future__ import annotations

from importlib import import_module as _import_module

from rushlight.utils import data, dlpack, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from rushlight.utils import checkpoint, graph

__all__ = ["checkpoint", "data", "dlpack", "graph", "hooks"]


def __getattr__(name: str) -> ModuleType:
    if name in ("checkpoint", "graph"):  # imported when first used, as nn imports this package
        return _import_module(f"rushlight.utils.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
