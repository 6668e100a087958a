"""The methods of quantized tensors on other tensors: dequantize, and names that say what they want.

The real ones are in _quantized.py.
"""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _only_quantized(name: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        raise RuntimeError(
            f"{name}: expected a quantized tensor, got {self.dtype}. torch.quantize_per_tensor "
            "makes one."
        )

    method.__name__ = name
    method.__doc__ = f"Of a quantized tensor; see torch.{name}. Others raise a RuntimeError."
    return method


class QuantizedMethods(_C.TensorBase):
    """What Tensor inherits."""

    int_repr = _only_quantized("int_repr")
    q_scale = _only_quantized("q_scale")
    q_zero_point = _only_quantized("q_zero_point")
    q_per_channel_scales = _only_quantized("q_per_channel_scales")
    q_per_channel_zero_points = _only_quantized("q_per_channel_zero_points")
    q_per_channel_axis = _only_quantized("q_per_channel_axis")
    qscheme = _only_quantized("qscheme")

    def dequantize(self) -> Any:
        """Returns what a quantized tensor stands for; other tensors in float32."""
        return self.float()
