"""Weights of quantized layers: as they are saved, and as the kernels of the core want them.

oneDNN computes fastest with weights in an order of its own, which depends on the layer and the
processor. It is made at the first call and belongs to this process: copies and files have the plain
weights alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._quantized import PerChannel, PerTensor, QuantizedTensor, integers_of, wrap
from rushlight.compiler import is_recording

_ROWS = 64  # of the product that linear weights are packed for; they serve fewer and more rows too


class PackedWeight:
    """A weight and a bias, ready for products with uint8 numbers.

    Args:
        weight: qint8, per tensor or per channel of dim 0.
        bias: float32, or None.
        stride: of a convolution over 2 or 3 dims; empty for a linear layer.
        padding: zeros at both ends of each dim.
        dilation: distance between the elements of a filter.
        groups: of channels.
        where: the layer's name for errors.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sequence[int] = (),
        padding: Sequence[int] = (),
        dilation: Sequence[int] = (),
        groups: int = 1,
        where: str = "linear",
    ) -> None:
        if not isinstance(weight, QuantizedTensor) or weight.dtype is not rl.qint8:
            raise RuntimeError(
                f"{where}: the weight must be of dtype torch.qint8, got {weight.dtype}."
            )
        form = weight.form
        if isinstance(form, PerChannel):
            if form.axis != 0 or form.zero_points.is_floating_point():
                raise RuntimeError(
                    f"{where}: scales of the weight must belong to dim 0, its outputs."
                )
            self.scales = form.scales.to(rl.float32)
            zero_points = form.zero_points
        else:
            self.scales = rl.tensor([form.scale], dtype=rl.float32)
            zero_points = rl.tensor([form.zero_point])
        self.zero_points = zero_points.double() if bool(zero_points.any()) else None
        self.weight, self.where = weight, where
        self.bias = None if bias is None else bias.detach().to(rl.float32)
        self.integers = integers_of(weight).contiguous()
        self.window = (list(stride), list(padding), list(dilation), groups)
        self._packed: dict[Any, Tensor] = {}

    def __reduce__(self) -> Any:
        return PackedWeight, (self.weight, self.bias, *self.window, self.where)

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedWeight:
        return self  # nothing changes it

    def _pack(self, sizes: Sequence[int], has_zero_point: bool, is_float: bool) -> Tensor | None:
        if is_recording.get():  # what is recorded may run on another processor
            return None
        key = (has_zero_point, is_float)
        if key not in self._packed:
            self._packed[key] = _C._int8_pack(self.integers, sizes, *self.window, *key)
        return self._packed[key]

    def __call__(
        self, input: Tensor, scale: float | None, zero_point: int, relu: bool = False
    ) -> Tensor:
        """Returns the layer's result for a quint8 input, quantized unless scale is None."""
        where = self.where
        if not isinstance(input, QuantizedTensor) or not isinstance(input.form, PerTensor):
            raise NotImplementedError(
                f"{where}: the input must be quantized per tensor, got {input.dtype}. Call "
                "torch.quantize_per_tensor, or put a QuantStub before the layer."
            )
        if input.dtype is not rl.quint8:
            raise NotImplementedError(f"{where}: the input must be quint8, got {input.dtype}.")
        form, integers = input.form, integers_of(input)
        is_linear = not self.window[0]
        leading = integers.shape[:-1]
        if is_linear:
            if integers.dim() != 2:
                integers = integers.reshape(-1, integers.shape[-1])
            sizes: Sequence[int] = (_ROWS, integers.shape[1])
        else:
            sizes = integers.shape
        packed = self._pack(sizes, form.zero_point != 0, scale is None)
        result = _C._int8_product(
            integers,
            self.integers,
            packed,
            self.bias,
            self.scales,
            self.zero_points,
            *self.window,
            form.scale,
            form.zero_point,
            scale,
            zero_point,
            relu,
        )
        if is_linear and len(leading) != 1:
            result = result.reshape(*leading, result.shape[-1])
        return result if scale is None else wrap(result, PerTensor(scale, zero_point))

    def dynamic(self, input: Tensor, reduce_range: bool = True, relu: bool = False) -> Tensor:
        """Returns a linear layer's float32 result for a float32 input, by the input's own range."""
        packed = self._pack((_ROWS, self.integers.shape[1]), True, True)
        return _C._int8_dynamic_linear(
            input,
            self.integers,
            packed,
            self.bias,
            self.scales,
            self.zero_points,
            reduce_range,
            relu,
        )


def qparams_of(observer: Any) -> dict[str, Any]:
    """Returns the form that an observer, or what rounds by one, has chosen."""
    qparams = {"qscheme": observer.qscheme, "dtype": observer.dtype}
    if observer.dtype in (rl.float16, rl.float32):
        return qparams
    qparams["scale"], qparams["zero_point"] = observer.calculate_qparams()
    if observer.qscheme not in (rl.per_tensor_affine, rl.per_tensor_symmetric):
        qparams["axis"] = observer.ch_axis
    return qparams


def rounded_as(weight: Tensor, qparams: dict[str, Any]) -> Any:
    """Returns a weight in the form that qparams say: quantized, or in floats of fewer digits.

    Args:
        weight: in float32.
        qparams: qscheme, dtype, scale and zero_point, and the axis of channels.
    """
    weight, dtype, scheme = weight.detach().float(), qparams["dtype"], qparams["qscheme"]
    if dtype is rl.float16:
        return weight.to(rl.float16)
    scale, zero_point = qparams["scale"], qparams["zero_point"]
    if scheme in (rl.per_tensor_affine, rl.per_tensor_symmetric):
        return rl.quantize_per_tensor(weight, float(scale), int(zero_point), dtype)
    return rl.quantize_per_channel(weight, scale, zero_point, int(qparams["axis"]), dtype)


def quantize_weight(weight: Tensor, observer: Any) -> Any:
    """Returns a float weight in the form that an observer, which has seen it, chose."""
    return rounded_as(weight, qparams_of(observer))


def float_layer_of(module: Any) -> Any:
    """Returns the layer whose weight is quantized: of a module of several, or of one of qat."""
    layer = module
    for name in ("float_conv", "float_linear"):
        if hasattr(module, name):
            layer = getattr(module, name)()
    if isinstance(layer, rl.nn.Sequential):
        layer = layer[0]
    if not hasattr(layer, "qconfig"):
        layer.qconfig = module.qconfig
    return layer


def take_weight(result: Any, layer: Any, observer: Any) -> None:
    """Gives a quantized layer the weight and bias of a float one."""
    bias = None if layer.bias is None else layer.bias.detach()
    result.set_weight_bias(quantize_weight(layer.weight, observer), bias)


def weight_observer_of(module: Any, weight: Tensor) -> Any:
    """Returns what chose the scale of a module's weight, or would by its qconfig."""
    observer = getattr(module, "weight_fake_quant", None)
    if observer is None:
        observer = module.qconfig.weight()
    observer(weight)
    return observer
