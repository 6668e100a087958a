"""QConfig: what observes the results of a layer, and what its weight."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, TypeAlias

import rushlight as rl
from rushlight import nn
from rushlight.ao.quantization.fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from rushlight.ao.quantization.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)

__all__ = [
    "QConfig",
    "QConfigAny",
    "QConfigDynamic",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_embedding_qat_qconfig",
    "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "get_default_qat_qconfig",
    "get_default_qat_qconfig_dict",
    "get_default_qconfig",
    "get_default_qconfig_dict",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """The observers of a layer: classes, or what with_args returns, which are called for each.

    Args:
        activation: observes the layer's results.
        weight: observes its weight.

    Example:
        >>> from rushlight.ao.quantization import MinMaxObserver, QConfig, default_weight_observer
        >>> qconfig = QConfig(MinMaxObserver.with_args(reduce_range=True), default_weight_observer)
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The older name of a QConfig for weights alone."""

    __slots__ = ()

    def __new__(cls, activation: Any = nn.Identity, weight: Any = nn.Identity) -> QConfigDynamic:
        if isinstance(weight, nn.Module):
            raise ValueError(
                "QConfigDynamic received observer instance, please pass observer class instead."
            )
        return super().__new__(cls, activation, weight)


QConfigAny: TypeAlias = "QConfig | None"

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=rl.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=rl.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=rl.float16), PlaceholderObserver.with_args(dtype=rl.float16)
)
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    default_placeholder_observer, default_float_qparams_observer
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, nn.Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
default_embedding_qat_qconfig = QConfig(
    NoopObserver.with_args(dtype=rl.float32), default_embedding_fake_quant
)
_signed_histogram = HistogramObserver.with_args(dtype=rl.qint8, reduce_range=False, eps=2**-12)
_signed_average = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rl.qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qconfig = QConfig(_signed_histogram, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _signed_histogram, per_channel_weight_observer_range_neg_127_to_127
)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed_average, fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed_average, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)


def _check(backend: str, version: int, versions: tuple[int, ...]) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(
            f"backend: {backend} not supported. backend must be one of {list(_BACKENDS)}"
        )
    if version not in versions:
        raise AssertionError(f"Version number: {version} is not supported, of {versions}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Returns what observes a network that is to be quantized after training.

    Args:
        backend: "x86" or "fbgemm", which use 7 bits of the activations, "onednn" or "qnnpack",
            which use 8. They differ in scales alone: the same kernels run.
        version: 0.
    """
    _check(backend, version, (0,))
    activation = HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86"))
    is_qnnpack = backend == "qnnpack"
    return QConfig(
        activation, default_weight_observer if is_qnnpack else default_per_channel_weight_observer
    )


def get_default_qat_qconfig(backend: str = "x86", version: int | None = 1) -> QConfig:
    """Returns what rounds a network while it trains.

    Args:
        backend: as for get_default_qconfig.
        version: 1, or 0 for FakeQuantize as it was first.
    """
    version = 1 if version is None else version
    _check(backend, version, (0, 1))
    kind = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    arguments: dict[str, Any] = {
        "observer": MovingAverageMinMaxObserver,
        "quant_min": 0,
        "quant_max": 255,
    }
    if backend != "onednn":
        arguments["reduce_range"] = backend != "qnnpack"
    by_channel, by_tensor = (
        (default_fused_per_channel_wt_fake_quant, default_fused_wt_fake_quant)
        if version
        else (default_per_channel_weight_fake_quant, default_weight_fake_quant)
    )
    return QConfig(kind.with_args(**arguments), by_tensor if backend == "qnnpack" else by_channel)


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """Returns get_default_qconfig_mapping as a dict."""
    from rushlight.ao.quantization.qconfig_mapping import get_default_qconfig_mapping

    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """Returns get_default_qat_qconfig_mapping as a dict."""
    from rushlight.ao.quantization.qconfig_mapping import get_default_qat_qconfig_mapping

    return get_default_qat_qconfig_mapping(backend, version).to_dict()


def _maker_equals(a: Any, b: Any) -> bool:
    if hasattr(a, "p") and hasattr(b, "p"):
        return a.p.func == b.p.func and a.p.keywords == b.p.keywords
    return a == b


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Returns whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    return _maker_equals(q1.activation, q2.activation) and _maker_equals(q1.weight, q2.weight)
