"""Layers, losses, their functions and what initialises them."""

from rushlight.nn import attention, functional, init, modules, parameter, utils
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.parameter import Buffer, Parameter

__all__ = [
    "Buffer",
    "Parameter",
    "attention",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += modules.__all__
