"""Switches of cuDNN, which computes convolutions on a GPU; see "cuDNN" in docs/gpu.md.

`enabled`, `benchmark`, `benchmark_limit`, `allow_tf32` and the precisions act. `deterministic` is
kept without effect, because only algorithms are used that give the same bits at every run. With
`benchmark`, times decide about the algorithm, which may be another one in another process.
"""

from __future__ import annotations

import sys

import rushlight as rl
from rushlight import _C, backends
from rushlight.backends._switches import (
    Precision,
    Switch,
    SwitchModule,
    change,
    changed,
    check_precision,
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


class _PrecisionOf:
    """The precision of one kind of op: its own, else cuDNN's, and TF32 before one is set."""

    _own: str | None = None

    @property
    def fp32_precision(self) -> str:
        """How float32 is computed with: "tf32", "ieee" or "none", which is the same."""
        if self._own not in (None, "none"):
            return self._own
        nothing_is_set = self._own is None and backends.fp32_precision == "none"
        inherited = cudnn.fp32_precision
        return "tf32" if nothing_is_set and inherited == "none" else inherited

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _check_precision(value)
        self._own = value
        _tell()


conv = _PrecisionOf()
rnn = _PrecisionOf()


def is_available() -> bool:
    """Returns whether there are a GPU and a cuDNN that fits; it never raises."""
    try:
        return version() is not None
    except RuntimeError:
        return False


def version() -> int | None:
    """Returns the version of cuDNN, such as 92800 for 9.28.0; None when there is none.

    Raises:
        RuntimeError: if RUSHLIGHT_CUDNN names a file that is no cuDNN 9 for the driver.
    """
    return (_C._cudnn_version() if rl.cuda.is_available() else 0) or None


def is_acceptable(tensor: Tensor) -> bool:
    """Returns whether cuDNN can convolve a tensor: one on a GPU, and not of float64."""
    dtypes = (rl.float16, rl.bfloat16, rl.float32)
    return (
        cudnn.enabled and tensor.device.type == "cuda" and tensor.dtype in dtypes and is_available()
    )


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


def _tell() -> None:
    _C._cudnn_set(
        cudnn.enabled, conv.fp32_precision == "tf32", cudnn.benchmark, cudnn.benchmark_limit
    )


def _check_precision(value: Any) -> None:
    check_precision(value)
    if value == "bf16":
        raise RuntimeError("backend 'cuda' does not support precision 'bf16'")


class _AllowTf32(Switch):
    """Another name for the precision of both kinds of op; it tells that of convolutions."""

    def get(self) -> bool:
        return conv.fp32_precision == "tf32"

    def set(self, value: Any) -> None:
        super().set(value)
        conv.fp32_precision = rnn.fp32_precision = "tf32" if value else "none"


class _Precision(Precision):
    """What is "none" here is what all back ends have."""

    def __get__(self, module: Any, owner: type) -> str:
        of_all = backends.fp32_precision
        return of_all if self.get() == "none" and of_all != "bf16" else self.get()

    def set(self, value: Any) -> None:
        _check_precision(value)
        super().set(value)


class _Cudnn(SwitchModule):
    enabled = Switch(True, setter="set_enabled_cudnn", tell=_tell)
    benchmark = Switch(False, setter="set_benchmark_cudnn", tell=_tell)
    benchmark_limit = Switch(10, int, setter="set_benchmark_limit_cudnn", tell=_tell)
    deterministic = Switch(False, setter="set_deterministic_cudnn")
    allow_tf32 = _AllowTf32(True, setter="set_allow_tf32_cudnn")
    fp32_precision = _Precision(_tell)


cudnn: Any = sys.modules[__name__]
cudnn.__class__ = _Cudnn
