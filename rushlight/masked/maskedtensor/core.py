"""MaskedTensor: a tensor that knows which of its elements count.

The core sees the data and nothing else: gradients and memory are the data's. The class adds the
mask and takes over ops. Where the mask is False, data and gradient may be anything.
"""

# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeGuard

import rushlight as rl
from rushlight import Tensor
from rushlight._elementwise import is_elementwise
from rushlight._overridable import function_of
from rushlight.masked import _reductions
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

# Of the data.
_grad: Any = Tensor.grad

_DTYPES = (
    rl.float16, rl.float32, rl.float64, rl.bool, rl.int8, rl.int16, rl.int32, rl.int64,
)  # fmt: skip

# Ops that move elements: what they do to the data they do to the mask.
_MOVES = frozenset(
    (
        "__getitem__", "cat", "chunk", "contiguous", "expand", "expand_as", "flatten", "flip",
        "index_select", "movedim", "narrow", "permute", "reshape", "select", "split", "squeeze",
        "stack", "swapaxes", "t", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view",
    )
)  # fmt: skip
_REDUCTIONS = frozenset(
    ("sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std")
)


class MaskedTensor(Tensor):
    """A tensor with a mask, True for the elements that count.

    Reductions leave the others out; elementwise ops keep the mask, and take a second MaskedTensor
    only if its mask is the same.

    Args:
        data: the elements, which are copied.
        mask: bool, of the same shape.
        requires_grad: whether it is a leaf that collects a gradient.

    Raises:
        TypeError: if data or mask is no plain dense tensor, or of another dtype.
        ValueError: if their shapes differ.

    Example:
        >>> data, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])
        >>> x = torch.masked.MaskedTensor(data, mask)
        >>> x
        MaskedTensor(
          [  1.0000,       --,   3.0000]
        )
        >>> x.mean()
        MaskedTensor(  2.0000, True)
    """

    _mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _check(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad: "
                "no gradient reaches it. Use as_masked_tensor, or data.detach().clone().",
                stacklevel=2,
            )
        made: Any = _masked(data.detach().clone(), mask.clone())
        return made.requires_grad_(requires_grad)

    _hears_attributes = False

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not all(issubclass(other, MaskedTensor) for other in types):
            return NotImplemented
        func = function_of(func)
        name, kwargs = func.__name__, kwargs or {}
        if name in _REDUCTIONS:
            return _reduced(name, *args, **kwargs)
        if name == "softmax":
            options = {key: value for key, value in kwargs.items() if key != "_stacklevel"}
            return _masked(_reductions.softmax(*args, **options), args[0]._mask)
        if name in _MOVES:
            return _moved(func, args, kwargs)
        if name == "where" and len(args) == 3:
            return _chosen(*args)
        if is_elementwise(name) or name == "dropout":
            return _by_elements(func, name, args, kwargs)
        raise TypeError(
            f"{name}: not implemented for MaskedTensor. Use to_tensor(value) for a plain tensor "
            "with a value where the mask is False, or get_data()."
        )

    def get_data(self) -> Tensor:
        """Returns the elements, also those that do not count; gradients flow back."""
        return self.as_subclass(Tensor)

    def get_mask(self) -> Tensor:
        """Returns the mask."""
        return self._mask

    def to_tensor(self, value: float) -> Tensor:
        """Returns a plain tensor with a value in place of the elements that do not count."""
        return self.get_data().masked_fill(~self._mask, value)

    def to(self, *args: Any, **kwargs: Any) -> MaskedTensor:
        """Returns the tensor with another dtype or device; see Tensor.to."""
        data = self.get_data().to(*args, **kwargs)
        return _masked(data, self._mask.to(data.device))

    @property
    def grad(self) -> MaskedTensor | None:
        """The gradient that backward has added up, with the same mask; None if there is none."""
        grad = _grad.__get__(self)
        return None if grad is None else _masked(grad, self._mask)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        _grad.__set__(self, value.get_data() if isinstance(value, MaskedTensor) else value)

    @grad.deleter
    def grad(self) -> None:
        _grad.__set__(self, None)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            "a MaskedTensor has no values where its mask is False. Use to_tensor(value), or "
            "get_data()."
        )

    tolist = numpy = __array__ = __dlpack__ = _refuse

    def __bool__(self) -> bool:
        return bool(self.get_data())

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        data, mask = self.get_data().detach(), self._mask
        if not self.dim():
            return f"MaskedTensor({_text(data.item(), mask.item())}, {mask.item()})"
        return f"MaskedTensor(\n{_indented(_rows(data, mask))}\n)"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return MaskedTensor, (self.get_data().detach(), self._mask, self.requires_grad)


def _check(data: Any, mask: Any) -> None:
    for name, tensor in (("data", data), ("mask", mask)):
        if not isinstance(tensor, Tensor) or isinstance(tensor, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor, not {type(tensor).__name__}")
        if tensor.layout is not rl.strided or tensor.is_nested:
            raise TypeError(f"{name} layout of {tensor.layout} is not supported. Use to_dense().")
    if mask.dtype is not rl.bool:
        raise TypeError(f"mask must have dtype bool, got {mask.dtype}. Use mask.bool().")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError(f"data.dim() must equal mask.dim(), got {data.dim()} and {mask.dim()}")
    if data.shape != mask.shape:
        raise ValueError(
            f"data.size() must equal mask.size(), got {tuple(data.shape)} and {tuple(mask.shape)}"
        )


def _masked(data: Tensor, mask: Tensor) -> MaskedTensor:
    made: Any = data.as_subclass(MaskedTensor)
    made._mask = mask
    return made


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """Returns a MaskedTensor, a leaf with copies of data and mask.

    Args:
        data: the elements.
        mask: bool, of the same shape, True for those that count.
        requires_grad: whether it collects a gradient.

    Example:
        >>> x = torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
        >>> x.sum()
        MaskedTensor(  1.0000, True)
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Returns a MaskedTensor whose gradients flow back to data, 0 where the mask is False.

    Args:
        data: the elements.
        mask: bool, of the same shape, True for those that count.

    Example:
        >>> data = torch.ones(2, requires_grad=True)
        >>> x = torch.masked.as_masked_tensor(data, torch.tensor([True, False]))
        >>> (3 * x).sum().backward()
        >>> data.grad
        tensor([3., 0.])
    """
    _check(data, mask)
    # Not times 0: what comes from places that do not count may be nan.
    return _masked(rl.where(mask, data, data.detach()), mask.clone())


def is_masked_tensor(obj: Any, /) -> TypeGuard[MaskedTensor]:
    """Returns whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


# Ops


def _data_of(value: Any) -> Any:
    return value.get_data() if isinstance(value, MaskedTensor) else value


def _by_elements(func: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Any:
    leaves, tree = tree_flatten((args, kwargs))
    masks = [leaf._mask for leaf in leaves if isinstance(leaf, MaskedTensor)]
    if any(mask is not masks[0] and not rl.equal(mask, masks[0]) for mask in masks[1:]):
        raise ValueError(
            f"{name}: Input masks must match. Compute with to_tensor(value), or torch.where, to "
            "combine tensors with different masks."
        )
    new_args, new_kwargs = tree_unflatten([_data_of(leaf) for leaf in leaves], tree)
    result = func(*new_args, **new_kwargs)
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    return tree_map(lambda x: _masked(x, masks[0].expand_as(x)), result)


def _moved(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    def mask_of(value: Any) -> Any:
        return value._mask if isinstance(value, MaskedTensor) else value

    if func.__name__ in ("cat", "stack") and not all(map(is_masked_tensor, args[0])):
        raise TypeError(
            f"{func.__name__}: all tensors must be MaskedTensors if one is. Use as_masked_tensor."
        )
    data, masks = (
        func(*tree_map(of, list(args)), **tree_map(of, kwargs)) for of in (_data_of, mask_of)
    )
    if isinstance(data, Tensor):
        return _masked(data, masks)
    kind: Any = type(data)
    return kind(_masked(*pair) for pair in zip(data, masks, strict=True))


def _chosen(condition: Tensor, input: Any, other: Any) -> MaskedTensor:
    """torch.where, which chooses among the masks too."""
    if isinstance(condition, MaskedTensor):
        raise TypeError("where: the condition must be a plain Tensor. Use condition.get_data().")
    masks = [
        x._mask if isinstance(x, MaskedTensor) else rl.ones_like(condition) for x in (input, other)
    ]
    data = rl.where(condition, _data_of(input), _data_of(other))
    return _masked(data, rl.where(condition, *masks).expand_as(data))


def _reduced(name: str, input: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    if name == "norm":  # Tensor.norm names its order p
        kwargs = {"ord": kwargs.pop("p", 2.0), **kwargs}
        args, order = args[1:], args[:1]
        kwargs["ord"] = order[0] if order else kwargs["ord"]
    names = ("dim", "unbiased" if name in ("var", "std") and args[1:2] != () else "keepdim")
    options = {**dict(zip(names, args, strict=False)), **kwargs}
    if isinstance(options.get("dim"), bool):  # var(unbiased)
        options["unbiased"] = options.pop("dim")
    mask, dim, keepdim = input._mask, options.get("dim"), bool(options.get("keepdim", False))
    if name == "all":
        filled = input.to_tensor(True)
        data = filled.all() if dim is None else filled.all(dim, keepdim)
    else:
        data = getattr(_reductions, name)(input, **options)
    kept = mask.any() if dim is None and not keepdim else mask.any(dim, keepdim)
    return _masked(data, kept)


# Text


def _text(value: Any, is_kept: bool) -> str:
    if not is_kept:
        return "--"
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _rows(data: Tensor, mask: Tensor) -> str:
    if data.dim() > 1:
        rows = [_indented(_rows(*pair)) for pair in zip(data, mask, strict=True)]
        return "[\n" + ",\n".join(rows) + "\n]"
    pairs = list(zip(data.tolist(), mask.tolist(), strict=True))
    width = max((len(_text(*pair)) if pair[1] else 8 for pair in pairs), default=0)
    texts = [_text(*pair) if pair[1] else "--".rjust(width) for pair in pairs]
    return f"[{', '.join(texts)}]"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
