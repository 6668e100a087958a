"""Layers, losses, their functions and what initialises them."""

from __future__ import annotations

from rushlight.nn import functional, init, modules, parameter, utils
from rushlight.nn._factory import factory_kwargs
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from rushlight.nn import attention

__all__ = [
    "Buffer",
    "Parameter",
    "attention",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += modules.__all__


def __getattr__(name: str) -> ModuleType:
    if name == "attention":  # imported when first used
        import importlib

        return importlib.import_module("rushlight.nn.attention")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
