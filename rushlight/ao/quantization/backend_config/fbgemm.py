"""The patterns of FBGEMM: bytes on x86 processors."""

from __future__ import annotations

from rushlight.ao.quantization.backend_config import _operators as ops
from rushlight.ao.quantization.backend_config.backend_config import BackendConfig
from rushlight.ao.quantization.backend_config.native import of_bytes

__all__ = ["get_fbgemm_backend_config"]


def get_fbgemm_backend_config() -> BackendConfig:
    """Returns what FBGEMM computes with integers."""
    dynamic = [ops.DYNAMIC_INT8, ops.DYNAMIC_FLOAT16]
    return of_bytes(
        "fbgemm", [ops.INT8_WITH_WEIGHT], [ops.INT8], [ops.INT8], dynamic, ops.WEIGHT_ONLY
    )
