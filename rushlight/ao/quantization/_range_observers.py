"""Observers that keep the smallest and the largest number, of all or of each channel."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.quantization._observer_base import (
    EPS,
    UniformQuantizationObserverBase,
    is_per_tensor,
)
from rushlight.nn import Module


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the smallest and the largest number that it has seen.

    Affine: scale = (max - min) / (quant_max - quant_min), zero_point = quant_min - min / scale, of
    the range with 0. Symmetric: scale = 2 max(|min|, |max|) / (quant_max - quant_min), and the zero
    point is 0, or 128 for quint8.

    Args:
        dtype: torch.quint8, qint8 or qint32.
        qscheme: torch.per_tensor_affine or per_tensor_symmetric.
        reduce_range: uses 7 of the 8 bits.
        quant_min: the smallest integer in use, if it is not that of dtype.
        quant_max: the largest.
        eps: the smallest scale.
        is_dynamic: that the scale will be chosen from each input anew.

    Example:
        >>> observer = torch.ao.quantization.MinMaxObserver()
        >>> x = observer(torch.tensor([0.0, 2.55]))
        >>> [p.tolist() for p in observer.calculate_qparams()]
        [[0.009999999776482582], [0]]
    """

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
        qscheme = rl.per_tensor_affine if qscheme is None else qscheme
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_tensor_symmetric and "
                f"torch.per_tensor_affine, but got {qscheme}."
            )
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            factory_kwargs,
            eps,
            is_dynamic,
            **kwargs,
        )
        self.register_buffer("min_val", rl.tensor(float("inf")))
        self.register_buffer("max_val", rl.tensor(float("-inf")))

    def forward(self, x: Tensor) -> Tensor:
        """Takes note of a tensor and returns it."""
        if x.numel():
            self._update(*x.detach().to(self.min_val.dtype).aminmax())
        return x

    def _update(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(rl.minimum(low, self.min_val))
        self.max_val.copy_(rl.maximum(high, self.max_val))

    def reset_min_max_vals(self) -> None:
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Keeps moving averages of the smallest and largest number of each tensor.

    min = min + averaging_constant * (min(x) - min), beginning with that of the first tensor.

    Args:
        averaging_constant: the weight of what is new.
        dtype: as for MinMaxObserver, as the others are.

    Example:
        >>> observer = torch.ao.quantization.MovingAverageMinMaxObserver(averaging_constant=0.5)
        >>> for high in (1.0, 3.0):
        ...     x = observer(torch.tensor([0.0, high]))
        >>> observer.max_val
        tensor(2.)
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: Any = None,
        qscheme: Any = None,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        _check_averaging(self, averaging_constant, is_dynamic)
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def _update(self, low: Tensor, high: Tensor) -> None:
        if float(self.min_val) == float("inf") and float(self.max_val) == float("-inf"):
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        else:
            self.min_val.add_(self.averaging_constant * (low - self.min_val))
            self.max_val.add_(self.averaging_constant * (high - self.max_val))


def _check_averaging(observer: Module, averaging_constant: float, is_dynamic: bool) -> None:
    if is_dynamic and averaging_constant != 1:
        raise NotImplementedError(
            f"{type(observer).__name__} doesn't support dynamic quantization for averaging "
            f"constant of {averaging_constant}"
        )


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the smallest and the largest number of each channel.

    Args:
        ch_axis: the dim of the channels.
        dtype: as for MinMaxObserver, as the others are.

    Example:
        >>> observer = torch.ao.quantization.PerChannelMinMaxObserver(ch_axis=0)
        >>> x = observer(torch.tensor([[-1.0, 2.0], [0.0, 5.0]]))
        >>> observer.max_val
        tensor([2., 5.])
    """

    def __init__(
        self,
        ch_axis: int = 0,
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
        qscheme = rl.per_channel_affine if qscheme is None else qscheme
        if is_per_tensor(qscheme):
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_channel_symmetric, "
                f"per_channel_affine and per_channel_affine_float_qparams, but got {qscheme}."
            )
        if is_dynamic:
            raise NotImplementedError(f"{type(self).__name__} doesn't support dynamic quantization")
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            factory_kwargs,
            eps,
            is_dynamic,
            **kwargs,
        )
        self.ch_axis = ch_axis
        self.register_buffer("min_val", rl.tensor([]))
        self.register_buffer("max_val", rl.tensor([]))

    def forward(self, x: Tensor) -> Tensor:
        """Takes note of a tensor and returns it."""
        if x.numel():
            rows = x.detach().to(self.min_val.dtype).transpose(0, self.ch_axis).flatten(1)
            self._update(*rows.aminmax(dim=1))
        return x

    def _update(self, low: Tensor, high: Tensor) -> None:
        if self.min_val.numel():
            low, high = rl.minimum(low, self.min_val), rl.maximum(high, self.max_val)
        self._set(low, high)

    def _set(self, low: Tensor, high: Tensor) -> None:
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)

    def reset_min_max_vals(self) -> None:
        self.min_val = rl.rand(0)
        self.max_val = rl.rand(0)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in ("min_val", "max_val"):  # a fresh observer does not know how many there are
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Keeps moving averages of the smallest and largest number of each channel.

    Args:
        averaging_constant: the weight of what is new.
        ch_axis: the dim of the channels.
        dtype: as for MinMaxObserver, as the others are.
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: Any = None,
        qscheme: Any = None,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            ch_axis,
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def _update(self, low: Tensor, high: Tensor) -> None:
        if self.min_val.numel():
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self._set(low, high)
