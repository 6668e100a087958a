"""Tensors that a module registers when they are assigned to it.

Owns Parameter and Buffer, nothing else. Invariant: both are leaves that share the memory of the
tensor they were made from.
"""

from __future__ import annotations

import copy

import rushlight as rl
from rushlight import _C, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Parameter(Tensor):
    """A tensor that a module learns: assigning it to a module registers it.

    Args:
        data: tensor whose memory the parameter shares; None makes an empty one.
        requires_grad: whether backward computes a gradient for it.

    Example:
        >>> layer = torch.nn.Module()
        >>> layer.scale = torch.nn.Parameter(torch.ones(3))
        >>> [name for name, _ in layer.named_parameters()]
        ['scale']
    """

    __torch_function__ = _C._disabled_torch_function_impl  # results are plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        return Tensor._make_subclass(cls, rl.empty(0) if data is None else data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            result = type(self)(self.detach().clone(), self.requires_grad)
            memo[id(self)] = result
            result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.detach(), self.requires_grad), self.__dict__ or None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self, **kwargs: Any) -> str:
        return "Parameter containing:\n" + super().__repr__(**kwargs)


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not learned, such as a running mean.

    Args:
        data: tensor whose memory the buffer shares; None makes an empty one.
        persistent: whether the buffer is part of the module's state_dict.

    Example:
        >>> layer = torch.nn.Module()
        >>> layer.steps = torch.nn.Buffer(torch.zeros(1))
        >>> list(layer.state_dict())
        ['steps']
    """

    persistent: bool

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        tensor: Any = rl.empty(0) if data is None else data
        result = Tensor._make_subclass(cls, tensor, tensor.requires_grad)
        result.persistent = persistent
        return result
