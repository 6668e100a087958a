"""The patterns of PyTorch's oneDNN engine: bytes, and sums and activations right behind layers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.ao.quantization.backend_config import _operators as ops
from rushlight.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
)
from rushlight.ao.quantization.backend_config.native import of_bytes
from rushlight.ao.quantization.utils import MatchAllNode
from rushlight.nn import functional as F
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["get_onednn_backend_config"]


def _sum_pattern(add: Any, place: int, has_norm: bool, has_relu: bool) -> Any:
    """A convolution that is one operand of a sum, from its end."""
    conv: Any = (nn.BatchNorm2d, nn.Conv2d) if has_norm else nn.Conv2d
    pattern = (add, conv, MatchAllNode) if place == 0 else (add, MatchAllNode, conv)
    return (nn.ReLU, pattern) if has_relu else pattern


def _sum_config(add: Any, place: int, has_norm: bool, has_relu: bool) -> BackendPatternConfig:
    """The fusion of such a pattern: ConvAdd2d or ConvAddReLU2d, called with both operands."""

    def operands(pattern: Any) -> tuple[Any, Any]:
        _, *both = pattern[1] if has_relu else pattern
        return both[place], both[1 - place]

    def root(pattern: Any) -> Any:
        conv, _ = operands(pattern)
        return conv[1] if has_norm else conv

    def extra(pattern: Any) -> list[Any]:
        return [operands(pattern)[1]]

    def fuse(is_qat: bool, *pattern: Any) -> Any:
        if is_qat:
            raise NotImplementedError("Cannot fuse train modules: a convolution and a sum")
        conv, _ = operands(pattern)
        if has_norm:
            norm, layer = conv
            conv = fuse_conv_bn_eval(layer, norm)
        if has_relu:
            return nni.ConvAddReLU2d(conv, rl.add, pattern[0])
        return nni.ConvAdd2d(conv, rl.add)

    result = BackendPatternConfig()._set_pattern_complex_format(
        _sum_pattern(add, place, has_norm, has_relu)
    )
    result.add_dtype_config(ops.INT8_WITH_WEIGHT).set_fuser_method(fuse)
    result.set_fused_module(nni.ConvAddReLU2d if has_relu else nni.ConvAdd2d)
    return result._set_root_node_getter(root)._set_extra_inputs_getter(extra)


def _sums() -> list[BackendPatternConfig]:
    result = [
        _sum_config(add, place, has_norm, has_relu)
        for has_relu in (False, True)
        for has_norm in (True, False)
        for place in (0, 1)
        for add in (rl.add, operator.add)
    ]
    for layer in (nni.ConvAdd2d, nni.ConvAddReLU2d):
        config = BackendPatternConfig(layer).add_dtype_config(ops.INT8_WITH_WEIGHT)
        config.set_root_module(nn.Conv2d).set_reference_quantized_module(nnqr.Conv2d)
        result.append(config)
    return result


def _as(kind: Any) -> Callable[..., Any]:
    return lambda is_qat, *layers: kind(*layers)


def _fuse_linear_bn_leaky_relu(is_qat: bool, linear: Any, bn: Any, leaky_relu: Any) -> Any:
    if is_qat:
        raise NotImplementedError("Cannot fuse train modules: a linear layer, norm and leaky relu")
    return nni.LinearLeakyReLU(fuse_linear_bn_eval(linear, bn), leaky_relu)


def _activations(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Linear layers with a leaky relu or tanh."""
    result = []
    for kind, afters in (
        (nni.LinearLeakyReLU, (nn.LeakyReLU, F.leaky_relu)),
        (nni.LinearTanh, (nn.Tanh, rl.tanh)),
    ):
        patterns = [(nn.Linear, after) for after in afters if after is not F.leaky_relu]
        result += ops.each(patterns, dtypes, fused_module=kind, fuser_method=_as(kind))
        result += ops.each(
            (kind,), dtypes, root_module=nn.Linear, reference_quantized_module=nnqr.Linear
        )
        result += ops.each([(F.linear, after) for after in afters], dtypes)
    with_norm = (nn.Linear, nn.BatchNorm1d, nn.LeakyReLU)
    result += ops.each(
        (with_norm,),
        dtypes,
        fused_module=nni.LinearLeakyReLU,
        fuser_method=_fuse_linear_bn_leaky_relu,
    )
    return result


def get_onednn_backend_config() -> BackendConfig:
    """Returns what oneDNN computes with integers."""
    weighted, dynamic = [ops.INT8_WITH_WEIGHT], [ops.DYNAMIC_INT8]
    tables = [DTypeConfig(rl.float32, rl.float32, rl.qint8)]
    return (
        of_bytes("onednn", weighted, [ops.INT8], [ops.INT8], dynamic, tables)
        .set_backend_pattern_configs(_sums())
        .set_backend_pattern_configs(_activations([*weighted, *dynamic]))
        .set_backend_pattern_configs(ops.layer_norms([ops.INT8_WITH_FLOAT_WEIGHT]))
    )
