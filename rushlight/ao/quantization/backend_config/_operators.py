"""The patterns that back ends have in common, as lists of configurations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.ao.quantization.backend_config.backend_config import (
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
)
from rushlight.ao.quantization.fuse_modules import get_fuser_method
from rushlight.nn import functional as F

_OWN = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
_SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
_RELUS = (nn.ReLU, F.relu)

INT8 = DTypeConfig(rl.quint8, rl.quint8)
INT8_WITH_WEIGHT = DTypeConfig(rl.quint8, rl.quint8, rl.qint8, rl.float32)
INT8_WITH_FLOAT_WEIGHT = DTypeConfig(rl.quint8, rl.quint8, rl.float32, rl.float32)
DYNAMIC_INT8 = DTypeConfig(rl.quint8, rl.float32, rl.qint8, rl.float32, is_dynamic=True)
DYNAMIC_FLOAT16 = DTypeConfig(rl.float16, rl.float32, rl.float16, rl.float32, is_dynamic=True)
WEIGHT_ONLY = [
    DTypeConfig(rl.float32, rl.float32, rl.quint8),
    DTypeConfig(rl.float32, rl.float32, rl.quint4x2),
]
# What QNNPACK and XNNPACK take besides: signed numbers, weights without -128, no tiny scales.
_SIGNED = DTypeWithConstraints(rl.qint8, scale_min_lower_bound=2**-12)
_SIGNED_WEIGHT = DTypeWithConstraints(rl.qint8, -127, 127, 2**-12)
SYMMETRIC = DTypeConfig(_SIGNED, _SIGNED)
SYMMETRIC_WITH_WEIGHT = DTypeConfig(_SIGNED, _SIGNED, _SIGNED_WEIGHT, rl.float32)
DYNAMIC_SYMMETRIC = DTypeConfig(_SIGNED, rl.float32, _SIGNED_WEIGHT, rl.float32, is_dynamic=True)


def _config(pattern: Any, dtypes: list[DTypeConfig], **settings: Any) -> BackendPatternConfig:
    result = BackendPatternConfig(pattern).set_dtype_configs(dtypes)
    for name, value in settings.items():
        setattr(result, name, value)
    return result


def each(
    patterns: Any, dtypes: list[DTypeConfig], kind: ObservationType = _OWN, **settings: Any
) -> list[BackendPatternConfig]:
    """Returns one configuration for each of some patterns."""
    return [_config(p, list(dtypes), observation_type=kind, **settings) for p in patterns]


def fused(
    pattern: tuple[Any, ...], kinds: tuple[Any, ...], result: Any, dtypes: list[DTypeConfig]
) -> BackendPatternConfig:
    """Returns the configuration of a pattern that is fused as layers of these classes are."""
    return _config(pattern, dtypes, fused_module=result, fuser_method=get_fuser_method(kinds))


def _trained(
    layer: Any, trained: Any, root: Any, reference: Any, dtypes: list[DTypeConfig]
) -> list[BackendPatternConfig]:
    """A layer with its form in training, both with the same root."""
    roots = {"root_module": root, "reference_quantized_module": reference}
    return [
        _config(layer, dtypes, qat_module=trained, **(roots if layer is root else {})),
        _config(trained, dtypes, **roots),
    ]


def convs(
    dtypes: list[DTypeConfig], dims: tuple[int, ...] = (1, 2, 3), transposed: bool = True
) -> list[Any]:
    """Returns convolutions with what is fused with them, and the transposed ones."""
    result = []
    for d in dims:
        conv, norm = getattr(nn, f"Conv{d}d"), getattr(nn, f"BatchNorm{d}d")
        function, reference = getattr(F, f"conv{d}d"), getattr(nnqr, f"Conv{d}d")
        trained = getattr(nnqat, f"Conv{d}d")
        result += _trained(conv, trained, conv, reference, dtypes)
        result += each((function,), dtypes, _input_type_to_index={"weight": 1, "bias": 2})
        fusions = (
            ("ConvReLU", (conv, nn.ReLU), [(conv, relu) for relu in _RELUS]),
            ("ConvBn", (conv, norm), [(conv, norm)]),
            ("ConvBnReLU", (conv, norm, nn.ReLU), [(conv, norm, relu) for relu in _RELUS]),
        )
        for name, kinds, patterns in fusions:
            layer, trained = (getattr(home, f"{name}{d}d") for home in (nni, nniqat))
            result += [fused(pattern, kinds, layer, dtypes) for pattern in patterns]
            result += _trained(layer, trained, conv, reference, dtypes)
        result += each(((function, relu) for relu in _RELUS), dtypes)
        if transposed:
            result += _transposed(d, norm, dtypes)
    return result


def _transposed(d: int, norm: Any, dtypes: list[DTypeConfig]) -> list[Any]:
    layer, function = getattr(nn, f"ConvTranspose{d}d"), getattr(F, f"conv_transpose{d}d")
    roots = {
        "root_module": layer,
        "reference_quantized_module": getattr(nnqr, f"ConvTranspose{d}d"),
    }
    pattern = (layer, norm)
    return [
        _config(layer, dtypes, **roots),
        _config(pattern, dtypes, fuser_method=get_fuser_method(pattern), **roots),
        *each((function,), dtypes, _input_type_to_index={"weight": 1, "bias": 2}),
    ]


def linears(dtypes: list[DTypeConfig], fuses: bool = True) -> list[Any]:
    """Returns linear layers with what is fused with them."""
    result = _trained(nn.Linear, nnqat.Linear, nn.Linear, nnqr.Linear, dtypes)
    result += each((F.linear,), dtypes, _input_type_to_index={"weight": 1, "bias": 2})
    if not fuses:
        return result
    roots = {"root_module": nn.Linear, "reference_quantized_module": nnqr.Linear}
    fusions = (
        ("LinearReLU", nn.ReLU, _RELUS),
        ("LinearBn1d", nn.BatchNorm1d, (nn.BatchNorm1d,)),
    )
    for name, kind, patterns in fusions:
        layer, trained = getattr(nni, name), getattr(nniqat, name)
        kinds = (nn.Linear, kind)
        result += [fused((nn.Linear, after), kinds, layer, dtypes) for after in patterns]
        result.append(_config(layer, dtypes, qat_module=trained, **roots))
        result.append(_config(trained, dtypes, **roots))
    return [*result, *each(((F.linear, relu) for relu in _RELUS), dtypes)]


def binaries(
    dtypes: list[DTypeConfig],
    ops: tuple[Any, ...] = (operator.add, rl.add, operator.mul, rl.mul),
) -> list[Any]:
    """Returns sums and products of tensors, or of one and a number, with a relu or without."""
    patterns = [p for op in ops for p in ((op, nn.ReLU), (op, F.relu), op)]
    by_tensors = {0: _OWN, 1: _SHARED, 2: _OWN}
    return each(patterns, dtypes, _num_tensor_args_to_observation_type=by_tensors)


def layer_norms(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns layer norms, whose weights stay floats."""
    return [
        *each((nn.LayerNorm,), dtypes),
        *each((F.layer_norm,), dtypes, _input_type_to_index={"weight": 2, "bias": 3}),
    ]


def own_activations(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns activations and norms whose results have a scale of their own."""
    layers = (
        nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.InstanceNorm1d, nn.InstanceNorm2d,
        nn.InstanceNorm3d, nn.Dropout, nn.PReLU,
    )  # fmt: skip
    calls = (F.elu, F.hardswish, F.leaky_relu, F.dropout)
    return [
        *each((*layers, *calls), dtypes),
        *each((F.group_norm,), dtypes, _input_type_to_index={"weight": 2, "bias": 3}),
        *each((F.instance_norm,), dtypes, _input_type_to_index={"weight": 3, "bias": 4}),
    ]


def known_ranges(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns functions whose range is known, so that there is but one scale for their results."""
    known = []
    for scale, zero_point, patterns in (
        (
            1 / 256,
            0,
            (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, rl.sigmoid,
             "sigmoid", "sigmoid_", nn.Softmax),
        ),
        (2 / 256, 128, (nn.Tanh, rl.tanh, "tanh", "tanh_")),
    ):  # fmt: skip

        def only(
            given: DTypeWithConstraints, scale: float = scale, zero_point: int = zero_point
        ) -> DTypeWithConstraints:
            if given.dtype is not rl.quint8:
                return given
            return DTypeWithConstraints(
                rl.quint8, 0, 255, scale_exact_match=scale, zero_point_exact_match=zero_point
            )

        exact = [
            replace_dtypes(config, only, only)
            for config in dtypes
        ]  # fmt: skip
        known += each(patterns, exact)
    return known


def replace_dtypes(
    config: DTypeConfig,
    on_input: Callable[[DTypeWithConstraints], DTypeWithConstraints],
    on_output: Callable[[DTypeWithConstraints], DTypeWithConstraints],
) -> DTypeConfig:
    """Returns a configuration with other dtypes for what goes in and comes out."""
    return DTypeConfig(
        on_input(config.input_dtype_with_constraints),
        on_output(config.output_dtype_with_constraints),
        replace(config.weight_dtype_with_constraints),
        config.bias_dtype,
        config.is_dynamic,
    )


def shared(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns what leaves the scale of its input, and what only asks for sizes."""
    layers = (
        nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d,
        nn.AvgPool2d, nn.AvgPool3d, nn.Hardtanh, nn.Identity, nn.MaxPool1d, nn.MaxPool2d,
        nn.MaxPool3d, nn.PixelShuffle, nn.PixelUnshuffle, nn.ReLU, nn.ReLU6,
    )  # fmt: skip
    calls = (
        F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.hardtanh,
        F.hardtanh_, F.interpolate, F.max_pool1d, F.max_pool2d, F.max_pool3d, F.pixel_shuffle,
        F.pixel_unshuffle, F.relu, F.relu6, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, rl.clamp,
        rl.flatten, rl.mean, rl.narrow, rl.repeat_interleave, rl.transpose, rl.squeeze, rl.stack,
        rl.unsqueeze, operator.floordiv,
    )  # fmt: skip
    methods = """
    contiguous clamp detach detach_ mean permute repeat repeat_interleave reshape resize_ relu relu_
    squeeze squeeze_ transpose unsqueeze unsqueeze_ view
    """.split()  # noqa: SIM905
    asked = each(("shape", "size"), dtypes, ObservationType.INPUT_OUTPUT_NOT_OBSERVED)
    return [*each((*layers, *calls, *methods), dtypes, _SHARED), *asked]


def joins(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns the join of tensors, which all get one scale."""
    return each((rl.cat,), dtypes, _SHARED)


def norms(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns batch norms, with a relu or without."""
    result = []
    for d in (2, 3):
        norm, layer = getattr(nn, f"BatchNorm{d}d"), getattr(nni, f"BNReLU{d}d")
        result += [fused((norm, relu), (norm, nn.ReLU), layer, dtypes) for relu in _RELUS]
        result += each((norm, layer), dtypes)
    return result


def recurrent(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns recurrent layers and cells."""
    names = ("GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
    return [
        _config(
            getattr(nn, name),
            dtypes,
            root_module=getattr(nn, name),
            reference_quantized_module=getattr(nnqr, name),
        )
        for name in names
    ]


def embeddings(dtypes: list[DTypeConfig]) -> list[Any]:
    """Returns tables of embeddings."""
    return [
        config
        for name in ("Embedding", "EmbeddingBag")
        for config in _trained(
            getattr(nn, name), getattr(nnqat, name), getattr(nn, name), getattr(nnqr, name), dtypes
        )
    ]
