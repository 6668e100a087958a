"""Fake quantization: modules that round to what 8 bits can stand for, while training goes on."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.quantization._observer_base import WithArgs, is_per_tensor, is_symmetric
from rushlight.ao.quantization.observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from rushlight.nn import Module

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]


_SMALLEST_SCALE = 6.1e-5


class FakeQuantizeBase(WithArgs):
    """What fake quantization shares: switches for watching and for rounding, which are buffers."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", rl.tensor([1], dtype=rl.uint8))
        self.register_buffer("observer_enabled", rl.tensor([1], dtype=rl.uint8))

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Makes it round, or not."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self) -> None:
        """Makes it return its input."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Makes it choose scales anew, or keep them."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self) -> None:
        """Makes it keep its scales."""
        self.enable_observer(False)


class FakeQuantize(FakeQuantizeBase):
    """Watches tensors by an observer and rounds them to its scale.

    (clamp(round(x / scale + zero_point), quant_min, quant_max) - zero_point) * scale

    Args:
        observer: the class of the observer.
        quant_min: the smallest integer in use, if it is not that of the dtype.
        quant_max: the largest.
        is_dynamic: that the scale is chosen from each input anew.
        observer_kwargs: arguments of the observer.

    Example:
        >>> from rushlight.ao.quantization import FakeQuantize
        >>> rounded = FakeQuantize(quant_min=0, quant_max=255)(torch.tensor([0.0, 0.1234, 2.55]))
        >>> rounded
        tensor([0.0000, 0.1200, 2.5500])
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = watch = observer(is_dynamic=is_dynamic, **observer_kwargs)
        self.quant_min, self.quant_max = watch.quant_min, watch.quant_max
        if not watch.dtype.min <= self.quant_min <= self.quant_max <= watch.dtype.max:
            raise AssertionError(
                f"{self.quant_min} to {self.quant_max} is not within {watch.dtype}"
            )
        self.is_dynamic = watch.is_dynamic
        self.dtype = watch.dtype
        self.qscheme = watch.qscheme
        self.ch_axis = getattr(watch, "ch_axis", -1)
        self.is_per_channel = not is_per_tensor(self.qscheme)
        is_float = self.qscheme is rl.per_channel_affine_float_qparams
        self.register_buffer("scale", rl.tensor([1.0]))
        self.register_buffer(
            "zero_point", rl.tensor([0], dtype=rl.float32 if is_float else rl.int32)
        )

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Returns the observer's scale and zero point."""
        return self.activation_post_process.calculate_qparams()

    def _choose(self) -> tuple[Tensor, Tensor]:
        return self.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:
        """Returns what quantized numbers would stand for."""
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self._choose()
            scale = scale.detach().float()
            zero_point = zero_point.to(self.zero_point.dtype)
            # In place, where replicas look; the tape gets these, which no other call changes.
            self.scale.resize_(scale.shape).copy_(scale)
            self.zero_point.resize_(zero_point.shape).copy_(zero_point)
        else:
            scale, zero_point = self.scale, self.zero_point
        if self.fake_quant_enabled[0] == 0:
            return X
        bounds = self.quant_min, self.quant_max
        if self.is_per_channel:
            return rl.fake_quantize_per_channel_affine(X, scale, zero_point, self.ch_axis, *bounds)
        return rl.fake_quantize_per_tensor_affine(X, scale, zero_point, *bounds)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in ("scale", "zero_point"):  # there may be one for each channel
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class FixedQParamsFakeQuantize(FakeQuantize):
    """FakeQuantize with a known scale: only rounds."""

    def __init__(self, observer: Any = FixedQParamsObserver) -> None:
        super().__init__(observer=observer)
        scale, zero_point = self.calculate_qparams()
        self.scale.copy_(scale)
        self.zero_point.copy_(zero_point)
        self.disable_observer()


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """FakeQuantize by a moving average, as PyTorch's fused kernel does it.

    While it trains, scales are those of dynamic quantization (gemmlowp's), and symmetric ones use
    the smallest integer too: max(|min| / 128, |max| / 127). calculate_qparams has the observer's.

    Args:
        observer: MovingAverageMinMaxObserver, or the one by channel.
        quant_min: the smallest integer in use.
        quant_max: the largest.
        is_dynamic: that the scale is chosen from each input anew.
        observer_kwargs: arguments of the observer.
    """

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, is_dynamic, **observer_kwargs)
        for switch in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(switch, rl.tensor([1]))  # int64 in PyTorch's checkpoints
        self.is_symmetric_quant = is_symmetric(self.qscheme)

    def extra_repr(self) -> str:
        watch: Any = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={watch.quant_min}, "
            f"quant_max={watch.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={watch.reduce_range}"
        )

    def _choose(self) -> tuple[Tensor, Tensor]:
        watch: Any = self.activation_post_process
        low, high = watch.min_val.double().clamp(max=0), watch.max_val.double().clamp(min=0)
        first, last = self.quant_min, self.quant_max
        # With numbers on both sides of 0, zero is to stay the middle.
        is_centered = (low < 0) & (high > 0) & self.is_symmetric_quant
        half = (last - first) // 2
        if first < 0:
            widest = rl.maximum(low / -(half + 1), high / half)
            low = rl.where(is_centered, -widest * (half + 1), low)
            high = rl.where(is_centered, widest * half, high)
        scale = (high - low) / (last - first)
        scale = rl.where(scale.float() == 0, 0.1, scale)
        wider = (_SMALLEST_SCALE / scale).clamp(min=1)
        scale, low, high = scale * wider, low * wider, high * wider
        loses_less_low = abs(first) + (low / scale).abs() < abs(last) + (high / scale).abs()
        zero_point = rl.where(loses_less_low, first - low / scale, last - high / scale)
        zero_point = rl.where(is_centered, (first + last) / 2, zero_point)
        return scale.reshape(-1), zero_point.clamp(first, last).round().reshape(-1)


def _switch(name: str) -> Any:
    def function(mod: Module) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    function.__name__ = name
    function.__doc__ = f"Calls {name}() of a module for fake quantization: model.apply({name})."
    return function


disable_fake_quant = _switch("disable_fake_quant")
enable_fake_quant = _switch("enable_fake_quant")
disable_observer = _switch("disable_observer")
enable_observer = _switch("enable_observer")

_BYTES: dict[str, Any] = {"quant_min": 0, "quant_max": 255, "dtype": rl.quint8}
_SIGNED: dict[str, Any] = {"quant_min": -128, "quant_max": 127, "dtype": rl.qint8}
_127: dict[str, Any] = {**_SIGNED, "quant_min": -127, "eps": 2**-12}
_AVERAGE, _BY_CHANNEL = MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver
default_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, qscheme=rl.per_tensor_affine, reduce_range=True, **_BYTES
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, qscheme=rl.per_tensor_symmetric, reduce_range=False, **_SIGNED
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=_AVERAGE, is_dynamic=True, averaging_constant=1, **_BYTES
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=_BY_CHANNEL, qscheme=rl.per_channel_symmetric, reduce_range=False, ch_axis=0, **_SIGNED
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=_BY_CHANNEL,
    qscheme=rl.per_channel_affine_float_qparams,
    ch_axis=0,
    averaging_constant=1,
    **_BYTES,
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, qscheme=rl.per_tensor_affine, reduce_range=True, **_BYTES
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=_AVERAGE, **_BYTES)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGE, qscheme=rl.per_tensor_symmetric, **_SIGNED
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_BY_CHANNEL, qscheme=rl.per_channel_symmetric, **_SIGNED
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_AVERAGE, qscheme=rl.per_tensor_symmetric, **_127
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_BY_CHANNEL, qscheme=rl.per_channel_symmetric, **_127
)
