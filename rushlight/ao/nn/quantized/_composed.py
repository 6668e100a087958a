"""Layers of several quantized layers: the LSTM and attention of torch.ao.nn.quantizable."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.ao.nn import quantizable as nnqa

__all__ = ["LSTM", "MultiheadAttention"]


class _Composed:
    _FLOAT_MODULE: Any

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> Any:
        """Not for float layers: prepare() makes the observed one first."""
        raise NotImplementedError(
            f"{cls.__name__}: a float layer is to be observed first. Call prepare and convert."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Returns the quantized form of what prepare() made, which has seen examples."""
        from rushlight.ao.quantization import convert

        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        result = convert(other)
        result.__class__ = cls
        result._end()
        return result

    def _end(self) -> None:
        """Makes the rest what it is in the quantized form."""


class LSTM(_Composed, nnqa.LSTM):
    """The LSTM of quantized numbers: torch.ao.nn.quantizable.LSTM after convert()."""

    _FLOAT_MODULE = nnqa.LSTM


class MultiheadAttention(_Composed, nnqa.MultiheadAttention):
    """Attention of quantized numbers: quantizable.MultiheadAttention after convert()."""

    _FLOAT_MODULE = nnqa.MultiheadAttention

    def _end(self) -> None:
        for name in ("bias_k", "bias_v"):
            bias = self._parameters.pop(name)
            setattr(self, name, None if bias is None else _rounded(bias))
        for name in ("in_proj_weight", "in_proj_bias", *(f"{n}_proj_weight" for n in "qkv")):
            self._parameters.pop(name, None)


def _rounded(bias: Any) -> Any:
    form = rl._choose_qparams_per_tensor(bias.detach(), reduce_range=False)
    return rl.quantize_per_tensor(bias.detach(), *form, rl.quint8)
