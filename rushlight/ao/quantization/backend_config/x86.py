"""The patterns of PyTorch's x86 engine: bytes on x86 processors."""

from __future__ import annotations

from rushlight.ao.quantization.backend_config import _operators as ops
from rushlight.ao.quantization.backend_config.backend_config import BackendConfig
from rushlight.ao.quantization.backend_config.native import of_bytes

__all__ = ["get_x86_backend_config"]


def get_x86_backend_config() -> BackendConfig:
    """Returns what PyTorch's x86 engine computes with integers."""
    dynamic = [ops.DYNAMIC_INT8, ops.DYNAMIC_FLOAT16]
    return of_bytes(
        "x86", [ops.INT8_WITH_WEIGHT], [ops.INT8], [ops.INT8_WITH_WEIGHT], dynamic, ops.WEIGHT_ONLY
    )
