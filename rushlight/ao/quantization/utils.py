"""Questions about configurations of quantization, and the forms that observers chose."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.ao.nn.quantized._packed import qparams_of
from rushlight.ao.quantization.fake_quantize import FakeQuantizeBase
from rushlight.ao.quantization.observer import ObserverBase
from rushlight.ao.quantization.quant_type import QuantType
from rushlight.fx.graph_module import value_at

__all__ = [
    "MatchAllNode",
    "ObserverOrFakeQuantize",
    "Pattern",
    "activation_dtype",
    "activation_is_dynamically_quantized",
    "activation_is_int8_quantized",
    "activation_is_statically_quantized",
    "get_combined_dict",
    "get_qconfig_dtypes",
    "get_qparam_dict",
    "get_quant_type",
    "getattr_from_fqn",
    "is_per_channel",
    "is_per_tensor",
    "op_is_int8_dynamically_quantized",
    "weight_dtype",
    "weight_is_quantized",
    "weight_is_statically_quantized",
]

#: A class, function or method name, or a tuple of them.
Pattern = Any
#: What stands behind a result in a prepared network.
ObserverOrFakeQuantize = ObserverBase | FakeQuantizeBase
_INTEGERS = (rl.quint8, rl.qint8, rl.qint32, rl.quint4x2)


class MatchAllNode:
    """In a pattern: any node at all."""


def get_combined_dict(
    default_dict: dict[Any, Any], additional_dict: dict[Any, Any]
) -> dict[Any, Any]:
    """Returns both dicts in one; what is in both is the second's."""
    return {**default_dict, **additional_dict}


def is_per_tensor(qscheme: Any) -> bool:
    """Returns whether a scheme has one scale."""
    return qscheme in (rl.per_tensor_affine, rl.per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """Returns whether a scheme has a scale for each channel."""
    return qscheme in (
        rl.per_channel_affine,
        rl.per_channel_affine_float_qparams,
        rl.per_channel_symmetric,
    )


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """Returns the attribute at a path with dots."""
    return value_at(obj, fqn)


def get_qparam_dict(observer_or_fake_quant: nn.Module) -> dict[str, Any]:
    """Returns what an observer chose: qscheme, dtype, scale and zero_point, and the axis."""
    return qparams_of(observer_or_fake_quant)


def activation_dtype(qconfig: Any) -> Any:
    """Returns the dtype that a QConfig gives results."""
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """Returns the dtype that a QConfig gives weights."""
    return qconfig.weight().dtype


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Returns whether results get a scale that is chosen beforehand."""
    return activation_dtype(qconfig) in (*_INTEGERS, rl.float16) and (
        not activation_is_dynamically_quantized(qconfig)
    )


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Returns whether the scale is chosen from each input."""
    return bool(getattr(qconfig.activation(), "is_dynamic", False))


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Returns whether results become 8-bit integers."""
    return activation_dtype(qconfig) in (rl.quint8, rl.qint8)


def weight_is_quantized(qconfig: Any) -> bool:
    """Returns whether weights become integers, or halves."""
    return weight_dtype(qconfig) in (*_INTEGERS, rl.float16)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Returns whether weights become 8-bit integers."""
    return weight_dtype(qconfig) in (rl.quint8, rl.qint8)


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Returns whether a layer has 8-bit weights and takes floats."""
    return (
        activation_dtype(qconfig) in (rl.quint8, rl.qint8)
        and activation_is_dynamically_quantized(qconfig)
        and weight_is_statically_quantized(qconfig)
    )


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, bool]:
    """Returns the dtypes of results and weights, and whether scales are chosen from each input."""
    return (
        activation_dtype(qconfig),
        weight_dtype(qconfig),
        activation_is_dynamically_quantized(qconfig),
    )


def get_quant_type(qconfig: Any) -> QuantType:
    """Returns the way of quantization that a QConfig means.

    Raises:
        Exception: if it means none.
    """
    activation, is_dynamic = qconfig.activation(), activation_is_dynamically_quantized(qconfig)
    if weight_dtype(qconfig) in (*_INTEGERS, rl.float16):
        if is_dynamic:
            return QuantType.DYNAMIC
        if activation.dtype in (rl.quint8, rl.qint8):
            return QuantType.STATIC
        return QuantType.WEIGHT_ONLY
    if weight_dtype(qconfig) is rl.float32:
        if is_dynamic:
            return QuantType.DYNAMIC
        if activation.dtype in (rl.quint8, rl.qint8, rl.float16):
            return QuantType.STATIC
    raise Exception(
        f"Unrecognized dtype combination in get_quant_type: activation({activation.dtype}), "
        f"weight({weight_dtype(qconfig)})"
    )
