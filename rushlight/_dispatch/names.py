"""PyTorch's names of ops and of their overloads, where they are not the op's own and "default"."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@dataclass
class Call:
    """A call of an operator.

    Attributes:
        name: the operator's.
        args: its arguments.
        kwargs: those that are passed by name.
        overload: which one; empty where it is still to be found.
        namespace: "rushlight" where PyTorch has no name for the call.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    overload: str = ""
    namespace: str = "aten"


def overload_of(name: str, own: str, call: Call) -> str:
    """Returns what PyTorch calls the overload of a call.

    Args:
        name: the op's, without the underscore of a form in place.
        own: what the op table calls the overload.
        call: the arguments.
    """
    rule = _OVERLOADS.get(name) or _OVERLOADS.get(name.rstrip("_"))
    if isinstance(rule, str):
        return rule
    if rule is not None:
        return rule(call.args, call.kwargs, own)
    return own or "default"


def renamed(call: Call, args: tuple[Any, ...]) -> Call | None:
    """Returns a call under PyTorch's name of an op that has another one here; None for others.

    Args:
        call: the call, without arguments that are as the default says.
        args: all of its positional arguments.
    """
    rule = _RENAMED.get(call.name)
    return None if rule is None else rule(call, *args)


# ---- overloads ----------------------------------------------------------------------------------


def _is_tensor(args: tuple[Any, ...], place: int) -> bool:
    return len(args) > place and isinstance(args[place], Tensor)


def _by(place: int, tensor: str, number: str, first: str = "") -> Callable[..., str]:
    """By whether an argument is a tensor, or the first one a number."""

    def rule(args: tuple[Any, ...], kwargs: dict[str, Any], own: str) -> str:
        if first and not _is_tensor(args, 0):
            return first
        return tensor if _is_tensor(args, place) else number

    return rule


def _dims(all_dims: str, some: str) -> Callable[..., str]:
    """By whether dims are given."""

    def rule(args: tuple[Any, ...], kwargs: dict[str, Any], own: str) -> str:
        return some if len(args) > 1 else all_dims

    return rule


def _where(args: tuple[Any, ...], kwargs: dict[str, Any], own: str) -> str:
    if len(args) < 3:
        return "default"
    kinds = {(True, True): "self", (True, False): "ScalarOther", (False, True): "ScalarSelf"}
    return kinds.get((_is_tensor(args, 1), _is_tensor(args, 2)), "Scalar")


def _clamp(args: tuple[Any, ...], kwargs: dict[str, Any], own: str) -> str:
    return "Tensor" if _is_tensor(args, 1) or _is_tensor(args, 2) else "default"


def _scatter(args: tuple[Any, ...], kwargs: dict[str, Any], own: str) -> str:
    kind = "src" if _is_tensor(args, 3) else "value"
    if "reduce" not in kwargs:
        return kind
    return "reduce" if kind == "src" else "value_reduce"


def _arange(args: tuple[Any, ...], kwargs: dict[str, Any], own: str) -> str:
    return {1: "default", 2: "start"}.get(len(args), "start_step")


def _repeat(args: tuple[Any, ...], kwargs: dict[str, Any], own: str) -> str:
    if len(args) == 1:
        return "Tensor"
    return "self_Tensor" if _is_tensor(args, 1) else "self_int"


_tensor_or_scalar = _by(1, "Tensor", "Scalar")
_bits = _by(1, "Tensor", "Scalar", "Scalar_Tensor")
_shift = _by(1, "Tensor", "Tensor_Scalar", "Scalar_Tensor")

_OVERLOADS: dict[str, str | Callable[..., str]] = {
    **dict.fromkeys(("add", "sub", "mul"), "Tensor"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "fmod", "copysign"), _tensor_or_scalar),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "remainder"), _bits),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), _shift),
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), "correction"),
    **dict.fromkeys(("select", "transpose", "unbind", "unflatten"), "int"),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _clamp),
    **dict.fromkeys(("searchsorted", "bucketize"), _tensor_or_scalar),
    "arange": _arange,
    "bernoulli": lambda args, kwargs, own: own or "default",
    "bernoulli_": _by(1, "Tensor", "float"),
    "count_nonzero": _dims("default", "dim_IntList"),
    "div": lambda args, kwargs, own: "Tensor_mode" if "rounding_mode" in kwargs else "Tensor",
    "empty": "memory_format",
    "eye": _dims("default", "m"),
    "fill": _tensor_or_scalar,
    "float_power": _by(1, "Tensor_Tensor", "Tensor_Scalar", "Scalar"),
    "flatten": "using_ints",
    "frexp": "Tensor",
    "index_fill": _by(3, "int_Tensor", "int_Scalar"),
    "isin": _by(1, "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"),
    "ldexp": "Tensor",
    "lerp": _by(2, "Tensor", "Scalar"),
    "log_softmax": "int",
    "masked_fill": _by(2, "Tensor", "Scalar"),
    "max": lambda args, kwargs, own: {"binary": "other"}.get(own, own or "default"),
    "min": lambda args, kwargs, own: {"binary": "other"}.get(own, own or "default"),
    "mean": _dims("default", "dim"),
    "pow": _by(1, "Tensor_Tensor", "Tensor_Scalar", "Scalar"),
    "prod": lambda args, kwargs, own: "dim_int" if own else "default",
    "repeat_interleave": _repeat,
    "rsub": _tensor_or_scalar,
    "scatter": _scatter,
    "scatter_reduce": "two",
    "softmax": "int",
    "sort": lambda args, kwargs, own: "stable" if "stable" in kwargs else "default",
    "sum": _dims("default", "dim_IntList"),
    "where": _where,
    "xlogy": _by(1, "Tensor", "Scalar_Other", "Scalar_Self"),
}

# ---- names --------------------------------------------------------------------------------------


def _aten(name: str, overload: str, *args: Any, **kwargs: Any) -> Call:
    return Call(name, args, kwargs, overload)


def _cast(call: Call, input: Tensor, dtype: Any) -> Call:
    return _aten("_to_copy", "default", input, dtype=dtype)


def _to(call: Call, input: Tensor, device: Any, non_blocking: bool) -> Call:
    options = {"non_blocking": True} if non_blocking else {}
    return _aten("_to_copy", "default", input, device=device, **options)


def _index_put(
    call: Call, input: Tensor, indices: list[Any], values: Tensor, accumulate: bool
) -> Call:
    more = (True,) if accumulate else ()
    return _aten("index_put_", "default", input, indices, values, *more)


def _slice(call: Call, input: Tensor, dim: int, start: int, end: int, step: int) -> Call:
    more = (step,) if step != 1 else ()
    return _aten("slice", "Tensor", input, dim, start, end, *more)


def _scan(call: Call, input: Tensor, dim: int, reverse: bool) -> Call | None:
    return None if reverse else _aten(call.name[1:], "default", input, dim)


def _matmul(call: Call, input: Tensor, other: Tensor) -> Call:
    name = {(2, 2): "mm", (2, 1): "mv", (1, 1): "dot"}.get((input.dim(), other.dim()), "matmul")
    if input.dim() == other.dim() == 3 and input.shape[0] == other.shape[0]:
        name = "bmm"
    return _aten(name, "default", input, other)


def _softmax(call: Call, input: Tensor, dim: int | None, dtype: Any, level: int) -> Call | None:
    if dtype is not None or dim is None:
        return Call(call.name, call.args[:3], {}, "int")
    return _aten(f"_{call.name}", "default", input, dim, False)


def _layer_norm(call: Call, input: Tensor, dims: int, weight: Any, bias: Any, eps: float) -> Call:
    shape = list(input.shape[input.dim() - dims :])
    return _aten("native_layer_norm", "default", input, shape, weight, bias, eps)


def _rms_norm(call: Call, input: Tensor, dims: int, weight: Any, eps: float) -> Call:
    return _aten("_fused_rms_norm", "default", input, list(input.shape[-dims:]), weight, eps)


def _batch_norm(call: Call, *args: Any) -> Call:
    return _aten("native_batch_norm", "default", *args)


def _group_norm(call: Call, input: Tensor, groups: int, weight: Any, bias: Any, eps: float) -> Call:
    n, c, *rest = input.shape
    size = 1
    for length in rest:
        size *= length
    return _aten("native_group_norm", "default", input, weight, bias, n, c, size, groups, eps)


def _conv(
    call: Call,
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: list[int],
    before: list[int],
    after: list[int],
    dilation: list[int],
    groups: int,
) -> Call | None:
    if before != after:
        return None
    zeros = [0] * len(stride)
    options = (stride, before, dilation, False, zeros, groups)
    return _aten("convolution", "default", input, weight, bias, *options)


def _nll_loss(
    call: Call, input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: int
) -> Call:
    return _aten("nll_loss_forward", "default", input, target, weight, reduction, ignore_index)


def _window(call: Call, input: Tensor, size: Any, stride: Any, offset: int, *base: Any) -> Call:
    return _aten("as_strided", "default", input, size, stride, offset)


def _swapped(call: Call, *args: Any) -> Call | None:
    if isinstance(args[0], Tensor) or call.kwargs:
        return None
    return _aten(call.name, "Tensor", args[1], args[0])


def _transpose(call: Call, input: Tensor, dim0: int, dim1: int) -> Call | None:
    is_matrix = input.dim() == 2 and {dim0, dim1} == {0, 1}
    return _aten("t", "default", input) if is_matrix else None


def _reshape(call: Call, input: Tensor, size: list[int]) -> Call | None:
    return _aten("view", "default", input, size) if input.is_contiguous() else None


def _embedding(
    call: Call,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Call | None:
    if max_norm is not None:
        return replace(call, overload="default", namespace="rushlight")
    more = [-1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse]
    while more and more[-1] in (-1, False):
        more.pop()
    return _aten("embedding", "default", weight, input, *more)


def _vector_norm(call: Call, input: Tensor, ord: float, dim: Any, keepdim: bool) -> Call:
    more = [ord, dim or None, keepdim]
    for usual in (False, None, 2.0):
        if more[-1] != usual:
            break
        more.pop()
    return _aten("linalg_vector_norm", "default", input, *more)


def _avg_pool(
    call: Call,
    input: Tensor,
    out: list[int],
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    count_include_pad: bool,
    divisor: int,
) -> Call | None:
    count = len(kernel)
    if not len(out) == len(stride) == len(padding) == count or (count == 1 and divisor):
        return None
    sizes = zip(out, input.shape[-count:], kernel, stride, padding, strict=True)
    ceils = any(n != (size + 2 * pad - width) // by + 1 for n, size, width, by, pad in sizes)
    more: list[Any] = [stride, padding, ceils, count_include_pad, divisor or None]
    usual = [kernel, [0] * count, False, True, None]
    while more and more[-1] == usual[len(more) - 1]:
        more.pop()
    return _aten(f"avg_pool{count}d", "default", input, kernel, *more)


def _polygamma(call: Call, *args: Any) -> Call | None:
    return _aten("polygamma", "default", args[1], args[0]) if isinstance(args[0], Tensor) else None


def _sub(call: Call, *args: Any) -> Call | None:
    if isinstance(args[0], Tensor) or call.kwargs:
        return None
    return _aten("rsub", "Scalar", args[1], args[0])


_RENAMED: dict[str, Callable[..., Call | None]] = {
    "_as_strided": _window,
    "_avg_pool": _avg_pool,
    "_batch_norm": _batch_norm,
    "_cast": _cast,
    "_conv": _conv,
    "_cumprod": _scan,
    "_cumsum": _scan,
    "_group_norm": _group_norm,
    "_index": lambda call, *args: _aten("index", "Tensor", *args),
    "_index_put_": _index_put,
    "_layer_norm": _layer_norm,
    "_matmul": _matmul,
    "_nll_loss": _nll_loss,
    "_rms_norm": _rms_norm,
    "_roll": lambda call, *args: _aten("roll", "default", *args),
    "_slice": _slice,
    "_to": _to,
    "_vector_norm": _vector_norm,
    "add": _swapped,
    "embedding": _embedding,
    "log_softmax": _softmax,
    "matmul": _matmul,
    "mul": _swapped,
    "polygamma": _polygamma,
    "reshape": _reshape,
    "softmax": _softmax,
    "sub": _sub,
    "transpose": _transpose,
}
