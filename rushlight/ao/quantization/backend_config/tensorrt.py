"""The patterns of TensorRT: signed bytes on GPUs."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.ao.quantization.backend_config import _operators as ops
from rushlight.ao.quantization.backend_config.backend_config import BackendConfig, DTypeConfig

__all__ = ["get_tensorrt_backend_config", "get_tensorrt_backend_config_dict"]


def get_tensorrt_backend_config() -> BackendConfig:
    """Returns what TensorRT computes with integers; convert_to_reference_fx makes its input."""
    weighted = [DTypeConfig(rl.qint8, rl.qint8, rl.qint8, rl.float32)]
    plain = [DTypeConfig(rl.qint8, rl.qint8)]
    product = ops.each(
        (rl.addmm,), weighted, _input_type_to_index={"bias": 0, "input": 1, "weight": 2}
    )
    return (
        BackendConfig("tensorrt")
        .set_backend_pattern_configs(ops.convs(weighted))
        .set_backend_pattern_configs(product)
        .set_backend_pattern_configs(ops.joins(plain))
        .set_backend_pattern_configs(ops.linears(weighted))
        .set_backend_pattern_configs(ops.binaries(weighted))
        .set_backend_pattern_configs(ops.shared(plain))
        .set_backend_pattern_configs(ops.each((rl.matmul,), weighted))
    )


def get_tensorrt_backend_config_dict() -> dict[str, Any]:
    """Returns get_tensorrt_backend_config as a dict."""
    return get_tensorrt_backend_config().to_dict()
