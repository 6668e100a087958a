"""Owns torch._foreach_*: an op for each tensor of a list.

PyTorch's names begin with an underscore, but optimizers of other libraries are written with them.
What stands beside the tensors is a list with an entry for each of them, or one thing for all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import _C, Tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_BOTH = """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1
    floor frac lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt
    sigmoid sign sin sinh sqrt sub tan tanh trunc
"""
_NEW_ONLY = ["clone", "max", "mm"]
_IN_PLACE_ONLY = ["zero"]
_OPS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # these take numbers, too
# What PyTorch calls the operands, in the order in which they are given.
_OPERANDS = [
    "self",
    "tensors1",
    "tensor1",
    "tensor2",
    "other",
    "mat2",
    "exponent",
    "weights",
    "weight",
    "scalar",
    "scalars",
]


def _for_each(name: str, call: Callable[..., Any], args: list[Any], kwargs: Any) -> list[Any]:
    """Calls with the entries of all lists, one after another."""
    first, *others = [*args, *kwargs.values()] or [None]
    rows = [first]
    rows += [x.tolist() if isinstance(x, Tensor) and x.dim() == 1 else x for x in others]
    counts = [len(row) for row in rows if isinstance(row, (list, tuple))]
    if not counts:
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not "
            f"{type(first).__name__}."
        )
    if counts[0] == 0:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    if len({*counts}) > 1:
        raise RuntimeError(
            f"{name}: Tensor lists must have the same number of tensors, got lists of {counts}."
        )
    columns = [row if isinstance(row, (list, tuple)) else repeat(row, counts[0]) for row in rows]
    own, named = columns[: len(args)], columns[len(args) :]
    if all(isinstance(column, repeat) for column in named):
        return list(map(partial(call, **kwargs) if kwargs else call, *own))
    options = (dict(zip(kwargs, row, strict=True)) for row in zip(*named, strict=True))
    return [
        call(*row, **chosen) for row, chosen in zip(zip(*own, strict=True), options, strict=True)
    ]


def _make(op: str, in_place: bool) -> Callable[..., Any]:
    name = f"_foreach_{op}_" if in_place else f"_foreach_{op}"
    op = _OPS.get(op, op)
    call = getattr(Tensor, f"{op}_") if in_place else getattr(rl, op)

    def function(*args: Any, **kwargs: Any) -> Any:
        args = (*args, *(kwargs.pop(operand) for operand in _OPERANDS if operand in kwargs))
        if op in ("addcdiv", "addcmul") and len(args) == 4:
            args, kwargs = args[:3], {**kwargs, "value": args[3]}
        results = _for_each(name, call, list(args), kwargs)
        return args[0] if in_place else tuple(results)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{'In each tensor of a list' if in_place else 'For each tensor'}: {op}."
    return function


for _op in [*_BOTH.split(), *_NEW_ONLY]:
    globals()[f"_foreach_{_op}"] = _make(_op, in_place=False)
for _op in [*_BOTH.split(), *_IN_PLACE_ONLY]:
    globals()[f"_foreach_{_op}_"] = _make(_op, in_place=True)


def _foreach_powsum(self: list[Tensor], ord: float = 2) -> tuple[Tensor, ...]:
    """For each tensor, the sum of |x| ** ord."""
    return tuple(x.abs().pow(ord).sum() for x in self)


def _foreach_copy_(
    self: list[Tensor], src: list[Tensor], non_blocking: bool = False
) -> list[Tensor]:
    """Copies each tensor of src into one of self."""
    _C._foreach_copy_(self, src, non_blocking)
    return self
