"""Quantized tensors: integers of 8 or 32 bits that stand for (q - zero_point) * scale.

A quantized tensor is a subclass of Tensor: its memory holds the integers, its attribute `form` the
scale and zero point. That, and not a dtype of the core, because
  - the core's loops, promotion and casts would have to know three dtypes whose meaning lies in two
    numbers beside the elements, and every op would have to refuse them;
  - PyTorch supports few ops on them, and these are a table of functions (_quantized_ops.py); every
    other op already asks __torch_function__, which names what is missing;
  - sizes, strides, views, copies and memory are those of any tensor of integers;
  - what must be fast, the layers (ao/nn/quantized), hands plain integers to kernels of the core.
The price: torch.qint8 and its kin are not instances of torch.dtype, type(q) is not torch.Tensor,
and there are none on a GPU. Forms are immutable; a view has its own.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias


class QuantizedDType:
    """The dtype of a quantized tensor, torch.qint8 for one.

    Attributes:
        integers: the dtype of its memory.
    """

    is_floating_point = False
    is_complex = False
    is_signed = True

    def __init__(self, name: str, integers: rl.dtype) -> None:
        self.name = name
        self.integers = integers
        self.itemsize = integers.itemsize
        self.is_signed = integers.is_signed
        info = rl.iinfo(integers)
        self.min, self.max, self.bits = info.min, info.max, info.bits

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> QuantizedDType:
        return self


qint8 = QuantizedDType("qint8", rl.int8)
quint8 = QuantizedDType("quint8", rl.uint8)
qint32 = QuantizedDType("qint32", rl.int32)
# Two and four numbers to a byte: programs list these dtypes, but nothing can be quantized to them.
quint4x2 = QuantizedDType("quint4x2", rl.uint8)
quint2x4 = QuantizedDType("quint2x4", rl.uint8)
_BY_INTEGERS = {rl.int8: qint8, rl.uint8: quint8, rl.int32: qint32}


class qscheme:
    """How scales and zero points belong to elements, torch.per_tensor_affine for one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> qscheme:
        return self


per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


class PerTensor:
    """One scale and zero point for all elements."""

    __slots__ = ("scale", "zero_point")
    scheme = per_tensor_affine

    def __init__(self, scale: float, zero_point: int) -> None:
        self.scale = scale
        self.zero_point = zero_point

    def dequantize(self, integers: Tensor) -> Tensor:
        return _C._dequantize(integers, self.scale, self.zero_point)

    def quantize(self, values: Tensor, dtype: rl.dtype) -> Tensor:
        return _C._quantize(values.float(), self.scale, self.zero_point, dtype)


class PerChannel:
    """A scale and a zero point for each index along a dim, as tensors."""

    __slots__ = ("axis", "scales", "scheme", "zero_points")

    def __init__(self, scales: Tensor, zero_points: Tensor, axis: int) -> None:
        is_float = zero_points.is_floating_point()
        self.scheme = per_channel_affine_float_qparams if is_float else per_channel_affine
        self.scales = scales.to(rl.float32 if is_float else rl.float64)
        self.zero_points = zero_points.to(rl.float32 if is_float else rl.int64)
        self.axis = axis

    def _along(self, values: Tensor, list: Tensor) -> Tensor:
        return list.view([-1 if d == self.axis else 1 for d in range(values.dim())])

    def dequantize(self, integers: Tensor) -> Tensor:
        if self.scheme is per_channel_affine:
            numbers = self.zero_points.to(rl.int32)
            return _C._dequantize_channels(integers, self.scales, numbers, self.axis)
        zero_points = self._along(integers, self.zero_points)
        return (integers.float() - zero_points) * self._along(integers, self.scales)

    def quantize(self, values: Tensor, dtype: rl.dtype) -> Tensor:
        if self.scheme is per_channel_affine:
            numbers = self.zero_points.to(rl.int32)
            return _C._quantize_channels(values.float(), self.scales, numbers, self.axis, dtype)
        inverse = 1 / self._along(values, self.scales)
        info = rl.iinfo(dtype)
        scaled = values * inverse + self._along(values, self.zero_points)
        return scaled.round().clamp(info.min, info.max).to(dtype)


Form: TypeAlias = "PerTensor | PerChannel"


_integer_dtype: Any = vars(_C.TensorBase)["dtype"].__get__


class QuantizedTensor(Tensor):
    """A tensor of integers that stand for floats; see the head of this file.

    Made by torch.quantize_per_tensor and its relatives.
    """

    form: Form

    _hears_attributes = False

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        from rushlight._quantized_ops import run

        return run(func, args, kwargs or {})

    @property
    def dtype(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _BY_INTEGERS[_integer_dtype(self)]

    @property
    def is_quantized(self) -> bool:
        return True

    @property
    def data(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self

    def qscheme(self) -> qscheme:
        return self.form.scheme

    def int_repr(self) -> Tensor:
        """A copy of the integers."""
        return integers_of(self).clone()

    def dequantize(self) -> Tensor:
        return self.form.dequantize(integers_of(self))

    def _per_tensor(self, name: str) -> PerTensor:
        if isinstance(self.form, PerTensor):
            return self.form
        raise RuntimeError(f"{name}: expected quantizer->qscheme() == kPerTensorAffine to be true")

    def _per_channel(self, name: str) -> PerChannel:
        if isinstance(self.form, PerChannel):
            return self.form
        raise RuntimeError(f"{name}: expected a tensor that is quantized per channel")

    def q_scale(self) -> float:
        return self._per_tensor("q_scale").scale

    def q_zero_point(self) -> int:
        return self._per_tensor("q_zero_point").zero_point

    def q_per_channel_scales(self) -> Tensor:
        return self._per_channel("q_per_channel_scales").scales.clone()

    def q_per_channel_zero_points(self) -> Tensor:
        return self._per_channel("q_per_channel_zero_points").zero_points.clone()

    def q_per_channel_axis(self) -> int:
        return self._per_channel("q_per_channel_axis").axis

    def tolist(self) -> Any:
        return self.dequantize().tolist()

    def item(self) -> Any:
        return self.dequantize().item()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"numpy: got unsupported dtype {self.dtype}. Use int_repr().numpy() or "
            "dequantize().numpy()."
        )

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Takes over the elements of another tensor, and, of a quantized one, its form."""
        if isinstance(src, QuantizedTensor):
            if src.dtype is not self.dtype:
                raise RuntimeError(
                    f"Quantized Copy only works with same dtypes, not {src.dtype} to {self.dtype}."
                )
            self.form = src.form
            integers_of(self).copy_(integers_of(src))
        else:
            integers_of(self).copy_(self.form.quantize(src, self.dtype.integers))
        return self

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from rushlight._printing import quantized_repr

        return quantized_repr(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> QuantizedTensor:
        memo[id(self)] = result = wrap(integers_of(self).clone(), self.form)
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return wrap, (integers_of(self), self.form)


def wrap(integers: Tensor, form: Form) -> QuantizedTensor:
    """Returns integers as a quantized tensor that shares their memory."""
    result: Any = Tensor._make_subclass(QuantizedTensor, integers)
    result.form = form
    return result


def integers_of(tensor: Tensor) -> Tensor:
    """Returns a quantized tensor's integers, which share its memory."""
    return tensor.as_subclass(Tensor)


def parts_of_form(form: Form) -> tuple[Any, ...]:
    """Returns a form as files have it: the scheme, and its parameters."""
    if isinstance(form, PerTensor):
        return form.scheme, form.scale, form.zero_point
    return form.scheme, form.scales, form.zero_points, form.axis


def from_parts(
    integers: Tensor, scheme: Any, scale: Any, zero_point: Any, axis: Any = None
) -> QuantizedTensor:
    """Returns integers with a form of which nothing is known: the parts of a file."""
    name = "load"
    if scheme is per_tensor_affine or scheme is per_tensor_symmetric:
        if type(scale) is not float or type(zero_point) is not int:
            raise RuntimeError(f"{name}: scale and zero point must be numbers.")
        return wrap(integers, _checked_form(name, scale, zero_point, integers.dtype))
    is_known = any(scheme is known for known in (per_channel_affine, per_channel_symmetric))
    if not is_known and scheme is not per_channel_affine_float_qparams:
        raise RuntimeError(f"{name}: the scheme is unknown.")
    if type(axis) is not int or not isinstance(scale, Tensor) or not isinstance(zero_point, Tensor):
        raise RuntimeError(f"{name}: scales and zero points must be tensors, the axis a number.")
    if scale.is_quantized or zero_point.is_quantized or scale.is_complex():
        raise RuntimeError(f"{name}: scales and zero points must be plain numbers.")
    _check_channels(name, integers, scale, zero_point, axis)
    return wrap(integers, PerChannel(scale.detach(), zero_point.detach(), axis))


def _check_channels(
    name: str, input: Tensor, scales: Tensor, zero_points: Tensor, axis: int
) -> None:
    if not 0 <= axis < input.dim():
        raise RuntimeError(
            f"{name}: Channel axis out of range in per channel affine quantization. Got: {axis} "
            f"Expected: [0, {input.dim()})"
        )
    count = input.size(axis)
    if not tuple(scales.shape) == tuple(zero_points.shape) == (count,):
        raise RuntimeError(
            f"{name}: needs one scale and zero point for each of the {count} channels, but has "
            f"{tuple(scales.shape)} and {tuple(zero_points.shape)}."
        )


def _check_input(name: str, input: Tensor) -> None:
    if input.is_quantized or input.dtype is not rl.float32:
        raise RuntimeError(f"{name}: expected a float32 tensor, got {input.dtype}.")
    if input.device.type not in ("cpu", "meta"):
        raise NotImplementedError(f"{name}: quantized tensors live on the CPU. Use input.cpu().")


def _check_dtype(name: str, dtype: Any) -> rl.dtype:
    if dtype in _BY_INTEGERS.values():
        return dtype.integers
    raise RuntimeError(f"{name}: dtype must be torch.qint8, quint8 or qint32, but is {dtype}.")


def _checked_form(name: str, scale: float, zero_point: int, dtype: rl.dtype) -> PerTensor:
    info = rl.iinfo(dtype)
    if not info.min <= zero_point <= info.max:
        bound = ("below lower", info.min) if zero_point < info.min else ("above upper", info.max)
        raise RuntimeError(f"{name}: zero_point {zero_point} is {bound[0]} bound {bound[1]}.")
    if not 0 < scale < float("inf"):
        raise RuntimeError(f"{name}: scale must be a positive number, but is {scale}.")
    return PerTensor(scale, zero_point)


@overridable
def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """Returns floats as quantized numbers: the nearest to input / scale + zero_point.

    Args:
        input: a float32 tensor, or a list of them.
        scale: the distance of two neighbors; a number, a tensor of one, or one for each of a list.
        zero_point: the integer that stands for 0.
        dtype: torch.quint8, qint8 or qint32.

    Returns:
        A quantized tensor, or a list of them.

    Example:
        >>> torch.quantize_per_tensor(torch.tensor([-1.0, 0.0, 1.0]), 0.1, 10, torch.quint8)
        tensor([-1.,  0.,  1.], size=(3,), dtype=torch.quint8,
               quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=10)
    """
    name = "quantize_per_tensor"
    if isinstance(input, list | tuple):
        return [
            quantize_per_tensor(x, s, z, dtype)
            for x, s, z in zip(input, scale, zero_point, strict=True)
        ]
    _check_input(name, input)
    integers = _check_dtype(name, dtype)
    form = _checked_form(name, float(scale), int(zero_point), integers)
    return wrap(form.quantize(input.detach(), integers), form)


@overridable
def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any
) -> QuantizedTensor:
    """quantize_per_tensor with a scale and zero point for each index along a dim.

    Args:
        input: a float32 tensor.
        scales: one number for each index along `axis`.
        zero_points: the same; of floats, they need not be integers.
        axis: the dim.
        dtype: torch.quint8, qint8 or qint32.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [10.0, 20.0]])
        >>> scales, zero_points = torch.tensor([0.1, 1.0]), torch.tensor([0, 0])
        >>> torch.quantize_per_channel(x, scales, zero_points, 0, torch.qint8).int_repr()
        tensor([[10, 20],
                [10, 20]], dtype=torch.int8)
    """
    name = "quantize_per_channel"
    _check_input(name, input)
    integers = _check_dtype(name, dtype)
    _check_channels(name, input, scales, zero_points, axis)
    form = PerChannel(scales.detach(), zero_points.detach(), axis)
    return wrap(form.quantize(input.detach(), integers), form)


def choose_form(input: Tensor, dtype: rl.dtype, reduce_range: bool) -> PerTensor:
    """Returns the form in which 8 bits cover the range of a float32 tensor."""
    chosen = _C._choose_qparams(input.detach(), dtype is rl.int8, reduce_range)
    scale, zero_point = chosen.tolist()
    return PerTensor(scale, int(zero_point))


def _choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """Returns the scale and zero point of quint8 that suit the range of a float32 tensor."""
    form = choose_form(input, rl.uint8, reduce_range)
    return form.scale, form.zero_point


@overridable
def quantize_per_tensor_dynamic(input: Tensor, dtype: Any, reduce_range: bool) -> Tensor:
    """quantize_per_tensor with the scale and zero point that suit the input's own range.

    Args:
        input: a float32 tensor.
        dtype: torch.quint8 or qint8; or float16, which is not quantized, but has fewer digits.
        reduce_range: uses 7 bits, for processors whose sums of products have but 16.

    Example:
        >>> x = torch.tensor([0.0, 2.55])
        >>> torch.quantize_per_tensor_dynamic(x, torch.quint8, False).int_repr()
        tensor([  0, 255], dtype=torch.uint8)
    """
    name = "quantize_per_tensor_dynamic"
    _check_input(name, input)
    if dtype is rl.float16:
        return input.to(dtype)
    integers = _check_dtype(name, dtype)
    if dtype is qint32:
        raise RuntimeError(f"{name}: dtype must be torch.quint8 or qint8, but is {dtype}.")
    form = choose_form(input, integers, reduce_range)
    return wrap(form.quantize(input.detach(), integers), form)


@overridable
def dequantize(input: Any) -> Any:
    """Returns the floats that a quantized tensor, or each of a list, stands for.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([0.12]), 0.1, 0, torch.quint8)
        >>> torch.dequantize(q)
        tensor([0.1000])
    """
    if isinstance(input, list | tuple):
        return [x.dequantize() for x in input]
    return input.dequantize()


def _empty_affine_quantized(
    size: Sequence[int], *, scale: float = 1, zero_point: int = 0, dtype: Any = None, **kwargs: Any
) -> QuantizedTensor:
    """Returns an uninitialized quantized tensor of a shape."""
    integers = _check_dtype("_empty_affine_quantized", dtype)
    form = _checked_form("_empty_affine_quantized", scale, zero_point, integers)
    return wrap(rl.empty(*([size] if isinstance(size, int) else size), dtype=integers), form)


def _make_per_tensor_quantized_tensor(
    input: Tensor, scale: float, zero_point: int
) -> QuantizedTensor:
    """Returns a copy of integers as a quantized tensor."""
    form = _checked_form("_make_per_tensor_quantized_tensor", scale, zero_point, input.dtype)
    return wrap(input.detach().clone(), form)


def _make_per_channel_quantized_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int
) -> QuantizedTensor:
    """Returns a copy of integers as a quantized tensor with a scale for each channel."""
    return wrap(input.detach().clone(), PerChannel(scale, zero_point, axis))


def _fake_quantize_learnable_per_tensor_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """fake_quantize_per_tensor_affine with gradients of scale and zero_point (LSQ+)."""
    return _C._fake_quantize(
        input, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max, grad_factor
    )


def _fake_quantize_learnable_per_channel_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """fake_quantize_per_channel_affine with gradients of scale and zero_point (LSQ+)."""
    sizes = [-1 if d == axis % input.dim() else 1 for d in range(input.dim())]
    return _C._fake_quantize(
        input, scale.view(sizes), zero_point.view(sizes), quant_min, quant_max, grad_factor
    )


def _of_tensor(name: str) -> Callable[..., Any]:
    def function(input: Tensor) -> Any:
        return getattr(input, name)()

    function.__name__ = name
    function.__doc__ = f"Returns {name}() of a quantized tensor."
    return overridable(function)


int_repr = _of_tensor("int_repr")
q_scale = _of_tensor("q_scale")
q_zero_point = _of_tensor("q_zero_point")
q_per_channel_scales = _of_tensor("q_per_channel_scales")
q_per_channel_zero_points = _of_tensor("q_per_channel_zero_points")
q_per_channel_axis = _of_tensor("q_per_channel_axis")
