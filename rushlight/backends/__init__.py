"""Switches of back ends that programs set, and what they can be asked about.

Those that Rushlight has no such choice for keep what they are set to and change nothing.
"""

from __future__ import annotations

import sys

from rushlight import _later
from rushlight.backends import _switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_MODULES = (
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
)

fp32_precision: str


def disable_global_flags() -> None:
    """Refuses assignments to switches from now on; their flags() go on working."""
    _switches.freeze()


def flags_frozen() -> bool:
    """Returns whether disable_global_flags was called."""
    return _switches.are_frozen()


def set_flags(_fp32_precision: str | None = None) -> tuple[str]:
    """Sets what is not None, and returns the setting from before."""
    return _switches.change(_Backends, fp32_precision=_fp32_precision)


def flags(fp32_precision: str = "none") -> AbstractContextManager[None]:
    """Sets the precision of float32 for a block."""
    return _switches.changed(_Backends, fp32_precision=fp32_precision)


def _tell() -> None:
    from rushlight.backends import cudnn

    cudnn._tell()


class _Backends(_switches.SwitchModule):
    fp32_precision = _switches.Precision(_tell)


__getattr__ = _later.imports(__name__, _MODULES)
sys.modules[__name__].__class__ = _Backends
