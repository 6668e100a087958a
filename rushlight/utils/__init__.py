"""Tools around training: data loading, recomputation, pictures of the tape, hooks and DLPack."""

from __future__ import annotations

from importlib import import_module as _import_module

from rushlight.utils import hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from rushlight.utils import (
        checkpoint,
        data,
        deterministic,
        dlpack,
        graph,
        model_zoo,
        safetensors,
        tensorboard,
    )

__all__ = [
    "checkpoint",
    "data",
    "deterministic",
    "dlpack",
    "graph",
    "hooks",
    "model_zoo",
    "safetensors",
    "tensorboard",
]

_LATER = (
    "_pytree",
    "checkpoint",
    "data",
    "deterministic",
    "dlpack",
    "graph",
    "model_zoo",
    "safetensors",
    "tensorboard",
)


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:  # imported when first used, as nn imports this package
        return _import_module(f"rushlight.utils.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
