"""torch.ops.aten: the functions of this package by the names of PyTorch's operators.

torch.ops.aten.mm and torch.ops.aten.mm.default are torch.mm itself, whatever an overload is called:
programs compare and call them. Nothing is dispatched through them.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_PREFIXES = ("fft", "linalg", "special")


class Packet:
    """What torch.ops.aten.name is: a function, and its overloads, which are the same.

    Args:
        name: the operator's.
        function: what it computes with.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__ = name
        self._function = function

    def __getattr__(self, overload: str) -> Callable[..., Any]:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def packet_of(name: str) -> Packet | None:
    """The operator of a name, None if there is none."""
    function = _OTHERS.get(name) or _public(name)
    return None if function is None else Packet(name, function)


def _public(name: str) -> Callable[..., Any] | None:
    prefix, _, rest = name.partition("_")
    homes: list[Any] = [rl, rl.nn.functional, Tensor]
    if name.endswith("_"):
        homes = [Tensor]
    elif prefix in _PREFIXES:
        homes, name = [getattr(rl, prefix)], rest
    for home in homes:
        found = getattr(home, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


def _index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return input[tuple(slice(None) if index is None else index for index in indices)]


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    dim %= input.dim()
    return input[(*[slice(None)] * dim, slice(start, end, step))]


def _to_copy(input: Tensor, **options: Any) -> Tensor:
    return input.to(**options, copy=True)


# The operators that Python has other words for.
_OTHERS: dict[str, Callable[..., Any]] = {
    "_pin_memory": Tensor.pin_memory,
    "_sparse_addmm": rl.sparse.addmm,
    "_to_copy": _to_copy,
    "_unsafe_view": Tensor.view,
    "alias": lambda input: input.view_as(input),
    "index": _index,
    "slice": _slice,
}
