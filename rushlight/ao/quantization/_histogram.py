"""HistogramObserver: the range whose rounding errors, over a histogram, are smallest."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.quantization._observer_base import UniformQuantizationObserverBase, is_per_tensor

_FINER = 16  # parts of a bin while a histogram moves to another range
_STEP = 1e-5  # share of all numbers that may be cut off in one step of the search


class HistogramObserver(UniformQuantizationObserverBase):
    """Keeps a histogram, and cuts off tails where that makes the squared error smaller.

    The search is PyTorch's (from Caffe2's NormMinimization): from the full range it moves, a bit at
    a time, the end that drops fewer numbers by bin, until the error of rounding grows.

    Args:
        bins: how many bins there are.
        dtype: torch.quint8, qint8 or qint32.
        qscheme: torch.per_tensor_affine or per_tensor_symmetric.
        reduce_range: uses 7 of the 8 bits.
        quant_min: the smallest integer in use, if it is not that of dtype.
        quant_max: the largest.
        eps: the smallest scale.

    Example:
        >>> observer = torch.ao.quantization.HistogramObserver()
        >>> x = observer(torch.linspace(0, 1, 1000))
        >>> scale, zero_point = observer.calculate_qparams()
        >>> round(1 / float(scale))
        255
    """

    histogram: Tensor

    def __init__(
        self,
        bins: int = 2048,
        dtype: Any = None,
        qscheme: Any = None,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = rl.finfo(rl.float32).eps,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        qscheme = rl.per_tensor_affine if qscheme is None else qscheme
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric and "
                f"torch.per_tensor_affine, but got {qscheme}."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
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
        self.bins = bins
        self.dst_nbins = 2**self.dtype.bits
        self.register_buffer("histogram", rl.zeros(bins))
        self.register_buffer("min_val", rl.tensor(float("inf")))
        self.register_buffer("max_val", rl.tensor(float("-inf")))

    def forward(self, x: Tensor) -> Tensor:
        """Takes note of a tensor and returns it."""
        values = x.detach().float()
        if values.numel() and not bool(values.isfinite().all()):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            values = values[values.abs() != float("inf")]
        if not values.numel():
            return x
        low, high = values.aminmax()
        old_low, old_high = self.min_val.clone(), self.max_val.clone()
        if float(old_low) == float("inf"):
            self._set(values.histc(self.bins, float(low), float(high)), low, high)
            return x
        low, high = rl.minimum(low, old_low), rl.maximum(high, old_high)
        counts = values.histc(self.bins, float(low), float(high))
        if low == old_low and high == old_high:
            old = self.histogram
        elif old_low == old_high:
            old = old_low.histc(self.bins, float(low), float(high)) * self.histogram.sum()
        else:
            old = self._moved(old_low, old_high, low, high)
        self._set(old + counts, low, high)
        return x

    def _set(self, histogram: Tensor, low: Tensor, high: Tensor) -> None:
        self.histogram.copy_(histogram)
        self.min_val.copy_(low)
        self.max_val.copy_(high)

    def _moved(self, old_low: Tensor, old_high: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The histogram over a larger range: parts of its bins go where their middle is."""
        parts = self.histogram.repeat_interleave(_FINER) / _FINER
        count = self.bins * _FINER
        size = (old_high - old_low) / count
        middles = rl.linspace(float(old_low), float(old_high), count + 1)[:-1] + 0.5 * size
        edges = rl.linspace(float(low), float(high), self.bins + 1)
        places = rl.bucketize(middles, edges, right=True) - 1
        return rl.bincount(places.clamp(0, self.bins - 1), parts, self.bins)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Returns scale and zero point, each with one element."""
        if float(self.min_val) == float("inf"):
            return self._calculate_qparams(self.min_val, self.max_val)  # which warns
        return self._calculate_qparams(*self._search())

    def _search(self) -> tuple[Tensor, Tensor]:
        import numpy as np

        counts = self.histogram.detach().cpu().numpy()
        total = float(counts.sum())
        sums = np.cumsum(counts)
        alpha, beta = 0.0, 1.0  # shares of the numbers below and up to the ends
        start, end = 0, self.bins - 1
        smallest = float("inf")
        while alpha < beta:
            # The bins at which the next shares are reached.
            first = start + int(np.searchsorted(sums[start:end], (alpha + _STEP) * total))
            above = int(np.searchsorted(sums[start + 1 : end + 1], (beta - _STEP) * total, "right"))
            last = start + above
            next_start, next_end = start, end
            if first - start > end - last:
                next_start, alpha = first, alpha + _STEP
            else:
                next_end, beta = last, beta - _STEP
            if (next_start, next_end) == (start, end):
                continue
            error = self._error(counts, next_start, next_end)
            if error > smallest:
                break
            smallest, start, end = error, next_start, next_end
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * start, self.min_val + width * (end + 1)

    def _error(self, counts: Any, start: int, end: int) -> float:
        """The squared error, up to a factor, of rounding to the levels between two bins.

        Numbers spread evenly over each bin; between two points of a level they contribute the
        integral of x^2 around its middle.
        """
        import numpy as np

        width = (float(self.max_val) - float(self.min_val)) / self.bins
        level = width * (end - start + 1) / self.dst_nbins
        if level == 0.0:
            return 0.0
        begins = (np.arange(self.bins, dtype=np.float32) - start) * np.float32(width)
        ends = begins + np.float32(width)
        density = counts / np.float32(width)

        def level_of(points: Any) -> Any:
            return np.clip(np.floor(points / np.float32(level)), 0, self.dst_nbins - 1)

        def integral(from_: Any, to: Any) -> Any:
            return (to * to * to - from_ * from_ * from_) / 3

        half = np.float32(level / 2)
        first, last = level_of(begins), level_of(ends)
        error = integral(begins - (first + np.float32(0.5)) * np.float32(level), half)
        error = error + (last - first - 1) * integral(-half, half)
        error = error + integral(-half, ends - (last * np.float32(level) + half))
        return float((density * error).sum(dtype=np.float32))
