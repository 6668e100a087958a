"""The patterns of QNNPACK: signed or unsigned bytes on Arm processors."""

from __future__ import annotations

from rushlight.ao.quantization.backend_config import _operators as ops
from rushlight.ao.quantization.backend_config.backend_config import BackendConfig
from rushlight.ao.quantization.backend_config.native import of_bytes

__all__ = ["get_qnnpack_backend_config"]


def get_qnnpack_backend_config() -> BackendConfig:
    """Returns what QNNPACK computes with integers."""
    plain = [ops.SYMMETRIC, ops.INT8]
    return of_bytes(
        "qnnpack",
        [ops.SYMMETRIC_WITH_WEIGHT, ops.INT8_WITH_WEIGHT],
        plain,
        plain,
        [ops.DYNAMIC_INT8, ops.DYNAMIC_FLOAT16],
        ops.WEIGHT_ONLY,
    )
