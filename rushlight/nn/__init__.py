"""Layers, losses, their functions and what initializes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _later
from rushlight.nn import functional, init, modules, parameter, utils
from rushlight.nn._factory import factory_kwargs
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

if TYPE_CHECKING:
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


__getattr__ = _later.imports(
    __name__,
    (
        "attention",
        "common_types",
        "grad",
        "intrinsic",
        "parallel",
        "qat",
        "quantizable",
        "quantized",
    ),
    {"parallel": "DataParallel"},
)
