"""Variable, which tensors with gradients were before they became plain tensors.

Programs of that time still call it and ask with isinstance; nothing else needs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight import _C, Tensor, empty


class _ExecutionEngine:
    """What runs backward, as programs reach it through Variable."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Calls a function when the backward that runs in this thread is done.

        Args:
            callback: called once, without arguments.

        Raises:
            RuntimeError: outside of a backward.
        """
        _C._queue_callback(callback)


class _VariableMeta(type):
    """Makes every tensor a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """A tensor that shares the memory of another one, and not its history.

    Deprecated: a tensor does all that Variable did.

    Args:
        data: the tensor; an empty one when left out.
        requires_grad: whether operations on the result are recorded.
        volatile: has no effect. Use torch.no_grad().

    Raises:
        TypeError: if data is no tensor.

    Example:
        >>> x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
        >>> x.sum().backward()
        >>> x.grad, isinstance(x, torch.Tensor), isinstance(x, torch.autograd.Variable)
        (tensor([1., 1.]), True, True)
    """

    _execution_engine = _ExecutionEngine()

    def __new__(
        cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False
    ) -> Tensor:
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        data = empty(0) if data is None else data
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
