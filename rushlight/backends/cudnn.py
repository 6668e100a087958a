"""Switches of cuDNN; they keep what they are set to."""

from __future__ import annotations

import sys

import rushlight as rl
from rushlight.backends._switches import (
    Precision,
    PrecisionOf,
    Switch,
    SwitchModule,
    change,
    changed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from rushlight import Tensor

enabled: bool
benchmark: bool
benchmark_limit: int
deterministic: bool
allow_tf32: bool
fp32_precision: str
conv = PrecisionOf()
rnn = PrecisionOf()


def is_available() -> bool:
    """Returns whether there is a GPU whose convolutions cuDNN can compute."""
    return rl.cuda.is_available()


def version() -> int | None:
    """Returns None: the library is opened when it is first needed, whatever its version."""
    return None


def is_acceptable(tensor: Tensor) -> bool:
    """Returns whether cuDNN could work on a tensor: one of a floating dtype on a GPU."""
    floating = (rl.float16, rl.float32, rl.float64)
    return cudnn.enabled and tensor.device.type == "cuda" and tensor.dtype in floating


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
) -> tuple[Any, ...]:
    """Sets what is not None, and returns all settings from before."""
    return change(
        _Cudnn,
        enabled=_enabled,
        benchmark=_benchmark,
        benchmark_limit=_benchmark_limit,
        deterministic=_deterministic,
        allow_tf32=_allow_tf32,
        fp32_precision=_fp32_precision,
    )


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Sets all settings for a block."""
    return changed(
        _Cudnn,
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )


class _Cudnn(SwitchModule):
    enabled = Switch(True, setter="set_enabled_cudnn")
    benchmark = Switch(False, setter="set_benchmark_cudnn")
    benchmark_limit = Switch(10, int, setter="set_benchmark_limit_cudnn")
    deterministic = Switch(False, setter="set_deterministic_cudnn")
    allow_tf32 = Switch(True, setter="set_allow_tf32_cudnn")
    fp32_precision = Precision()


cudnn: Any = sys.modules[__name__]
cudnn.__class__ = _Cudnn
