"""Observers: modules that watch the tensors of a network and choose scales and zero points.

An observer returns its input unchanged. What it has seen stands in buffers, so that it is saved
with the network. This file has their names and the usual ones; the classes are in _range_observers,
_histogram and _plain_observers.
Source of the rules: PyTorch's documentation of torch.ao.quantization.observer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import rushlight as rl
from rushlight.ao.quantization._granularity import (
    AffineQuantizedObserverBase,
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from rushlight.ao.quantization._histogram import HistogramObserver
from rushlight.ao.quantization._observer_base import (
    ObserverBase,
    UniformQuantizationObserverBase,
)
from rushlight.ao.quantization._plain_observers import (
    FixedQParamsObserver,
    NoopObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)
from rushlight.ao.quantization._range_observers import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from rushlight.nn import Module

__all__ = [
    "AffineQuantizedObserverBase",
    "Granularity",
    "MappingType",
    "PerAxis",
    "PerBlock",
    "PerGroup",
    "PerRow",
    "PerTensor",
    "PerToken",
    "TorchAODType",
    "ZeroPointDomain",
    "get_block_size",
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]


def get_observer_state_dict(mod: Module) -> OrderedDict[str, Any]:
    """Returns the part of a module's state_dict that belongs to observers."""
    parts = ("observer", "activation_post_process")
    state = mod.state_dict()
    return OrderedDict((k, v) for k, v in state.items() if any(part in k for part in parts))


def load_observer_state_dict(mod: Module, obs_dict: dict[str, Any]) -> None:
    """Loads what get_observer_state_dict returned into the observers of a module."""
    _, unexpected = mod.load_state_dict(obs_dict, strict=False)
    if unexpected:
        raise Exception(f"load_observer_state_dict: unexpected keys {unexpected}")


_127 = {"dtype": rl.qint8, "quant_min": -127, "quant_max": 127, "eps": 2**-12}
default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=rl.qint8, qscheme=rl.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    qscheme=rl.per_tensor_symmetric, **_127
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=rl.qint8, qscheme=rl.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    qscheme=rl.per_channel_symmetric, **_127
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=rl.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=rl.quint8, qscheme=rl.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=rl.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=rl.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
