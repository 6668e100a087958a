"""Switches of oneDNN, which had the name MKL-DNN.

Without it (enabled = False) ops run on loops of their own; the other switches change nothing.
"""

from __future__ import annotations

import sys

from rushlight import _C
from rushlight.backends._switches import (
    Precision,
    PrecisionOf,
    Switch,
    SwitchModule,
    change,
    changed,
)
from rushlight.backends._verbosity import Verbosity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2

enabled: bool
deterministic: bool
allow_tf32: bool
fp32_precision: str
matmul = PrecisionOf()
conv = PrecisionOf()
rnn = PrecisionOf()
verbose = Verbosity


def is_available() -> bool:
    """Returns whether oneDNN is installed and enabled."""
    return _C._onednn_is_available()


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
) -> tuple[Any, ...]:
    """Sets what is not None, and returns all settings from before."""
    return change(
        _Mkldnn,
        enabled=_enabled,
        deterministic=_deterministic,
        allow_tf32=_allow_tf32,
        fp32_precision=_fp32_precision,
    )


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Sets all settings for a block."""
    return changed(
        _Mkldnn,
        enabled=enabled,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )


def _tell() -> None:
    _C._onednn_enable(_Mkldnn.enabled)


class _Mkldnn(SwitchModule):
    enabled = Switch(True, setter="set_enabled_mkldnn", tell=_tell)
    deterministic = Switch(False, setter="set_deterministic_mkldnn")
    allow_tf32 = Switch(False, setter="set_allow_tf32_onednn")
    fp32_precision = Precision()


sys.modules[__name__].__class__ = _Mkldnn
