"""Layers, losses, their functions and what initialises them."""

from rushlight.nn import attention, functional, init, modules, parameter, utils
from rushlight.nn._factory import factory_kwargs
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

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
