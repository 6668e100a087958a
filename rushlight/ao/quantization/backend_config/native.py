"""The patterns that this package itself computes with integers."""

from __future__ import annotations

import rushlight as rl
from rushlight.ao.quantization.backend_config import _operators as ops
from rushlight.ao.quantization.backend_config.backend_config import BackendConfig, DTypeConfig

__all__ = [
    "get_native_backend_config",
    "get_native_backend_config_dict",
]


def of_bytes(
    name: str,
    weighted: list[DTypeConfig],
    plain: list[DTypeConfig],
    arithmetic: list[DTypeConfig],
    dynamic: list[DTypeConfig],
    tables: list[DTypeConfig],
) -> BackendConfig:
    """Returns what the back ends of PyTorch share.

    Args:
        name: of the back end.
        weighted: the dtypes of layers with weights, when scales are known.
        plain: those of layers and calls without.
        arithmetic: those of sums, products and functions whose range is known.
        dynamic: those of layers that choose scales from each input.
        tables: those of embeddings.
    """
    return (
        BackendConfig(name)
        .set_backend_pattern_configs(ops.convs(weighted))
        .set_backend_pattern_configs(ops.linears([*weighted, *dynamic]))
        .set_backend_pattern_configs(ops.binaries(arithmetic))
        .set_backend_pattern_configs(ops.each((rl.matmul,), arithmetic))
        .set_backend_pattern_configs(ops.joins(plain))
        .set_backend_pattern_configs(ops.own_activations(plain))
        .set_backend_pattern_configs(ops.known_ranges(arithmetic))
        .set_backend_pattern_configs(ops.shared(plain))
        .set_backend_pattern_configs(ops.norms(plain))
        .set_backend_pattern_configs(ops.recurrent(dynamic))
        .set_backend_pattern_configs(ops.embeddings(tables))
    )


def get_native_backend_config() -> BackendConfig:
    """Returns what prepare_fx and convert_fx do unless they are given another configuration.

    Example:
        >>> from rushlight.ao.quantization.backend_config import get_native_backend_config
        >>> config = get_native_backend_config()
        >>> torch.nn.Conv2d in [each.pattern for each in config.configs]
        True
    """
    dynamic, plain = [ops.DYNAMIC_INT8, ops.DYNAMIC_FLOAT16], [ops.INT8]
    result = of_bytes("native", [ops.INT8_WITH_WEIGHT], plain, plain, dynamic, ops.WEIGHT_ONLY)
    return result.set_backend_pattern_configs(ops.layer_norms([ops.INT8_WITH_FLOAT_WEIGHT]))


def get_native_backend_config_dict() -> dict[str, object]:
    """Returns get_native_backend_config as a dict."""
    return get_native_backend_config().to_dict()
