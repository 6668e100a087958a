"""Layers, losses, their functions and what initializes them."""

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
    from typing import Any

    from rushlight.nn import attention, parallel
    from rushlight.nn.parallel import DataParallel

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "attention",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]
__all__ += modules.__all__


# Where names live that are imported when first used: submodules by themselves, classes in one.
_LAZY = {
    "attention": None,
    "common_types": None,
    "grad": None,
    "intrinsic": None,
    "parallel": None,
    "qat": None,
    "quantized": None,
    "DataParallel": "parallel",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        module = importlib.import_module(f"rushlight.nn.{_LAZY[name] or name}")
        return getattr(module, name) if _LAZY[name] else module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
