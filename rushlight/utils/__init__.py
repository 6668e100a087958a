"""Tools around training: data loading, recomputation, pictures of the tape, hooks and DLPack."""

from __future__ import annotations

from importlib import import_module as _import_module

from rushlight.utils import hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.utils import (
        benchmark,
        checkpoint,
        collect_env,
        data,
        deterministic,
        dlpack,
        flop_counter,
        graph,
        model_zoo,
        safetensors,
        tensorboard,
        weak,
    )
    from rushlight.utils._swap import swap_tensors

__all__ = [
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "graph",
    "hooks",
    "model_zoo",
    "safetensors",
    "swap_tensors",
    "tensorboard",
    "weak",
]

_LATER = (
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "graph",
    "model_zoo",
    "safetensors",
    "tensorboard",
    "weak",
)


def __getattr__(name: str) -> Any:
    if name in _LATER:  # imported when first used, as nn imports this package
        return _import_module(f"rushlight.utils.{name}")
    if name == "swap_tensors":
        return _import_module("rushlight.utils._swap").swap_tensors
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
