"""Modules for sums, products and joins of tensors, so that what they give can be observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, _quantized_ops
from rushlight.ao.nn.quantized._base import QuantizedLayer, form_of
from rushlight.nn import Identity, Module

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class FXFloatFunctional(Module):
    """FloatFunctional without an observer: in graphs these are nodes of their own."""

    def _seen(self, result: Tensor) -> Tensor:
        return result

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying "
            "operation"
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y"""
        return self._seen(rl.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y, whose form follows from x's, so that nothing is observed."""
        return rl.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y"""
        return self._seen(rl.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y, whose form follows from x's, so that nothing is observed."""
        return rl.mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """Tensors one after the other."""
        return self._seen(rl.cat(list(x), dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)"""
        return self._seen(rl.relu(rl.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y"""
        return self._seen(rl.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """Operations between tensors as methods, whose results prepare() has observed.

    convert() makes it a QFunctional. One instance serves one place in the network.

    Example:
        >>> f = torch.ao.nn.quantized.FloatFunctional()
        >>> f.add(torch.tensor(3.0), torch.tensor(4.0))
        tensor(7.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def _seen(self, result: Tensor) -> Tensor:
        return self.activation_post_process(result)


class QFunctional(QuantizedLayer):
    """FloatFunctional of quantized tensors: results have its scale and zero point.

    Example:
        >>> f = torch.ao.nn.quantized.QFunctional()
        >>> f.scale = 0.1
        >>> x = torch.quantize_per_tensor(torch.tensor([1.0]), 0.1, 0, torch.quint8)
        >>> f.add(x, x).dequantize()
        tensor([2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def _get_name(self) -> str:
        return "QFunctional"

    def _seen(self, result: Tensor) -> Tensor:
        return self.activation_post_process(result)

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            "Functional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x: Any, y: Any) -> Tensor:
        """x + y"""
        return self._seen(_quantized_ops.add(x, y, self.scale, self.zero_point))

    def add_scalar(self, x: Any, y: float) -> Tensor:
        """x + y, in the form that moves x's range by y."""
        return self._seen(_quantized_ops.add_scalar(x, y))

    def mul(self, x: Any, y: Any) -> Tensor:
        """x * y"""
        return self._seen(_quantized_ops.mul(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x: Any, y: float) -> Tensor:
        """x * y, in the form that widens x's range by y."""
        return self._seen(_quantized_ops.mul_scalar(x, y))

    def cat(self, x: Sequence[Any], dim: int = 0) -> Tensor:
        """Tensors one after the other."""
        return self._seen(_quantized_ops.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Any, y: Any) -> Tensor:
        """relu(x + y)"""
        return self._seen(_quantized_ops.add(x, y, self.scale, self.zero_point, relu=True))

    def matmul(self, x: Any, y: Any) -> Tensor:
        """x @ y"""
        return self._seen(_quantized_ops.matmul(x, y, self.scale, self.zero_point))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """Returns the quantized form of a FloatFunctional that was observed."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        result = cls()
        result.scale, result.zero_point = form_of(mod)
        return result
