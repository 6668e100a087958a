"""Ops of the core that trust their arguments, as handlers and traced graphs may call them.

Such an op is called by ops that have checked what they pass. A handler may pass anything, so what
is passed must look like what a handler was shown before: tensors of the same shapes, strides and
dtypes, with integers in the same range, and equal numbers. That is what passing on the arguments
does, and calling a traced graph with other values.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache

from rushlight import _C, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

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
        self._seen: OrderedDict[Any, dict[Any, list[tuple[int, int] | None]]] = OrderedDict()

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
        """Whether a call looks like one that the core made."""
        return self._ranges(args) is not None

    def __call__(self, *args: Any) -> Any:
        known = self._ranges(args)
        if known is None:
            raise RuntimeError(
                f"rushlight::{self.__name__} is internal: it was never called with tensors of "
                "these shapes, strides and dtypes and these numbers. A handler can pass on what it "
                "was given, or compute the result by public functions."
            )
        for tensor, limits in zip(_tensors(args), known, strict=True):
            found = _range(tensor)
            if found is not None and (limits is None or _joined(found, limits) != limits):
                raise RuntimeError(
                    f"rushlight::{self.__name__} is internal: integers from {found[0]} to "
                    f"{found[1]} were passed where those it was called with were "
                    f"{'never known' if limits is None else f'from {limits[0]} to {limits[1]}'}."
                )
        return self._op(*args)

    def _ranges(self, args: Sequence[Any]) -> list[tuple[int, int] | None] | None:
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


def _range(tensor: Tensor) -> tuple[int, int] | None:
    is_integral = not (tensor.is_floating_point() or tensor.is_complex())
    if not is_integral or not tensor.numel() or not tensor.is_cpu or _C._is_wrapper(tensor):
        return None
    low, high = tensor.min(), tensor.max()
    return int(low), int(high)


def _joined(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1])
