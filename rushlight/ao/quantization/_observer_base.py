"""What observers share: with_args, and the way from a range of numbers to scale and zero point."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import Module

EPS = rl.finfo(rl.float32).eps


class PartialWrapper:
    """A class with some of its arguments, which makes a module when it is called.

    It is what with_args returns, so that one configuration serves all layers of a network.
    """

    def __init__(self, p: partial[Any]) -> None:
        self.p = p

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.p(*args, **kwargs)

    def __repr__(self) -> str:
        return self.p.__repr__()

    def with_args(self, **kwargs: Any) -> PartialWrapper:
        """Returns the same with more arguments."""
        return PartialWrapper(partial(self.p, **kwargs))

    def with_callable_args(self, **kwargs: Any) -> PartialWrapper:
        """Returns the same with arguments that are called to give their value."""
        return _CallableArgs(self, kwargs)


class _CallableArgs(PartialWrapper):
    def __init__(self, maker: PartialWrapper, callables: dict[str, Callable[[], Any]]) -> None:
        super().__init__(partial(maker))
        self.callables = callables

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        called = {name: value() for name, value in self.callables.items()}
        return self.p(*args, **{**called, **kwargs})


class WithArgs(Module):
    @classmethod
    def with_args(cls, **kwargs: Any) -> Any:
        """Returns the class with some arguments given.

        Example:
            >>> from rushlight.ao.quantization import MinMaxObserver
            >>> make = MinMaxObserver.with_args(dtype=torch.qint8)
            >>> make().dtype
            torch.qint8
        """
        return PartialWrapper(partial(cls, **kwargs))

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> Any:
        """Returns the class with arguments that are called each time to give their value."""
        return PartialWrapper(partial(cls)).with_callable_args(**kwargs)


def is_per_tensor(scheme: Any) -> bool:
    return scheme in (rl.per_tensor_affine, rl.per_tensor_symmetric)


def is_symmetric(scheme: Any) -> bool:
    return scheme in (rl.per_tensor_symmetric, rl.per_channel_symmetric)


def quantized_range(dtype: Any, reduce_range: bool) -> tuple[int, int]:
    """Returns the smallest and largest integer of a dtype, halved where the range is reduced."""
    info = rl.iinfo(getattr(dtype, "integers", dtype))
    if not reduce_range or info.bits > 8:
        return info.min, info.max
    return -(-info.min // 2), info.max // 2


class ObserverBase(WithArgs):
    """What observers share: they watch in forward, and calculate_qparams says what they chose.

    Args:
        dtype: the quantized dtype that is wanted.
        is_dynamic: that the scale will be chosen from each input anew.
    """

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def calculate_qparams(self) -> Any:
        """Returns the scale and the zero point."""
        raise NotImplementedError


class UniformQuantizationObserverBase(ObserverBase):
    """What observers of a range share: the way from a range to scale and zero point.

    Args:
        dtype: torch.quint8, qint8 or qint32.
        qscheme: per tensor or per channel, affine or symmetric around 0.
        reduce_range: uses 7 of the 8 bits, for processors whose sums of products have but 16.
        quant_min: the smallest integer in use, if it is not that of dtype.
        quant_max: the largest.
        eps: the smallest scale.
        is_dynamic: that the scale will be chosen from each input anew.
    """

    _version = 3
    eps: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        dtype: Any = None,
        qscheme: Any = None,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(rl.quint8 if dtype is None else dtype, is_dynamic, **kwargs)
        self.qscheme = rl.per_tensor_affine if qscheme is None else qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", rl.tensor([eps], **(factory_kwargs or {})))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            if not quant_min < quant_max or not quant_min <= 0 <= quant_max:
                raise AssertionError(
                    f"{type(self).__name__}: quant_min {quant_min} and quant_max {quant_max} must "
                    "have 0 between them."
                )
            self.quant_min, self.quant_max = quant_min, quant_max
            if reduce_range:
                self.quant_min, self.quant_max = quant_min // 2, quant_max // 2
        else:
            self.quant_min, self.quant_max = quantized_range(self.dtype, reduce_range)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Returns scale and zero point: one of each, or one for each channel."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        if not _has_seen(min_val, max_val):
            return rl.tensor([1.0]), rl.tensor([0])
        steps = float(self.quant_max - self.quant_min)
        low, high = min_val.clamp(max=0), max_val.clamp(min=0)
        zero_point = rl.zeros(low.shape, dtype=rl.int64)
        if is_symmetric(self.qscheme):
            scale = rl.maximum(-low, high) / (steps / 2)
            scale = rl.maximum(scale, self.eps)
            if not self.dtype.is_signed:
                middle = (self.quant_min + self.quant_max) // 2
                half = 1 << (8 * self.dtype.itemsize - 1)
                zero_point += middle if self.has_customized_qrange else half
        elif self.qscheme is rl.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / steps
            scale = rl.where(scale > self.eps, scale, rl.ones_like(scale))
            zero_point = -min_val / scale
        else:
            scale = rl.maximum((high - low) / steps, self.eps)
            zero_point = self.quant_min - (low / scale).round().to(rl.int32)
            zero_point = zero_point.clamp(self.quant_min, self.quant_max)
        if not low.dim():
            return scale.reshape(1), zero_point.reshape(1)
        return scale, zero_point

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        raise NotImplementedError


def _has_seen(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether a range is one; warns when nothing was seen, raises when it is upside down."""
    if min_val.numel() == 0 or bool((min_val == float("inf")).all()):
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.",
            stacklevel=4,
        )
        return False
    if not bool((min_val <= max_val).all()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True
