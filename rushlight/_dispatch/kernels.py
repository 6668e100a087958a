"""Ops of the core that trust their arguments, as handlers and traced graphs may call them.

Such an op is called by ops that have checked what they pass. A handler may pass anything, so what
is passed must look like what a handler was shown before: tensors of the same shapes, strides and
dtypes, with equal numbers, and with integers that name places there are, or were in the range that
was shown. That is what passing on the arguments does, and calling a traced graph with other values.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import cache

from rushlight import _C, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Range = tuple[int, int]


def _classes(count: int, ignored: int) -> Range:
    return min(0, ignored), max(count - 1, ignored)


# Which argument names places, by the ops of which it is one, and what it may be.
_INDICES: dict[str, tuple[int, Callable[..., Range]]] = {
    "_at_ranks": (1, lambda input, ranks, dim: (0, input.shape[dim] - 1)),
    "_cross_entropy": (1, lambda input, t, w, ignored, *_: _classes(input.shape[1], ignored)),
    "_cross_entropy_backward": (
        3,
        lambda grad, input, n, t, w, total, ignored, *_: _classes(input.shape[1], ignored),
    ),
    "_lu_permutation": (0, lambda pivots, rows: (1, rows)),
    "_lu_solve": (1, lambda LU, *_: (1, LU.shape[-2])),
    "_max_pool_backward": (1, lambda grad, indices, size, *_: (0, math.prod(size[-3:]) - 1)),
    "_nll_loss": (
        1,
        lambda input, t, w, ignored, *_: _classes(input.shape[input.dim() > 1], ignored),
    ),
    "_nll_loss_backward": (
        1,
        lambda grad, t, w, total, sizes, ignored, *_: _classes(sizes[len(sizes) > 1], ignored),
    ),
    "_scatter_extreme_": (2, lambda input, dim, *_: (0, input.shape[dim] - 1)),
    "_scatter_product": (2, lambda input, dim, *_: (0, input.shape[dim] - 1)),
}

# How many different calls of an op are remembered.
_MOST = 4096


class Kernel:
    """An op of the core that is called as it was called before.

    Args:
        name: the op's.
        index: its row in the op table.
    """

    def __init__(self, name: str, index: int) -> None:
        self.__name__ = name
        self.__module__ = "rushlight.ops.rushlight"
        self._op = _C._op_of_row(index, "")
        # By the look of the call and where its tensors were, the range of each tensor of integers,
        # None where there are none.
        self._seen: OrderedDict[Any, dict[Any, list[Range | None]]] = OrderedDict()

    def note(self, args: Sequence[Any]) -> None:
        """Remembers the look of a call that the core makes."""
        look, places = _look(args), _places(args)
        seen = self._seen.pop(look, {})
        ranges = [_range(t) for t in _tensors(args)]
        known = seen.get(places)
        seen[places] = ranges if known is None else list(map(_joined, known, ranges))
        self._seen[look] = seen
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)

    def knows(self, *args: Any) -> bool:
        """Whether it may be called with these arguments."""
        return not self._problem(args)

    def __call__(self, *args: Any) -> Any:
        if problem := self._problem(args):
            raise RuntimeError(f"rushlight::{self.__name__} is internal: {problem}")
        return self._op(*args)

    def _problem(self, args: Sequence[Any]) -> str:
        """Why it may not be called with these arguments; empty if it may."""
        known = self._ranges(args)
        if known is None:
            return (
                "it was never called with tensors of these shapes, strides and dtypes and these "
                "numbers. A handler can pass on what it was given, or compute the result by public "
                "functions."
            )
        checked = zip(_tensors(args), known, strict=True)
        if self.__name__ in _INDICES:
            place, range_of = _INDICES[self.__name__]
            checked = [(args[place], range_of(*args))]
        for tensor, limits in checked:
            found = _range(tensor)
            if found is not None and (limits is None or _joined(found, limits) != limits):
                allowed = (
                    "none are known" if limits is None else f"{limits[0]} to {limits[1]} may be"
                )
                return f"integers from {found[0]} to {found[1]} were passed where {allowed}."
        return ""

    def _ranges(self, args: Sequence[Any]) -> list[Range | None] | None:
        """What integers a call like this had; None if there was none like it.

        On meta, where nothing is read, a call is like those elsewhere.
        """
        seen, places = self._seen.get(_look(args), {}), _places(args)
        if seen and set(places) == {"meta"}:
            return next(iter(seen.values()))
        return seen.get(places)


@cache
def kernel_of(name: str, index: int) -> Kernel:
    """Returns the one object that stands for an op of the core."""
    return Kernel(name, index)


def _tensors(args: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for arg in args:
        items = arg if isinstance(arg, list) else [arg]
        found.extend(item for item in items if isinstance(item, Tensor))
    return found


def _look(args: Sequence[Any]) -> Any:
    def of(arg: Any) -> Any:
        if isinstance(arg, Tensor):
            return arg.shape, arg.stride(), arg.dtype, arg._layout
        if isinstance(arg, _C.device):
            return _C.device
        if isinstance(arg, (list, tuple)):
            return tuple(of(item) for item in arg)
        return type(arg), arg

    return tuple(of(arg) for arg in args)


def _places(args: Sequence[Any]) -> tuple[str, ...]:
    """Where the tensors of a call are, and what devices it names."""
    devices = [arg for arg in args if isinstance(arg, _C.device)]
    return tuple(str(device) for device in [*(t.device for t in _tensors(args)), *devices])


def _range(tensor: Tensor) -> Range | None:
    names_no_place = tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is _C.bool
    if names_no_place or not tensor.numel() or not tensor.is_cpu or _C._is_wrapper(tensor):
        return None
    low, high = tensor.min(), tensor.max()
    return int(low), int(high)


def _joined(a: Range | None, b: Range | None) -> Range | None:
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1])
