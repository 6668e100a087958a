"""The patterns of ExecuTorch: what XNNPACK computes on phones."""

from __future__ import annotations

import operator

import rushlight as rl
from rushlight import nn
from rushlight.ao.quantization.backend_config import _operators as ops
from rushlight.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    ObservationType,
)
from rushlight.nn import functional as F

__all__ = ["get_executorch_backend_config"]

_SHARED = (
    nn.Flatten, F.adaptive_avg_pool2d, F.elu, F.hardtanh, F.max_pool2d, F.pad, F.relu, F.relu6,
    F.leaky_relu, F.leaky_relu_, nn.AdaptiveAvgPool2d, nn.ConstantPad2d, nn.ELU, nn.MaxPool2d,
    nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, rl.clamp, rl.flatten, rl.mean, rl.permute, rl.squeeze,
    "clamp", "mean", "permute", "reshape", "relu", "relu_", "squeeze", "squeeze_", "leaky_relu",
    rl.cat, rl.concat, rl.concatenate,
)  # fmt: skip


def get_executorch_backend_config() -> BackendConfig:
    """Returns what ExecuTorch computes with integers; convert_to_reference_fx makes its input."""
    weighted = [ops.SYMMETRIC_WITH_WEIGHT, ops.INT8_WITH_WEIGHT]
    dynamic = [ops.DYNAMIC_INT8, ops.DYNAMIC_SYMMETRIC, ops.DYNAMIC_FLOAT16]
    plain = [ops.SYMMETRIC, ops.INT8]
    arithmetic = (operator.add, rl.add, operator.sub, rl.sub, operator.mul, rl.mul)
    return (
        BackendConfig("executorch")
        .set_backend_pattern_configs(ops.linears([*weighted, *dynamic], fuses=False))
        .set_backend_pattern_configs(ops.convs(weighted, dims=(2,), transposed=False))
        .set_backend_pattern_configs(
            ops.binaries([ops.SYMMETRIC, ops.INT8_WITH_WEIGHT], arithmetic)
        )
        .set_backend_pattern_configs(
            ops.each(_SHARED, plain, ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT)
        )
        .set_backend_pattern_configs(ops.each((nn.BatchNorm2d,), plain))
        .set_backend_pattern_configs(
            ops.each((F.embedding,), ops.WEIGHT_ONLY[:1], _input_type_to_index={"weight": 1})
        )
        .set_backend_pattern_configs(ops.embeddings(ops.WEIGHT_ONLY[:1]))
    )
